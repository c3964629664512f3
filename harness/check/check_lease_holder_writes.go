package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// leaseHolderWritesCheck demands that only the holder of the leader-election lease writes. It
// examines each write of a process under test, except writes of this lease itself. In writes of the
// lease, it examines the identity.
//
// It skips a process that takes no part in leader election, because leader election may be disabled
// (see takesPart).
var leaseHolderWritesCheck = Check{
	ID:               "lease-holder-writes",
	Guarantee:        "Only the holder of the leader-election lease writes. If a controller under test has a contract, no two processes that run at the same time have the same holderIdentity.",
	Contract:         "The binary",
	Property:         Safety,
	Scope:            general,
	ExercisedWhen:    "A process that takes part in leader election writes another object, or two processes have the same holderIdentity.",
	Ignores:          "A process that neither writes a lease nor, if a controller under test has a contract, reads the lease of another process. The first write after the lease has expired, if the process was active until then. Writes in the second after a stall of the machine.",
	AllowedBehaviors: []string{"retry-delay", "paused-process"},
	New:              newLeaseHolderWritesChecker,
}

// leaseHolderWritesChecker reports writes of a process that does not hold the lease according to
// the process's own clock.
//
// A process holds the lease for leaseDurationSeconds after each successful write of the lease. The
// checker measures this time on the clock of the process. This clock stops while the process is
// paused (allowed behavior paused-process).
//
// Two kinds of late requests are allowed:
//
//   - the first request after the lease has expired. The machine may have stalled (given the
//     process no CPU time) while the process was sending it.
//   - all requests within resumeMax (1 s) after a stall of the machine, if the lease has not
//     expired on the clock of the process, which excludes the stall. Workers may continue until
//     the leader elector notices that the lease has expired.
type leaseHolderWritesChecker struct {
	findings
	contract bool // true if a controller under test has a contract
	// elections has the leases that processes have written with their own identity, and reads the
	// leases that each process has read.
	elections map[history.Ref]bool
	reads     map[*process][]history.Ref
	lastSent  map[*process]sentCall // when each process sent its latest call
	// writers has the process that has written a lease with each identity.
	writers map[string]*process
	// resumingUntil is the end of the time after a stall in which all requests are allowed.
	// A stall of the machine affects every process. resumingUntil is therefore on the clock of
	// the run (Model.now), not on that of one process.
	resumingUntil time.Duration
}

// sentCall is the time at which a process sent a request, on two clocks. The field processTime is
// on the clock of the process (Model.processTime), which stops while the process is paused. The
// field at is on the clock of the run (Model.now).
type sentCall struct{ processTime, at time.Duration }

// resumeMax is the maximum time after a stall (a time without CPU) in which all requests are
// allowed. The process may need this time to notice that its lease has expired. If the stall was
// shorter than resumeMax, requests are allowed only for as long as the stall took.
const resumeMax = time.Second

func newLeaseHolderWritesChecker(settings Settings) Checker {
	return &leaseHolderWritesChecker{
		findings: findings{excusesStalls: true}, contract: settings.hasContract(),
		elections: map[history.Ref]bool{}, reads: map[*process][]history.Ref{}, lastSent: map[*process]sentCall{}, writers: map[string]*process{},
	}
}

// recordLease records that a process read a lease or tried to write it.
func (checker *leaseHolderWritesChecker) recordLease(p *process, r *history.Request) {
	lease := *requestRef(r)
	switch {
	case r.Object != nil && p.lease.identity != "":
		checker.elections[lease] = true
	case r.Verb == "get" && !slices.Contains(checker.reads[p], lease):
		checker.reads[p] = append(checker.reads[p], lease)
	}
}

// checkIdentity reports a process that writes a lease with the identity of another process that still
// runs. Both then take the lease of the other for their own, and lead at the same time.
//
// It examines only controllers with a contract. Others may use the name of their pod, and on the
// provider embedded all replicas have the host name of the machine.
func (checker *leaseHolderWritesChecker) checkIdentity(m *Model, p *process, r *history.Request) {
	identity := p.lease.identity
	if !checker.contract || r.Object == nil || identity == "" {
		return
	}
	other := checker.writers[identity]
	if other == nil || other.ended {
		checker.writers[identity] = p
		return
	}
	if other == p {
		return
	}
	checker.exercised++
	checker.addViolation(func() Evidence {
		return Evidence{
			Summary:  fmt.Sprintf("%s sent %s %s with the holderIdentity %q of %s", p.name, r.Verb, requestRef(r), identity, other.name),
			Expected: "a holderIdentity that no other running process has",
			Object:   requestRef(r),
			At:       m.now,
			Records:  []int64{m.seq},
		}
	})
}

// takesPart reports whether a process takes part in leader election. Such a process has tried to
// write a lease, or it has read a lease that another process has tried to write. Controllers without
// a contract may read the lease for another purpose, so for them only writes count.
func (checker *leaseHolderWritesChecker) takesPart(p *process) bool {
	return p.lease.identity != "" || checker.contract && slices.ContainsFunc(checker.reads[p], func(lease history.Ref) bool { return checker.elections[lease] })
}

func (checker *leaseHolderWritesChecker) Observe(m *Model, r *history.Record) {
	if r.Stall != nil && r.Stall.Process == machine {
		checker.resumingUntil = max(checker.resumingUntil, m.now+min(r.Stall.Duration, resumeMax))
	}
	c := m.sent
	if c == nil {
		return
	}
	previouslySent := checker.lastSent[c.process]
	checker.lastSent[c.process] = sentCall{m.processTime, m.now}
	if c.verb == callLease {
		checker.recordLease(c.process, r.Request)
		checker.checkIdentity(m, c.process, r.Request)
	}
	if !r.Request.IsWrite() || !checker.takesPart(c.process) {
		return
	}
	checker.exercised++
	lease := &c.process.lease
	// A lease expires also during a stall, but the clock of the process does not count stalls.
	stalled := max(0, lease.stalled-m.stalls.since(previouslySent.at, machine, c.process.name))
	// For lag (1 s) after the lease has expired, the client may still send calls that its rate
	// limit delayed.
	resuming := lease.held && m.now <= checker.resumingUntil && m.processTime <= lease.expiresAt()+lag
	if lease.seq != 0 && (previouslySent.processTime+stalled <= lease.expiresAt()+lag || resuming) {
		return
	}
	checker.addViolation(func() Evidence {
		e := Evidence{
			Expected: "writes only from the holder of the lease",
			Object:   requestRef(r.Request),
			At:       m.now,
			Records:  []int64{m.seq},
		}
		write := fmt.Sprintf("%s sent %s %s", c.process.name, r.Request.Verb, requestRef(r.Request))
		switch {
		case lease.seq == 0:
			e.Summary = write + " before " + c.process.name + " acquired the lease"
			return e
		case lease.held:
			e.Summary = fmt.Sprintf("%s %s after %s last renewed the lease, which has a duration of %s", write, seconds(m.processTime+lease.stalled-lease.since), c.process.name, seconds(lease.duration))
		default:
			e.Summary = fmt.Sprintf("%s %s after %s released the lease", write, seconds(m.processTime+lease.stalled-lease.since), c.process.name)
		}
		e.Records = []int64{lease.seq, m.seq}
		return e
	})
}
