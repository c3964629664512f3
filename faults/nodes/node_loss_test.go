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

// fakeCluster is a cluster that notes how its nodes are lost.
type fakeCluster struct {
	cluster.Cluster
	cluster.Kubelets
	cluster.Machines
	done []string
}

func (l *fakeCluster) note(what, node string) error {
	l.done = append(l.done, what+" "+node)
	return nil
}

func (l *fakeCluster) Name() string                                   { return "losing" }
func (l *fakeCluster) Silence(_ context.Context, node string) error   { return l.note("silence", node) }
func (l *fakeCluster) Wake(_ context.Context, node string) error      { return l.note("wake", node) }
func (l *fakeCluster) Register(_ context.Context, node string) error  { return l.note("register", node) }
func (l *fakeCluster) KillNode(_ context.Context, node string) error  { return l.note("kill", node) }
func (l *fakeCluster) StartNode(_ context.Context, node string) error { return l.note("start", node) }
func (l *fakeCluster) CutOff(_ context.Context, node string) error    { return l.note("cut off", node) }
func (l *fakeCluster) Reconnect(_ context.Context, node string) error {
	return l.note("reconnect", node)
}

// clusterWithoutNodes is a cluster on whose nodes nobody can lay hands.
type clusterWithoutNodes struct{ cluster.Cluster }

func (clusterWithoutNodes) Name() string { return "bare" }

// TestNodeLoss: a node is lost in each way, it and its pods count as not ready then, and
// it is had back. One that is lost already is not picked.
func TestNodeLoss(t *testing.T) {
	ready := func(status corev1.ConditionStatus) []corev1.NodeCondition {
		return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	}
	for _, test := range []struct {
		kind faults.Type
		want []string
		gone bool // the node and its pods, not only out of touch
	}{
		{NotReady, []string{"silence up", "wake up"}, false},
		{Stop, []string{"kill up", "start up"}, false},
		{CutOff, []string{"cut off up", "reconnect up"}, false},
		{Delete, []string{"register up"}, true},
	} {
		t.Run(test.kind.Name, func(t *testing.T) {
			env, admin := lossEnv(test.kind.Name,
				&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "up"}, Status: corev1.NodeStatus{Conditions: ready(corev1.ConditionTrue)}},
				&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "lost"}, Status: corev1.NodeStatus{Conditions: ready(corev1.ConditionUnknown)}},
			)
			nodes := &fakeCluster{}
			env.Cluster = nodes
			fault, err := faulttest.Parse(test.kind, "count: 2")
			if err != nil {
				t.Fatal(err)
			}
			if err := faults.Inject(t.Context(), fault, env); err != nil {
				t.Fatal(err)
			}
			node, err := admin.CoreV1().Nodes().Get(t.Context(), "up", metav1.GetOptions{})
			if gone := err != nil; gone != test.gone || !gone && cluster.Ready(node) {
				t.Errorf("the node is %v, %v", node, err)
			}
			pod, err := admin.CoreV1().Pods("ns").Get(t.Context(), "a", metav1.GetOptions{})
			if gone := err != nil; gone != test.gone || !gone && cluster.PodReady(pod) {
				t.Errorf("its pod is %v, %v", pod, err)
			}
			for range 2 { // and when there is nothing left to heal
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

// TestNodeLossUnsupported: a cluster that cannot lose nodes says so, and nothing is
// written of them.
func TestNodeLossUnsupported(t *testing.T) {
	for _, kind := range []faults.Type{NotReady, Stop, CutOff} {
		env, admin := lossEnv(kind.Name, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "up"},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
		env.Cluster = clusterWithoutNodes{}
		fault, err := faulttest.Parse(kind, "{}")
		if err != nil {
			t.Fatal(err)
		}
		err = faults.Inject(t.Context(), fault, env)
		if err == nil || !strings.Contains(err.Error(), "the nodes of a cluster of bare are out of reach") {
			t.Errorf("%s: error %v", kind.Name, err)
		}
		for _, action := range admin.Actions() {
			if action.GetVerb() == "update" {
				t.Errorf("%s: wrote %v", kind.Name, action)
			}
		}
	}
}

// lossEnv is where a fault befalls nodes, on one of which, "up", pod a of the
// namespace ns is ready.
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
