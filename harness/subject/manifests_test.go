package subject_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/controllers/deploy"
	"github.com/kube-gauntlet/gauntlet/controllers/rbac"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/embedded/embeddedtest"
)

// TestShippedManifests creates the objects of the manifests in controllers/ on an embedded cluster.
// The API server must know every field. A pod of the manifests must start without the controllers
// under test, and must meet the restricted Pod Security Standard.
func TestShippedManifests(t *testing.T) {
	c := embeddedtest.Start(t)
	admin, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		t.Fatal(err)
	}
	create := creator(t, c, admin)
	for _, manifest := range [][]byte{rbac.Manifest, deploy.Manifest} {
		for document := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
			create(document)
		}
	}
	t.Run("a pod becomes ready on the control plane", func(t *testing.T) { becomesReady(t, admin) })
	t.Run("the pod is restricted", func(t *testing.T) { meetsRestrictedStandard(t, admin) })
}

// creator returns a function that creates the object in a YAML document. The API server rejects
// unknown fields (strict field validation).
func creator(t *testing.T, c cluster.Cluster, admin kubernetes.Interface) func(document []byte) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(admin.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	return func(document []byte) {
		t.Helper()
		var object unstructured.Unstructured
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			t.Fatal(err)
		}
		var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
		if object.GetNamespace() != "" {
			resource = client.Resource(mapping.Resource).Namespace(object.GetNamespace())
		}
		strict := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
		if _, err := resource.Create(t.Context(), &object, strict); err != nil {
			t.Fatalf("creating %s %s: %v", kind.Kind, object.GetName(), err)
		}
	}
}

func becomesReady(t *testing.T, admin kubernetes.Interface) {
	nodes, err := admin.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		t.Fatalf("%d nodes, %v; want 1", len(nodes.Items), err)
	}
	controlPlane := []byte(`{"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}},
		"spec": {"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]}}`)
	if _, err := admin.CoreV1().Nodes().Patch(t.Context(), nodes.Items[0].Name, types.StrategicMergePatchType, controlPlane, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	var set *appsv1.DaemonSet
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (ready bool, err error) {
		set, err = admin.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(ctx, "workload-controller-manager", metav1.GetOptions{})
		return err == nil && set.Status.NumberReady == 1, err
	})
	if err != nil {
		t.Errorf("expected one ready pod: %v, status %+v", err, set.Status)
	}
}

func meetsRestrictedStandard(t *testing.T, admin kubernetes.Interface) {
	const namespace = "restricted"
	_, err := admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var set appsv1.DaemonSet
	if err := yaml.UnmarshalStrict(deploy.Manifest, &set); err != nil {
		t.Fatal(err)
	}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "restricted"}, Spec: set.Spec.Template.Spec}
	pod.Spec.ServiceAccountName = "" // the ServiceAccount is in another namespace and does not matter here
	pod.Spec.AutomountServiceAccountToken = new(bool)
	create := func() error {
		_, err := admin.CoreV1().Pods(namespace).Create(t.Context(), &pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	var refused error
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		refused = create() // fails until the namespace has its default ServiceAccount
		return refused == nil, nil
	})
	if err != nil {
		t.Fatal(refused)
	}
	pod.Spec.Containers[0].SecurityContext.Capabilities = nil
	if err := create(); err == nil {
		t.Error("a pod with capabilities is admitted: Pod Security is not enforced")
	}
}
