package embedded

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// TestPodLifecycle sends pod writes that no real kubelet would send, and that the API server must
// refuse. KWOK sends such a write if a fault changes the pod at the same time.
func TestPodLifecycle(t *testing.T) {
	c, _ := startCluster(t, Options{Nodes: 1, PodStartDelay: startDelay})
	admin, kubelets := clientFor(t, c, cluster.Admin), clientFor(t, c, cluster.Kubelet)
	t.Run("terminal phases", func(t *testing.T) { testTerminalPhases(t, admin, kubelets) })
	t.Run("other pods with the same name", func(t *testing.T) { testSameName(t, admin, kubelets) })
	t.Run("a pod that fails while it starts", func(t *testing.T) { testFailAtStart(t, admin) })
}

// kubeletStart is the patch with which KWOK makes a pod Running and Ready, without fields that the
// policies ignore.
const kubeletStart = `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`

func testTerminalPhases(t *testing.T, admin, kubelets kubernetes.Interface) {
	for _, phase := range []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded} {
		name := "terminal-" + strings.ToLower(string(phase))
		createPod(t, admin, name)
		eventuallyPod(t, admin, name, "is Running", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
		setPhase(t, admin, name, phase)
		for _, client := range []kubernetes.Interface{admin, kubelets} {
			for _, patch := range []string{kubeletStart, `{"status":{"phase":"Pending"}}`, `{"status":{"phase":"Unknown"}}`} {
				_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
				if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "never leaves the phase") {
					t.Errorf("patch %s of a %s pod: error %v, want Invalid", patch, phase, err)
				}
			}
		}
		eventuallyPod(t, admin, name, "is no longer Ready", func(p *corev1.Pod) bool {
			return p.Status.Phase == phase && condition(p, corev1.PodReady) == corev1.ConditionFalse
		})
		_, err := kubelets.CoreV1().Pods(metav1.NamespaceDefault).Patch(t.Context(), name, types.StrategicMergePatchType,
			[]byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`), metav1.PatchOptions{}, "status")
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "never becomes Ready") {
			t.Errorf("patch of a %s pod to Ready: error %v, want Invalid", phase, err)
		}
		deletePod(t, admin, name)
		eventuallyGone(t, admin, name)
	}
}

// testSameName verifies that a late write for a deleted pod does not affect a new pod with the same
// name.
func testSameName(t *testing.T, admin, kubelets kubernetes.Interface) {
	pods := kubelets.CoreV1().Pods(metav1.NamespaceDefault)
	unassigned := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "same-name"},
		Spec:       corev1.PodSpec{SchedulerName: "none", Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
	if _, err := admin.CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), unassigned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := pods.Patch(t.Context(), unassigned.Name, types.StrategicMergePatchType, []byte(kubeletStart), metav1.PatchOptions{}, "status")
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "pods on its node") {
		t.Errorf("start of a pod without a node: error %v, want Invalid", err)
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	if err := pods.Delete(t.Context(), unassigned.Name, now); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "only terminating pods") {
		t.Errorf("delete by a kubelet of a pod that is not terminating: error %v, want Invalid", err)
	}
	if err := admin.CoreV1().Pods(metav1.NamespaceDefault).Delete(t.Context(), unassigned.Name, now); err != nil {
		t.Errorf("delete by a user: %v", err)
	}
}

// testFailAtStart makes pods fail at about the time at which KWOK makes them Running. No pod may
// leave the phase Failed.
func testFailAtStart(t *testing.T, admin kubernetes.Interface) {
	const pods = 40
	var group sync.WaitGroup
	defer group.Wait() // Wait even if createPod fails, which ends this function early
	for i := range pods {
		name := fmt.Sprintf("race-%d", i)
		createPod(t, admin, name)
		group.Go(func() {
			<-time.After(startDelay + time.Duration(i-pods/2)*time.Millisecond) // most pods fail at about the time of KWOK's write
			setPhase(t, admin, name, corev1.PodFailed)
		})
	}
	group.Wait()
	for i := range pods {
		name := fmt.Sprintf("race-%d", i)
		eventuallyPod(t, admin, name, "is Failed and not Ready", func(p *corev1.Pod) bool {
			if p.Status.Phase != corev1.PodFailed {
				t.Fatalf("pod %s went from Failed to %s", name, p.Status.Phase)
			}
			return condition(p, corev1.PodReady) != corev1.ConditionTrue
		})
	}
}

// setPhase sets the phase of a pod as a fault does, but without a precondition.
func setPhase(t *testing.T, client kubernetes.Interface, name string, phase corev1.PodPhase) {
	patch := fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase)
	if _, err := client.CoreV1().Pods(metav1.NamespaceDefault).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Errorf("setting the phase of pod %s to %s: %v", name, phase, err)
	}
}
