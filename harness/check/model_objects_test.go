package check

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestTallies: counts kept step by step are those of counting anew.
func TestTallies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			uid := types.UID(fmt.Sprint("pod-", rapid.IntRange(0, 5).Draw(t, "pod")))
			switch rapid.IntRange(0, 5).Draw(t, "do") {
			case 0:
				w.setOwner(drawOwner(t, name))
			case 1:
				w.removeOwner(types.UID(name.Draw(t, "gone")))
			case 2:
				w.removePod(uid)
			default:
				w.setPod(drawPod(t, uid, name))
			}
			for id, o := range w.owners {
				if diff := cmp.Diff(recount(w, o), w.tally(id), cmp.AllowUnexported(tally{})); diff != "" {
					t.Fatalf("tally of %s: -counted anew +kept:\n%s", id, diff)
				}
			}
		}
	})
}

func drawOwner(t *rapid.T, name *rapid.Generator[string]) *owner {
	uid := name.Draw(t, "owner")
	return &owner{
		Ref: history.Ref{Namespace: namespace, Name: uid, UID: types.UID(uid)}, kind: &ownerKinds[0],
		selector: labels.SelectorFromSet(labels.Set{"app": name.Draw(t, "selector")}),
		setFacts: setFacts{template: &template{labels: labels.SelectorFromSet(labels.Set{"tier": name.Draw(t, "template")})}},
	}
}

func drawPod(t *rapid.T, uid types.UID, name *rapid.Generator[string]) *pod {
	p := &pod{
		Ref:    history.Ref{Resource: podResource, Namespace: namespace, Name: string(uid), UID: uid},
		labels: labels.Set{"app": name.Draw(t, "app"), "tier": name.Draw(t, "tier")},
		active: rapid.Bool().Draw(t, "active"), ready: rapid.Bool().Draw(t, "ready"),
	}
	if rapid.Bool().Draw(t, "controlled") {
		p.controller.UID = types.UID(name.Draw(t, "controller"))
	}
	return p
}

func recount(w *world, o *owner) (t tally) {
	for _, p := range w.pods {
		matches := o.selector.Matches(p.labels)
		switch {
		case !p.active:
		case p.controller.UID == o.UID:
			t.controlled++
			if matches {
				t.replicas++
				t.labeled += truth(o.template.labels.Matches(p.labels))
				t.ready += truth(p.ready)
			}
		case p.orphan() && matches:
			t.orphans++
		}
	}
	return t
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}
