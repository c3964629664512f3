package check

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// TestPodCounts requires that the pod counts, which the objectSet updates at each change, equal
// new counts of all pods.
func TestPodCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := newObjectSet()
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			uid := types.UID(fmt.Sprint("pod-", rapid.IntRange(0, 5).Draw(t, "pod")))
			switch rapid.IntRange(0, 5).Draw(t, "do") {
			case 0:
				state.setOwner(drawOwner(t, name))
			case 1:
				state.removeOwner(types.UID(name.Draw(t, "gone")))
			case 2:
				state.removePod(uid)
			default:
				state.setPod(drawPod(t, uid, name))
			}
			for id, o := range state.owners {
				if diff := cmp.Diff(recount(state, o), state.podCountsOf(id), cmp.AllowUnexported(podCounts{})); diff != "" {
					t.Fatalf("counts of %s: -recounted +incremental:\n%s", id, diff)
				}
			}
		}
	})
}

// drawOwner draws a ReplicaSet with a random name, selector and template.
func drawOwner(t *rapid.T, name *rapid.Generator[string]) *objects.Owner {
	uid := name.Draw(t, "owner")
	return &objects.Owner{
		Ref: history.Ref{Namespace: namespace, Name: uid, UID: types.UID(uid)}, Kind: &objects.OwnerKinds[0],
		Selector:         labels.SelectorFromSet(labels.Set{"app": name.Draw(t, "selector")}),
		ReplicaSetFields: objects.ReplicaSetFields{Template: &objects.Template{Labels: labels.SelectorFromSet(labels.Set{"tier": name.Draw(t, "template")})}},
	}
}

// drawPod draws a pod with random labels, readiness and controllerRef.
func drawPod(t *rapid.T, uid types.UID, name *rapid.Generator[string]) *objects.Pod {
	p := &objects.Pod{
		Ref:    history.Ref{Resource: objects.PodResource, Namespace: namespace, Name: string(uid), UID: uid},
		Labels: labels.Set{"app": name.Draw(t, "app"), "tier": name.Draw(t, "tier")},
		Active: rapid.Bool().Draw(t, "active"), Ready: rapid.Bool().Draw(t, "ready"),
	}
	if rapid.Bool().Draw(t, "controlled") {
		p.Controller.UID = types.UID(name.Draw(t, "controller"))
	}
	return p
}

// recount computes the pod counts of an owner from all pods in the set.
func recount(state *objectSet, o *objects.Owner) (counts podCounts) {
	for _, p := range state.pods {
		matches := o.Selector.Matches(p.Labels)
		switch {
		case !p.Active:
		case p.Controller.UID == o.UID:
			counts.controlled++
			if matches {
				counts.replicas++
				counts.fullyLabeled += intOf(o.Template.Labels.Matches(p.Labels))
				counts.ready += intOf(p.Ready)
			}
		case p.Orphan() && matches:
			counts.orphans++
		}
	}
	return counts
}

// intOf returns 1 for true and 0 for false.
func intOf(b bool) int {
	if b {
		return 1
	}
	return 0
}
