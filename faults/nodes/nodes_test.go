package nodes

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/internal/faulttest"
)

func TestCountParams(t *testing.T) {
	for _, faultType := range []faults.Type{Cordon, Taint, NotReady, Stop, CutOff, Delete} {
		faulttest.Params(t, faultType, []faulttest.Case{
			{Text: "{}"},
			{Text: "count: 3"},
			{Text: "count: 0", Want: "s.yaml:1:8: " + faultType.Name + ".count: 0 is out of bounds; expected 1 to 1000"},
			{Text: "count: 1001", Want: "s.yaml:1:8: " + faultType.Name + ".count: 1001 is out of bounds; expected 1 to 1000"},
		})
	}
}

func TestTaintParams(t *testing.T) {
	faulttest.Params(t, Taint, []faulttest.Case{
		{Text: "effect: NoExecute"},
		{Text: "{count: 2, effect: NoSchedule}"},
		{Text: "effect: PreferNoSchedule", Want: `s.yaml:1:9: node-taint.effect: unknown value "PreferNoSchedule"; expected one of NoExecute, NoSchedule`},
		{Text: "effects: NoSchedule", Want: `s.yaml:1:1: node-taint: unknown field "effects"; expected count or effect; did you mean effect?`},
	})
}

func TestDrainParams(t *testing.T) {
	faulttest.Params(t, Drain, []faulttest.Case{
		{Text: "{}"},
		{Text: "{count: 2, patience: 0s}"},
		{Text: "count: -1", Want: "s.yaml:1:8: node-drain.count: -1 is out of bounds; expected 1 to 1000"},
		{Text: "patience: 61m", Want: "s.yaml:1:11: node-drain.patience: 1h1m0s is out of bounds; expected 0s to 1h0m0s"},
	})
}

// TestCandidates checks that a fault picks only worker nodes. It must not pick a node that is
// already in the fault's state, such as cordoned.
func TestCandidates(t *testing.T) {
	node := func(name string, change func(*corev1.Node)) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		change(&n)
		return n
	}
	evicting, closing := tainted(corev1.TaintEffectNoExecute), tainted(corev1.TaintEffectNoSchedule)
	nodes := []corev1.Node{
		node("b", func(*corev1.Node) {}),
		node("control-plane", func(n *corev1.Node) { n.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""} }),
		node("cordoned", cordoned.apply),
		node("tainted", evicting.apply),
		node("closed", closing.apply),
		node("silent", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }),
		node("healed", func(n *corev1.Node) {
			for _, m := range []mark{cordoned, evicting, closing} {
				m.apply(n)
				m.apply(n)
				m.remove(n)
			}
		}),
		node("a", func(*corev1.Node) {}),
	}
	for given, want := range map[*state][]string{
		&cordoned.state:        {"a", "b", "closed", "healed", "silent", "tainted"},
		&evicting.state:        {"a", "b", "cordoned", "healed", "silent"},
		&closing.state:         {"a", "b", "cordoned", "healed", "silent"},
		&machineStopped.state:  {"a", "b", "closed", "cordoned", "healed", "tainted"},
		&nodePartitioned.state: {"a", "b", "closed", "cordoned", "healed", "tainted"},
		&kubeletStopped.state:  {"a", "b", "closed", "cordoned", "healed", "tainted"},
		&nodeDeleted.state:     {"a", "b", "closed", "cordoned", "healed", "tainted"},
	} {
		if diff := cmp.Diff(want, given.candidates(nodes)); diff != "" {
			t.Errorf("candidates to be %s (-want +got):\n%s", given.description, diff)
		}
	}
}

// TestEvictable checks that a drain evicts only pods on the given nodes. The pods must have a
// controllerRef and must not be terminating.
func TestEvictable(t *testing.T) {
	pod := func(name string, change func(*corev1.Pod)) corev1.Pod {
		p := corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{Controller: ptr.To(true)}}},
			Spec:       corev1.PodSpec{NodeName: "node"},
		}
		change(&p)
		return p
	}
	pods := []corev1.Pod{
		pod("b", func(*corev1.Pod) {}),
		pod("elsewhere", func(p *corev1.Pod) { p.Spec.NodeName = "other" }),
		pod("nowhere-yet", func(p *corev1.Pod) { p.Spec.NodeName = "" }),
		pod("going", func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Now()) }),
		pod("orphan", func(p *corev1.Pod) { p.OwnerReferences = nil }),
		pod("a", func(*corev1.Pod) {}),
	}
	var names []string
	for _, p := range evictable(pods, []string{"node"}) {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
