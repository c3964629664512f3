package check

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// ownershipCheck is the row of ownership in All.
var ownershipCheck = Check{
	ID:               "ownership",
	Guarantee:        "An object has at most one controller, and a controller deletes, adopts and releases only pods that are its own or nobody's.",
	Contract:         "ReplicaSet 5",
	Property:         Safety,
	AllowedBehaviors: []string{"inactive-pods", "delete-without-precondition", "overlapping-selectors"},
	New:              newOwnershipChecker,
}

// ownershipChecker: an object has one controller, and the subject writes only to
// pods that were its own, or nobody's, in some way that it may have them in mind.
type ownershipChecker struct{ findings }

func newOwnershipChecker(Settings) Checker { return &ownershipChecker{} }

func (checker *ownershipChecker) Observe(m *Model, r *history.Record) {
	if r.Commit != nil {
		checker.oneController(m, r)
	}
	c := m.sent
	if c == nil || c.pod == nil {
		return // what it was never shown, it cannot be judged by
	}
	switch {
	case c.verb == callDeletePod:
		checker.deletesItsOwn(m, c)
	case c.verb == callAdoptOrRelease && c.ownershipChange.adopts:
		checker.adoptsAnOrphan(m, c)
	case c.verb == callAdoptOrRelease:
		checker.releasesItsOwn(m, c)
	}
}

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
				Summary:  fmt.Sprintf("%s has %d controllers", ref, controllers),
				Expected: "at most one",
				Object:   &ref,
				At:       m.now,
				Records:  []int64{m.seq},
			}
		})
	}
}

// deletesItsOwn: a pod that it deletes was controlled by an owner that it runs.
func (checker *ownershipChecker) deletesItsOwn(m *Model, c *call) {
	checker.exercised++
	if _, adopted := c.process.adopted[c.pod.UID]; adopted {
		return
	}
	if !c.anyCachedState(func(s cachedPodState) bool { return s.pod.hasManagedOwner() }) {
		checker.report(m, c, "deleted", "deletes only of pods that an owner of the subject's kinds controls")
	}
}

// adoptsAnOrphan: a pod that it adopts was active, matched and nobody's, and
// after it had seen that, it read the owner live and found it not terminating.
func (checker *ownershipChecker) adoptsAnOrphan(m *Model, c *call) {
	checker.exercised++
	if seen := c.process.view.cachedPodStates(c.pod.UID); len(seen) > 0 && seen[len(seen)-1].pod.controller.UID == c.ownershipChange.owner {
		return // a write that changes nothing about it, as it was last seen
	}
	o := c.ownerState.owner()
	free := func(s cachedPodState) bool {
		return s.pod.orphan() && s.pod.active && (o == nil || c.ownerState.selectorChanged || o.selector.Matches(s.pod.labels))
	}
	if !c.anyCachedState(free) {
		checker.report(m, c, "adopted", "adoption only of active pods that match and that nobody controls")
		return
	}
	read, ok := c.process.liveReads[c.ownershipChange.owner]
	confirmed := func(s cachedPodState) bool { return free(s) && ok && !read.terminating && s.since < read.sentSeq }
	if !c.anyCachedState(confirmed) {
		checker.report(m, c, fmt.Sprintf("adopted for %s, without having read that live since,", c.ownerState.name()),
			"the owner read live and not terminating, after the orphan was seen")
	}
}

// releasesItsOwn: a pod that it releases, or writes to otherwise, was its own
// and matched no more.
func (checker *ownershipChecker) releasesItsOwn(m *Model, c *call) {
	checker.exercised++
	if !c.anyCachedState(func(s cachedPodState) bool { return s.pod.hasManagedOwner() }) {
		checker.report(m, c, "wrote to", "writes only to pods that an owner of the subject's kinds controls")
		return
	}
	if !c.ownershipChange.releases || c.ownerState == nil || c.ownerState.selectorChanged || c.ownerState.owner() == nil {
		return
	}
	o := c.ownerState.owner()
	if !c.anyCachedState(func(s cachedPodState) bool { return s.pod.controller.UID == o.UID && !o.selector.Matches(s.pod.labels) }) {
		checker.report(m, c, fmt.Sprintf("released from %s", o), "release only of pods that the selector does not match")
	}
}

func (checker *ownershipChecker) report(m *Model, c *call, did, expected string) {
	checker.addViolation(func() Evidence {
		controller := "nobody controls"
		if !c.pod.orphan() {
			controller = fmt.Sprintf("%s %s controls", c.pod.controller.Kind, c.pod.controller.Name)
		}
		return Evidence{
			Summary:  fmt.Sprintf("%s %s pod %s, which by its view %s", c.process.name, did, c.pod.Name, controller),
			Expected: expected,
			Object:   podRef(c.pod),
			At:       m.now,
			Records:  []int64{c.process.view.podStateSince[c.pod.UID], m.seq},
		}
	})
}
