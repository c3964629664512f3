package check

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// ownershipJudge: an object has one controller, and the subject writes only to
// pods that were its own, or nobody's, in some way that it may have them in mind.
type ownershipJudge struct{ findings }

func newOwnership(Settings) Checker { return &ownershipJudge{} }

func (j *ownershipJudge) Observe(m *Model, r *history.Record) {
	if r.Commit != nil {
		j.oneController(m, r)
	}
	c := m.sent
	if c == nil || c.pod == nil {
		return // what it was never shown, it cannot be judged by
	}
	switch {
	case c.verb == callDelete:
		j.deletesItsOwn(m, c)
	case c.verb == callClaim && c.claim.adopts:
		j.adoptsAnOrphan(m, c)
	case c.verb == callClaim:
		j.releasesItsOwn(m, c)
	}
}

func (j *ownershipJudge) oneController(m *Model, r *history.Record) {
	controllers := 0
	for _, o := range r.Commit.Object.Owners {
		if o.Controller {
			controllers++
		}
	}
	if controllers > 1 {
		ref := r.Commit.Object.Ref
		j.violate(func() Evidence {
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
func (j *ownershipJudge) deletesItsOwn(m *Model, c *call) {
	j.tested++
	if _, adopted := c.process.adopted[c.pod.UID]; adopted {
		return
	}
	if !c.saw(func(s sighting) bool { return s.pod.managed() }) {
		j.accuse(m, c, "deleted", "deletes only of pods that an owner of the subject's kinds controls")
	}
}

// adoptsAnOrphan: a pod that it adopts was active, matched and nobody's, and
// after it had seen that, it read the owner live and found it not terminating.
func (j *ownershipJudge) adoptsAnOrphan(m *Model, c *call) {
	j.tested++
	if seen := c.process.view.sightings(c.pod.UID); len(seen) > 0 && seen[len(seen)-1].pod.controller.UID == c.claim.owner {
		return // a write that changes nothing about it, as it was last seen
	}
	o := c.ledger.owner()
	free := func(s sighting) bool {
		return s.pod.orphan() && s.pod.active && (o == nil || c.ledger.reselected || o.selector.Matches(s.pod.labels))
	}
	if !c.saw(free) {
		j.accuse(m, c, "adopted", "adoption only of active pods that match and that nobody controls")
		return
	}
	read, ok := c.process.reads[c.claim.owner]
	confirmed := func(s sighting) bool { return free(s) && ok && !read.terminating && s.since < read.sent }
	if !c.saw(confirmed) {
		j.accuse(m, c, fmt.Sprintf("adopted for %s, without having read that live since,", c.ledger.name()),
			"the owner read live and not terminating, after the orphan was seen")
	}
}

// releasesItsOwn: a pod that it releases, or writes to otherwise, was its own
// and matched no more.
func (j *ownershipJudge) releasesItsOwn(m *Model, c *call) {
	j.tested++
	if !c.saw(func(s sighting) bool { return s.pod.managed() }) {
		j.accuse(m, c, "wrote to", "writes only to pods that an owner of the subject's kinds controls")
		return
	}
	if !c.claim.releases || c.ledger == nil || c.ledger.reselected || c.ledger.owner() == nil {
		return
	}
	o := c.ledger.owner()
	if !c.saw(func(s sighting) bool { return s.pod.controller.UID == o.UID && !o.selector.Matches(s.pod.labels) }) {
		j.accuse(m, c, fmt.Sprintf("released from %s", o), "release only of pods that the selector does not match")
	}
}

// saw reports whether the process may have the call's pod in mind in such a way.
func (c *call) saw(such func(sighting) bool) bool {
	for _, s := range c.process.view.sightings(c.pod.UID) {
		if such(s) {
			return true
		}
	}
	return false
}

func (j *ownershipJudge) accuse(m *Model, c *call, did, expected string) {
	j.violate(func() Evidence {
		controller := "nobody controls"
		if !c.pod.orphan() {
			controller = fmt.Sprintf("%s %s controls", c.pod.controller.Kind, c.pod.controller.Name)
		}
		return Evidence{
			Summary:  fmt.Sprintf("%s %s pod %s, which by its view %s", c.process.name, did, c.pod.Name, controller),
			Expected: expected,
			Object:   podIn(c.pod),
			At:       m.now,
			Records:  []int64{c.process.view.claims[c.pod.UID], m.seq},
		}
	})
}
