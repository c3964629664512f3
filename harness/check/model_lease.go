package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// tenure is what one process has been told of the lease that lets it work.
type tenure struct {
	// identity is what the process calls itself in the lease; "" before it asked
	// for it.
	identity string
	// held: the process has been told that the lease is its own, and has not given
	// it back. Since is when it was last told, or gave it back, and seq the record.
	held  bool
	since time.Duration
	seq   int64
	// lasts is for how long the lease was last taken, as the lease says.
	lasts time.Duration
	// stalled is for how long the machine has stood still since then.
	stalled time.Duration
}

// ends is until when it may work.
func (t *tenure) ends() time.Duration {
	if t.held {
		return t.since + t.lasts
	}
	return t.since
}

// givesUp reports whether it may be so long since it last renewed the lease that it
// ends for it, as leaders do some time before the lease has run out (LeaderElector's
// RenewDeadline, two thirds of it by default).
func (t *tenure) givesUp(at time.Duration) bool {
	return t.held && at-t.since >= t.lasts*2/3-lag
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

// asks takes in a write of the lease that is sent.
func (t *tenure) asks(r *history.Request, seq int64, at time.Duration) {
	lease, ok := leaseOf(r.Object)
	switch {
	case !ok:
	case lease.Spec.HolderIdentity != "":
		t.identity = lease.Spec.HolderIdentity
	case t.held: // it gives the lease back
		t.held, t.since, t.seq = false, at, seq
	}
}

// told takes in the answer to a write of the lease. A leader that finds another's
// name in it tries on for as long as it last had it, and works meanwhile.
func (t *tenure) told(r *history.Response, seq int64, at time.Duration) {
	lease, ok := leaseOf(r.Object)
	if ok && r.OK() && t.identity != "" && lease.Spec.HolderIdentity == t.identity {
		t.held, t.since, t.seq, t.stalled = true, at, seq, 0
		t.lasts = time.Duration(lease.Spec.LeaseDurationSeconds) * time.Second
	}
}
