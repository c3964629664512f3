package nodes

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/internal/faulttest"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history/historytest"
)

// fakeCluster is a cluster that records the operations, such as KillNode, that a fault performs
// on its nodes.
type fakeCluster struct {
	cluster.Cluster
	cluster.Kubelets
	cluster.Machines
	done []string
}

func (c *fakeCluster) note(what, node string) error {
	c.done = append(c.done, what+" "+node)
	return nil
}

func (c *fakeCluster) Name() string { return "losing" }
func (c *fakeCluster) PauseKubelet(_ context.Context, node string) error {
	return c.note("silence", node)
}
func (c *fakeCluster) ResumeKubelet(_ context.Context, node string) error {
	return c.note("wake", node)
}
func (c *fakeCluster) Register(_ context.Context, node string) error  { return c.note("register", node) }
func (c *fakeCluster) KillNode(_ context.Context, node string) error  { return c.note("kill", node) }
func (c *fakeCluster) StartNode(_ context.Context, node string) error { return c.note("start", node) }
func (c *fakeCluster) CutOff(_ context.Context, node string) error    { return c.note("cut off", node) }
func (c *fakeCluster) Reconnect(_ context.Context, node string) error {
	return c.note("reconnect", node)
}

// clusterWithoutNodes is a cluster that implements no operation to stop nodes.
type clusterWithoutNodes struct{ cluster.Cluster }

func (clusterWithoutNodes) Name() string { return "bare" }

// TestNodeLoss checks that each fault makes a node and the node's pods not ready, and later
// recovers the node. A fault must not pick a node that is not ready.
func TestNodeLoss(t *testing.T) {
	ready := func(status corev1.ConditionStatus) []corev1.NodeCondition {
		return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	}
	for _, test := range []struct {
		faultType faults.Type
		want      []string
		gone      bool // the fault must delete the node and the node's pods
	}{
		{NotReady, []string{"silence up", "wake up"}, false},
		{Stop, []string{"kill up", "start up"}, false},
		{CutOff, []string{"cut off up", "reconnect up"}, false},
		{Delete, []string{"register up"}, true},
	} {
		t.Run(test.faultType.Name, func(t *testing.T) {
			env, admin := lossEnv(test.faultType.Name,
				&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "up"}, Status: corev1.NodeStatus{Conditions: ready(corev1.ConditionTrue)}},
				&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "lost"}, Status: corev1.NodeStatus{Conditions: ready(corev1.ConditionUnknown)}},
			)
			nodes := &fakeCluster{}
			env.Cluster = nodes
			fault, err := faulttest.Parse(test.faultType, "count: 2")
			if err != nil {
				t.Fatal(err)
			}
			if err := faults.Inject(t.Context(), fault, env); err != nil {
				t.Fatal(err)
			}
			node, err := admin.CoreV1().Nodes().Get(t.Context(), "up", metav1.GetOptions{})
			if gone := err != nil; gone != test.gone || !gone && cluster.Ready(node) {
				t.Errorf("node %v, error %v; want it not ready, or gone after node-delete", node, err)
			}
			pod, err := admin.CoreV1().Pods("ns").Get(t.Context(), "a", metav1.GetOptions{})
			if gone := err != nil; gone != test.gone || !gone && cluster.PodReady(pod) {
				t.Errorf("pod %v, error %v; want it not ready, or gone after node-delete", pod, err)
			}
			for range 2 { // the second Heal has no node to recover
				if err := faults.Heal(t.Context(), fault, env); err != nil {
					t.Error(err)
				}
			}
			if diff := cmp.Diff(test.want, nodes.done); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNodeLossUnsupported checks the error for a cluster that cannot stop nodes. The fault must
// then write nothing to the API server.
func TestNodeLossUnsupported(t *testing.T) {
	for _, faultType := range []faults.Type{NotReady, Stop, CutOff} {
		env, admin := lossEnv(faultType.Name, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "up"},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
		env.Cluster = clusterWithoutNodes{}
		fault, err := faulttest.Parse(faultType, "{}")
		if err != nil {
			t.Fatal(err)
		}
		err = faults.Inject(t.Context(), fault, env)
		if err == nil || !strings.Contains(err.Error(), "the provider bare cannot stop or recover nodes") {
			t.Errorf("%s: error %v, want one that the provider cannot stop nodes", faultType.Name, err)
		}
		for _, action := range admin.Actions() {
			if action.GetVerb() == "update" {
				t.Errorf("%s: unexpected write %v", faultType.Name, action)
			}
		}
	}
}

// lossEnv returns an Env for a cluster with the given nodes. The pod ns/a is ready on the
// node "up".
func lossEnv(name string, nodes ...*corev1.Node) (*faults.Env, *fake.Clientset) {
	admin := fake.NewClientset(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"},
		Spec:       corev1.PodSpec{NodeName: "up"},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	})
	for _, node := range nodes {
		_ = admin.Tracker().Add(node)
	}
	return &faults.Env{
		Rand: rand.New(rand.NewPCG(1, 1)), Admin: admin, Namespace: "ns", Clock: clock.RealClock{},
		Report: faults.NewReporter(&historytest.Recording{}, 0, name),
	}, admin
}
