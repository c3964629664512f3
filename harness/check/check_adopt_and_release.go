package check

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// adoptAndReleaseCheck is the row of adopt-and-release in All.
var adoptAndReleaseCheck = Check{
	ID:               "adopt-and-release",
	Guarantee:        "Before a controller reports on an owner, it has adopted the active pods that match it and are nobody's, and released those of its own that do not match.",
	Contract:         "ReplicaSet 5, 6",
	Property:         Safety,
	AllowedBehaviors: []string{"inactive-pods", "overlapping-selectors"},
	New:              newAdoptAndReleaseChecker,
}

// adoptAndReleaseChecker: when a process reports on an owner, it has let go every pod that is
// the owner's and does not match, and taken every active one that matches and is
// nobody's, or has tried to: those that it had been shown to be so before it was told
// of the version that it reports from, and the lag before that. A sync claims first,
// and an error in that ends it.
type adoptAndReleaseChecker struct {
	findings
	lastTried map[*process]map[types.UID]time.Duration // when each pod was last claimed or let go
}

func newAdoptAndReleaseChecker(Settings) Checker {
	return &adoptAndReleaseChecker{lastTried: map[*process]map[types.UID]time.Duration{}}
}

func (checker *adoptAndReleaseChecker) Observe(m *Model, r *history.Record) {
	if r.Process != nil {
		maps.DeleteFunc(checker.lastTried, func(p *process, _ map[types.UID]time.Duration) bool { return p.ended })
	}
	c := m.sent
	if c == nil {
		return
	}
	if c.verb == callAdoptOrRelease && c.pod != nil {
		checker.recordTry(c, m.processTime)
	}
	if c.reportedOwner(r.Request) == nil {
		return
	}
	state, o := c.ownerState, c.ownerState.owner()
	if o.terminating || state.selectorChanged {
		return
	}
	checker.exercised++
	if p := checker.notTried(c, state.statusBounds.since-lag); p != nil {
		checker.addViolation(func() Evidence {
			return m.evidenceOf(podRef(p), fmt.Sprintf("%s: %s reported on it, and had not %s pod %s", o, c.process.name, missingAction(p), p.Name),
				"what matches adopted, and what does not released, before anything is reported")
		})
	}
}

func missingAction(p *pod) string {
	if p.orphan() {
		return "tried to adopt"
	}
	return "tried to release"
}

// recordTry takes in that the process claims a pod, or lets it go.
func (checker *adoptAndReleaseChecker) recordTry(c *call, at time.Duration) {
	tried := checker.lastTried[c.process]
	if tried == nil {
		tried = map[types.UID]time.Duration{}
		checker.lastTried[c.process] = tried
	}
	maps.DeleteFunc(tried, func(uid types.UID, _ time.Duration) bool { return c.process.view.pods[uid] == nil })
	tried[c.pod.UID] = at
}

// notTried is a pod that the process has left as it is since some time, though it is to
// be adopted or released, the first in order of names; nil if there is none.
func (checker *adoptAndReleaseChecker) notTried(c *call, since time.Duration) (first *pod) {
	o, view := c.ownerState.owner(), c.process.view
	counts := view.podCountsOf(o.UID)
	if counts.orphans == 0 && counts.controlled == counts.replicas {
		return nil
	}
	look := func(pods map[types.UID]*pod) {
		for uid, p := range pods {
			if first != nil && first.Name <= p.Name || !o.toAdoptOrRelease(p) {
				continue
			}
			from := view.adoptableOrReleasableSince(uid, o)
			if at, tried := checker.lastTried[c.process][uid]; from <= since && !(tried && at >= from) {
				first = p
			}
		}
	}
	look(view.controlled[o.UID])
	look(view.orphans[o.Namespace])
	return first
}

// adoptableOrReleasableSince is since when a pod has stood so in view that the owner is to claim it
// or let it go.
func (v *view) adoptableOrReleasableSince(uid types.UID, o *owner) time.Duration {
	since := time.Duration(0)
	states := v.podVersionsSince[uid]
	for i := len(states) - 1; i >= 0 && o.toAdoptOrRelease(states[i].value); i-- {
		since = states[i].since
	}
	return since
}
