package subject_test

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history/historytest"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/embedded/embeddedtest"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// TestOtherController verifies that the program under test can run a controller outside of
// controllers/CONTRACT.md: the StatefulSet controller. The cluster's kube-controller-manager must
// run all other controllers. Only the program may create pods for a StatefulSet.
func TestOtherController(t *testing.T) {
	underTest := []kube.Controller{{
		Name: "statefulset-controller", Kind: "StatefulSet",
		ConcurrencyFlag: "--concurrent-statefulset-syncs", ClusterRole: "system:controller:statefulset-controller",
	}}
	c := embeddedtest.Start(t, underTest...)
	admin := kubernetes.NewForConfigOrDie(c.Config(cluster.Admin))
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
	selector := &metav1.LabelSelector{MatchLabels: template.Labels}
	_, err := admin.AppsV1().StatefulSets(metav1.NamespaceDefault).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "set"},
		Spec:       appsv1.StatefulSetSpec{Replicas: ptr.To[int32](2), Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = admin.AppsV1().Deployments(metav1.NamespaceDefault).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "deployment"},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the control plane to make the Deployment available", func(ctx context.Context) (bool, error) {
		d, err := admin.AppsV1().Deployments(metav1.NamespaceDefault).Get(ctx, "deployment", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == 2, err
	})
	statefulSet := func(ctx context.Context) (*appsv1.StatefulSet, error) {
		return admin.AppsV1().StatefulSets(metav1.NamespaceDefault).Get(ctx, "set", metav1.GetOptions{})
	}
	if set, err := statefulSet(t.Context()); err != nil || set.Status.ObservedGeneration != 0 {
		t.Errorf("the control plane has reconciled the StatefulSet (error %v), want only the subject to do that: %+v", err, set)
	}
	startUpstream(t, c, admin, underTest)
	await(t, "the subject to make the StatefulSet ready", func(ctx context.Context) (bool, error) {
		set, err := statefulSet(ctx)
		return err == nil && set.Status.ReadyReplicas == 2, err
	})
}

func await(t *testing.T, description string, condition wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, condition); err != nil {
		t.Fatalf("waiting for %s: %v", description, err)
	}
}

// startUpstream starts kube-controller-manager as the program under test, with the given
// controllers.
func startUpstream(t *testing.T, c *embedded.Cluster, admin kubernetes.Interface, controllers []kube.Controller) {
	t.Helper()
	dir := t.TempDir()
	s, err := subject.Start(t.Context(), subject.Options{
		Target: subject.Upstream, Controllers: controllers, Account: subject.User(), Replicas: 1, LeaseNamespace: subject.LeaseNamespace,
		Launch: subject.Local{
			Executable: c.Binaries().KubeControllerManager,
			Settings: subject.Settings{
				Controllers: controllers, QPS: 100, Burst: 100, Concurrency: 1, LeaseDuration: 5 * time.Second, LeaseNamespace: subject.LeaseNamespace,
			},
			Cluster:  c,
			Route:    func(string, *rest.Config) error { return nil },
			StateDir: dir, LogDir: dir,
		}.Launcher(),
		Holder:   func(string) string { return "" },
		Admin:    admin,
		Recorder: &historytest.Recording{},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if err := s.WaitForLeader(t.Context()); err != nil {
		t.Fatal(err)
	}
}
