package apiserver_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/faults/inprocess"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/virtual"
	"github.com/kube-gauntlet/gauntlet/harness/internal/memetcd"
	"github.com/kube-gauntlet/gauntlet/harness/virtual/apiserver"
)

// TestDeployment creates, lists and watches a Deployment on a Server in a bubble of
// testing/synctest.
func TestDeployment(t *testing.T) {
	if err := apiserver.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string]apiserver.Options{"etcd": {}, "watch cache": {WatchCache: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testDeployment(t, options) })
		})
	}
}

// checkServed checks that virtual.Served has the resources of the API server.
func checkServed(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	_, lists, err := client.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	served := map[string][]string{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") {
				served[list.GroupVersion] = append(served[list.GroupVersion], resource.Name)
			}
		}
		slices.Sort(served[list.GroupVersion])
	}
	if !maps.EqualFunc(served, virtual.Served, slices.Equal[[]string]) {
		t.Errorf("the API server serves %q; virtual.Served has %q", served, virtual.Served)
	}
}

func testDeployment(t *testing.T, options apiserver.Options) {
	server, err := apiserver.New(t.Context(), memetcd.New().Client, options)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	connection := inprocess.Direct(server.Handler)
	defer connection.Close()
	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: "http://apiserver", Transport: connection, QPS: -1})
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	checkServed(t, client)
	deployments := client.AppsV1().Deployments("default")

	watch, err := deployments.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	created, err := deployments.Create(t.Context(), newDeployment(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if created.UID == "" || created.Generation != 1 || created.Spec.Strategy.RollingUpdate == nil {
		t.Errorf("the created Deployment lacks a UID, generation 1 or defaults: %+v", created)
	}
	select {
	case event := <-watch.ResultChan():
		if got, ok := event.Object.(*appsv1.Deployment); !ok || got.ResourceVersion != created.ResourceVersion {
			t.Errorf("the watch delivered %v %+v, expected the created Deployment", event.Type, event.Object)
		}
	case <-time.After(time.Minute):
		t.Error("the watch delivered nothing within a minute")
	}
	list, err := deployments.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.ResourceVersion != created.ResourceVersion {
		t.Errorf("the list has %d items (%v), expected 1 at resource version %s", len(list.Items), err, created.ResourceVersion)
	}
}

func newDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}
}
