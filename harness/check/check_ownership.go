package check

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// ownershipCheck examines each committed object. It also examines each delete, adoption and
// release of a pod by a controller of ReplicaSets or ReplicationControllers, and each delete
// by a controller without a contract.
//
// It skips a write to an object that was never in the cache of the process. A
// controller without a contract must not delete an object that cannot belong to it. The
// chain of such an object's controllers ends with a kind that the controller does not watch.
// The check skips kinds of which this controller has no objects.
var ownershipCheck = Check{
	ID:               "ownership",
	Guarantee:        "An object has at most one controller. A controller deletes no object that another controller controls. A controller of ReplicaSets or ReplicationControllers deletes only pods that its owner controls. It releases only pods that no longer match the selector. It adopts only active orphans that match, after it has read the owner from the API server.",
	Contract:         "ReplicaSet 5",
	Property:         Safety,
	Scope:            general,
	AllowedBehaviors: []string{"inactive-pods", "delete-without-precondition", "overlapping-selectors"},
	New:              newOwnershipChecker,
}

// ownershipChecker reports objects with two controllers, and writes to pods and deletes that
// no cached version of the object justifies.
//
// Only for pods of ReplicaSets and ReplicationControllers it examines adoptions and other
// changes. Other controllers may set labels or conditions of objects that they do not
// control.
type ownershipChecker struct{ findings }

func newOwnershipChecker(Settings) Checker { return &ownershipChecker{} }

func (checker *ownershipChecker) Observe(m *Model, r *history.Record) {
	if r.Commit != nil {
		checker.oneController(m, r)
	}
	c := m.sent
	switch {
	case c == nil:
	case c.ownerState == nil && (c.pod == nil || m.tested.genericWrites(kube.Pod)):
		checker.deletesNoForeign(m, c)
	case c.pod == nil: // the pod was never in the cache
	case c.verb == callDeletePod:
		checker.deletesItsOwn(m, c)
	case c.verb == callAdoptOrRelease && c.ownershipChange.adopts:
		checker.adoptsAnOrphan(m, c)
	case c.verb == callAdoptOrRelease:
		checker.releasesItsOwn(m, c)
	}
}

// oneController checks that a committed object has at most one controller.
func (checker *ownershipChecker) oneController(m *Model, r *history.Record) {
	controllers := 0
	for _, o := range r.Commit.Object.Owners {
		if o.Controller {
			controllers++
		}
	}
	if controllers > 1 {
		ref := r.Commit.Object.Ref
		checker.addViolation(func() Evidence {
			return Evidence{
				Summary:  fmt.Sprintf("%s has %d owner references with controller=true", ref, controllers),
				Expected: "at most one controller",
				Object:   &ref,
				At:       m.now,
				Records:  []int64{m.seq},
			}
		})
	}
}

// deletesItsOwn checks that the controller of a deleted pod was a ReplicaSet or
// ReplicationController in some cached version.
func (checker *ownershipChecker) deletesItsOwn(m *Model, c *call) {
	checker.exercised++
	if _, adopted := c.process.adopted[c.pod.UID]; adopted {
		return
	}
	if !c.anyCachedState(func(s cachedPodState) bool { return m.tested.manages(s.pod) }) {
		checker.report(m, c, "deleted", "", "deletes only of pods that a ReplicaSet or ReplicationController controls")
	}
}

// adoptsAnOrphan checks an adopted pod. In some cached version, the pod must have been
// active, without a controller, and matched by the selector.
//
// After the process received that version, it must have read the owner from the API server,
// and the owner must not have been terminating.
func (checker *ownershipChecker) adoptsAnOrphan(m *Model, c *call) {
	checker.exercised++
	if states := c.process.view.cachedPodStates(c.pod.UID); len(states) > 0 && states[len(states)-1].pod.Controller.UID == c.ownershipChange.owner {
		return // according to the latest cached version, the write changes nothing
	}
	o := c.ownerState.owner()
	free := func(s cachedPodState) bool {
		return s.pod.Orphan() && s.pod.Active && (o == nil || c.ownerState.selectorChanged || o.Selector.Matches(s.pod.Labels))
	}
	if !c.anyCachedState(free) {
		checker.report(m, c, "adopted", "", "adoption only of active pods that match and have no controller")
		return
	}
	read, ok := c.process.liveReads[c.ownershipChange.owner]
	confirmed := func(s cachedPodState) bool { return free(s) && ok && !read.terminating && s.since < read.sentSeq }
	if !c.anyCachedState(confirmed) {
		checker.report(m, c, "adopted", fmt.Sprintf(" for %s without a live read of it since the pod became an orphan", c.ownerState.name()),
			"a live read that shows the owner not terminating, after the pod became an orphan")
	}
}

// releasesItsOwn checks a pod that the process released or changed in another way. In some
// cached version, a ReplicaSet or ReplicationController must have controlled the pod. For a
// release, the selector of that owner must not have matched the pod.
func (checker *ownershipChecker) releasesItsOwn(m *Model, c *call) {
	checker.exercised++
	if !c.anyCachedState(func(s cachedPodState) bool { return m.tested.manages(s.pod) }) {
		checker.report(m, c, "wrote to", "", "writes only to pods that a ReplicaSet or ReplicationController controls")
		return
	}
	if !c.ownershipChange.releases || c.ownerState == nil || c.ownerState.selectorChanged || c.ownerState.owner() == nil {
		return
	}
	o := c.ownerState.owner()
	if !c.anyCachedState(func(s cachedPodState) bool { return s.pod.Controller.UID == o.UID && !o.Selector.Matches(s.pod.Labels) }) {
		checker.report(m, c, "released", fmt.Sprintf(" from %s", o), "release only of pods that the selector does not match")
	}
}

func (checker *ownershipChecker) report(m *Model, c *call, verb, detail, expected string) {
	checker.addViolation(func() Evidence {
		controller := "no controller"
		if !c.pod.Orphan() {
			controller = fmt.Sprintf("controller %s %s", c.pod.Controller.Kind, c.pod.Controller.Name)
		}
		return Evidence{
			Summary:  fmt.Sprintf("%s %s %s%s; in its cache the pod has %s", c.process.name, verb, podName(c.pod), detail, controller),
			Expected: expected,
			Object:   podRef(c.pod),
			At:       m.now,
			Records:  []int64{c.process.view.podStateSince[c.pod.UID], m.seq},
		}
	})
}

// deletesNoForeign checks a delete of a generic controller.
func (checker *ownershipChecker) deletesNoForeign(m *Model, c *call) {
	if c.generic == nil || !c.generic.deletes || c.generic.object == nil {
		return
	}
	view, o := c.process.view, c.generic.object
	if !view.metadata.childResources[o.Resource] {
		return
	}
	checker.exercised++
	if !view.metadata.foreign(o) {
		return
	}
	checker.addViolation(func() Evidence {
		return m.evidenceOf(&o.Ref, fmt.Sprintf("%s deleted %s; in its cache the object has %s", c.process.name, o, o.describeController()),
			"deletes only of objects that no other controller controls")
	})
}
