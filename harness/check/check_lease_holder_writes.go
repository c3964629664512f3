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
	AllowedBehaviors: []string{"retry-delay", "paused-process"},
	New:              newLeaseHolderWritesChecker,
}

// leaseHolderWritesChecker: what a process writes for its work, it writes while the lease
// is its own by what it was told: since its last renewal the lease has not run
// out by its own clock, which stands still while the process does (trap 41).
//
// A process that never asks for a lease is not judged: it may have been told to
// do without. Nor is the first call that a process sends after its time: the
// machine may have stood still with that call under way. Nor, for a moment, what it
// sends when the machine goes on, if the lease has run out meanwhile: workers go on
// at once, before the one that renews it finds it lost (trap 41).
type leaseHolderWritesChecker struct {
	findings
	lastSent      map[*process]time.Duration // when each sent its latest call
	resumingUntil time.Duration              // until when one that stood still may not have noticed
}

// resumeMax bounds how long a process that stood still with its machine may take to
// notice; it may take no longer than it stood still.
const resumeMax = time.Second

func newLeaseHolderWritesChecker(Settings) Checker {
	return &leaseHolderWritesChecker{lastSent: map[*process]time.Duration{}}
}

func (checker *leaseHolderWritesChecker) Observe(m *Model, r *history.Record) {
	if r.Stall != nil {
		checker.resumingUntil = max(checker.resumingUntil, m.now+min(r.Stall.Duration, resumeMax))
	}
	c := m.sent
	if c == nil {
		return
	}
	before := checker.lastSent[c.process]
	checker.lastSent[c.process] = m.processTime
	if !r.Request.IsWrite() || c.process.lease.identity == "" {
		return
	}
	checker.exercised++
	lease := &c.process.lease
	// Within the lag, calls that were in the client when its time ended are still sent.
	stoodStill := lease.held && m.now <= checker.resumingUntil && m.processTime-lease.stalled <= lease.expiresAt()+lag
	if lease.seq != 0 && (before <= lease.expiresAt()+lag || stoodStill) {
		return
	}
	checker.addViolation(func() Evidence {
		e := Evidence{
			Expected: "writes only of the process that holds the lease",
			Object:   requestRef(r.Request),
			At:       m.now,
			Records:  []int64{m.seq},
		}
		did := fmt.Sprintf("%s wrote to %s (%s)", c.process.name, requestRef(r.Request), r.Request.Verb)
		switch {
		case lease.seq == 0:
			e.Summary = did + " before it was told that the lease is its own"
			return e
		case lease.held:
			e.Summary = fmt.Sprintf("%s %s after it last renewed the lease, which lasts %s", did, seconds(m.processTime-lease.since), seconds(lease.duration))
		default:
			e.Summary = fmt.Sprintf("%s %s after it gave the lease back", did, seconds(m.processTime-lease.since))
		}
		e.Records = []int64{lease.seq, m.seq}
		return e
	})
}
