package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// leaseHolder is what one process has been told of the lease that lets it work.
type leaseHolder struct {
	// identity is what the process calls itself in the lease; "" before it asked
	// for it.
	identity string
	// held: the process has been told that the lease is its own, and has not given
	// it back. Since is when it was last told, or gave it back, and seq the record.
	held  bool
	since time.Duration
	seq   int64
	// duration is for how long the lease was last taken, as the lease says.
	duration time.Duration
	// stalled is for how long the machine has stood still since then.
	stalled time.Duration
}

// expiresAt is until when it may work.
func (lease *leaseHolder) expiresAt() time.Duration {
	if lease.held {
		return lease.since + lease.duration
	}
	return lease.since
}

// mayGiveUp reports whether it may be so long since it last renewed the lease that it
// ends for it, as leaders do some time before the lease has run out (LeaderElector's
// RenewDeadline, two thirds of it by default).
func (lease *leaseHolder) mayGiveUp(at time.Duration) bool {
	return lease.held && at-lease.since >= lease.duration*2/3-lag
}

// leaseSpec is what a lease says.
type leaseSpec struct {
	Spec struct {
		HolderIdentity       string
		LeaseDurationSeconds int
	}
}

func leaseOf(o *history.Object) (leaseSpec, bool) {
	var lease leaseSpec
	if o == nil || unmarshalSome(o.Body, &lease) != nil {
		return leaseSpec{}, false // the API server refuses what cannot be read
	}
	return lease, true
}

// recordRequest takes in a write of the lease that is sent.
func (t *leaseHolder) recordRequest(r *history.Request, seq int64, at time.Duration) {
	lease, ok := leaseOf(r.Object)
	switch {
	case !ok:
	case lease.Spec.HolderIdentity != "":
		t.identity = lease.Spec.HolderIdentity
	case t.held: // it gives the lease back
		t.held, t.since, t.seq = false, at, seq
	}
}

// recordAnswer takes in the answer to a write of the lease. A leader that finds another's
// name in it tries on for as long as it last had it, and works meanwhile.
func (t *leaseHolder) recordAnswer(r *history.Response, seq int64, at time.Duration) {
	lease, ok := leaseOf(r.Object)
	if ok && r.OK() && t.identity != "" && lease.Spec.HolderIdentity == t.identity {
		t.held, t.since, t.seq, t.stalled = true, at, seq, 0
		t.duration = time.Duration(lease.Spec.LeaseDurationSeconds) * time.Second
	}
}
