package controlplane

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/controller/podgc"
)

// TestPodCollectorAgainstUpstream checks that the podCollector writes what the pod garbage collector of
// kube-controller-manager writes, for pods in many situations. The two may act in different rounds,
// because upstream's timer for a missing node ends at the moment of a round.
func TestPodCollectorAgainstUpstream(t *testing.T) {
	ours := podWrites(t, func(ctx context.Context, client kubernetes.Interface, factory informers.SharedInformerFactory) {
		newPodCollector(client, factory).run(ctx)
	})
	upstream := podWrites(t, func(ctx context.Context, client kubernetes.Interface, factory informers.SharedInformerFactory) {
		core := factory.Core().V1()
		podgc.NewPodGC(ctx, client, core.Pods(), core.Nodes(), 12500).Run(ctx)
	})
	for name, write := range upstream {
		if got := ours[name]; got.requests != write.requests || (got.last-write.last).Abs() > podGCPeriod {
			t.Errorf("pod %s: our collector sent %q until %v, upstream's %q until %v", name, got.requests, got.last, write.requests, write.last)
		}
	}
	want := 2 + 2 + 4 + 4 // terminating pods without a node and of the node out, all pods of the nodes gone and late
	if len(upstream) != want || len(ours) != want {
		t.Errorf("upstream's collector deleted %d pods, ours %d; want %d", len(upstream), len(ours), want)
	}
}

// podWrite has all writes of one pod, and the time from the start of the collector until the last one.
type podWrite struct {
	requests string
	last     time.Duration
}

// transitionTime matches the time of the round in a patch.
var transitionTime = regexp.MustCompile(`"lastTransitionTime":"[^"]*",`)

// podWrites returns the writes of a collector of pods within five minutes, by the names of the pods. The
// nodes late and back are deleted after 70 s. The node back is created again 30 s later.
func podWrites(t *testing.T, collect func(context.Context, kubernetes.Interface, informers.SharedInformerFactory)) map[string]podWrite {
	writes := map[string]podWrite{}
	var lock sync.Mutex // upstream deletes some pods in parallel
	synctest.Test(t, func(t *testing.T) {
		outOfService := corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}
		late, back := newNode("late", corev1.ConditionTrue), newNode("back", corev1.ConditionTrue)
		client := fake.NewClientset(append(podsOfNodes("", "ready", "lost", "out", "out-ready", "gone", "late", "back"), late, back,
			newNode("ready", corev1.ConditionTrue), newNode("lost", corev1.ConditionUnknown),
			newNode("out", corev1.ConditionUnknown, outOfService), newNode("out-ready", corev1.ConditionTrue, outOfService))...)
		start := time.Now()
		write := func(name, request string) {
			lock.Lock()
			defer lock.Unlock()
			writes[name] = podWrite{writes[name].requests + request + "\n", time.Since(start)}
		}
		client.PrependReactor("*", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			switch action := action.(type) {
			case clienttesting.PatchAction:
				write(action.GetName(), fmt.Sprintf("patch %s %s", action.GetSubresource(), transitionTime.ReplaceAll(action.GetPatch(), nil)))
			case clienttesting.DeleteActionImpl:
				write(action.Name, fmt.Sprintf("delete, grace period %d", *action.DeleteOptions.GracePeriodSeconds))
			}
			return false, nil, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		factory := informers.NewSharedInformerFactory(client, 0)
		factory.Core().V1().Pods().Informer()
		factory.Core().V1().Nodes().Informer()
		factory.StartWithContext(ctx)
		var group sync.WaitGroup
		group.Go(func() { collect(ctx, client, factory) })
		time.Sleep(70 * time.Second)
		nodes := client.CoreV1().Nodes()
		err := errors.Join(nodes.Delete(ctx, late.Name, metav1.DeleteOptions{}), nodes.Delete(ctx, back.Name, metav1.DeleteOptions{}))
		time.Sleep(30 * time.Second)
		if _, again := nodes.Create(ctx, back, metav1.CreateOptions{}); err != nil || again != nil {
			t.Error(err, again)
		}
		time.Sleep(200 * time.Second)
		cancel()
		group.Wait()
		factory.Shutdown()
	})
	return writes
}

// podsOfNodes returns four pods for each node: running and failed ones, and terminating ones of both
// kinds. They have no finalizers, so the first delete removes them.
func podsOfNodes(nodes ...string) (pods []runtime.Object) {
	for _, node := range nodes {
		for _, phase := range []corev1.PodPhase{corev1.PodRunning, corev1.PodFailed} {
			for _, terminating := range []bool{false, true} {
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%s-%t", node, phase, terminating), UID: "uid", Generation: 2},
					Spec:       corev1.PodSpec{NodeName: node},
					Status:     corev1.PodStatus{Phase: phase},
				}
				if terminating {
					pod.DeletionTimestamp = &metav1.Time{}
				}
				pods = append(pods, pod)
			}
		}
	}
	return pods
}

func newNode(name string, ready corev1.ConditionStatus, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
	}
}
