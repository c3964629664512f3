package check

import (
	"fmt"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// leaseHolderWritesCheck is the row of lease-holder-writes in All.
var leaseHolderWritesCheck = Check{
	ID:               "lease-holder-writes",
	Guarantee:        "What a process writes for its work, it writes while the lease is its own, by what it was told and by its own clock.",
	Contract:         "The binary",
	Property:         Safety,
	AllowedBehaviors: []int{36, 41},
	New:              newLeadership,
}

// leadershipJudge: what a process writes for its work, it writes while the lease
// is its own by what it was told: since its last renewal the lease has not run
// out by its own clock, which stands still while the process does (trap 41).
//
// A process that never asks for a lease is not judged: it may have been told to
// do without. Nor is the first call that a process sends after its time: the
// machine may have stood still with that call under way. Nor, for a moment, what it
// sends when the machine goes on, if the lease has run out meanwhile: workers go on
// at once, before the one that renews it finds it lost (trap 41).
type leadershipJudge struct {
	findings
	sent  map[*process]time.Duration // when each sent its latest call
	awake time.Duration              // until when one that stood still may not have noticed
}

// waking bounds how long a process that stood still with its machine may take to
// notice; it may take no longer than it stood still.
const waking = time.Second

func newLeadership(Settings) Checker { return &leadershipJudge{sent: map[*process]time.Duration{}} }

func (j *leadershipJudge) Observe(m *Model, r *history.Record) {
	if r.Stall != nil {
		j.awake = max(j.awake, m.now+min(r.Stall.Duration, waking))
	}
	c := m.sent
	if c == nil {
		return
	}
	before := j.sent[c.process]
	j.sent[c.process] = m.at
	if !r.Request.IsWrite() || c.process.tenure.identity == "" {
		return
	}
	j.tested++
	t := &c.process.tenure
	// Within the lag, calls that were in the client when its time ended are still sent.
	stoodStill := t.held && m.now <= j.awake && m.at-t.stalled <= t.ends()+lag
	if t.seq != 0 && (before <= t.ends()+lag || stoodStill) {
		return
	}
	j.violate(func() Evidence {
		e := Evidence{
			Expected: "writes only of the process that holds the lease",
			Object:   refOf(r.Request),
			At:       m.now,
			Records:  []int64{m.seq},
		}
		did := fmt.Sprintf("%s wrote to %s (%s)", c.process.name, refOf(r.Request), r.Request.Verb)
		switch {
		case t.seq == 0:
			e.Summary = did + " before it was told that the lease is its own"
			return e
		case t.held:
			e.Summary = fmt.Sprintf("%s %s after it last renewed the lease, which lasts %s", did, seconds(m.at-t.since), seconds(t.lasts))
		default:
			e.Summary = fmt.Sprintf("%s %s after it gave the lease back", did, seconds(m.at-t.since))
		}
		e.Records = []int64{t.seq, m.seq}
		return e
	})
}
