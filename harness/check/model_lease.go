package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// leaseHolder records whether one process holds the leader-election lease, and until when.
type leaseHolder struct {
	// identity is the holderIdentity of the process; "" before its first write of the
	// lease.
	identity string
	// held is true if a response has confirmed that the process holds the lease, and the
	// process has not released it. since is the time of that response or release, and seq
	// is the sequence number of its record.
	held  bool
	since time.Duration
	seq   int64
	// duration is the leaseDurationSeconds of the last confirmed write.
	duration time.Duration
	// stalled is how long the machine was stalled since the last confirmed write.
	stalled time.Duration
}

// expiresAt returns the time when the lease expires. Until then, the process may write.
func (lease *leaseHolder) expiresAt() time.Duration {
	if lease.held {
		return lease.since + lease.duration
	}
	return lease.since
}

// mayGiveUp reports whether the process may end because it could not renew the lease.
// Leaders do so after the LeaderElector's RenewDeadline, by default two thirds of the
// lease duration.
func (lease *leaseHolder) mayGiveUp(at time.Duration) bool {
	return lease.held && at-lease.since >= lease.duration*2/3-lag
}

// leaseSpec contains the fields of a lease that decide who holds it and until when.
type leaseSpec struct {
	Spec struct {
		HolderIdentity       string
		LeaseDurationSeconds int
	}
}

func leaseOf(o *history.Object) (leaseSpec, bool) {
	var lease leaseSpec
	if o == nil || objects.Unmarshal(o.Body, &lease) != nil {
		return leaseSpec{}, false // the API server rejects a lease that cannot be decoded
	}
	return lease, true
}

// recordRequest records that the process sent a write of the lease.
func (lease *leaseHolder) recordRequest(r *history.Request, seq int64, at time.Duration) {
	written, ok := leaseOf(r.Object)
	switch {
	case !ok:
	case written.Spec.HolderIdentity != "":
		lease.identity = written.Spec.HolderIdentity
	case lease.held: // the process releases the lease
		lease.held, lease.since, lease.seq = false, at, seq
	}
}

// recordAnswer records the response to a write of the lease. If the response names another
// holder, the process may still write until its own lease expires.
func (lease *leaseHolder) recordAnswer(r *history.Response, seq int64, at time.Duration) {
	written, ok := leaseOf(r.Object)
	if ok && r.OK() && lease.identity != "" && written.Spec.HolderIdentity == lease.identity {
		lease.held, lease.since, lease.seq, lease.stalled = true, at, seq, 0
		lease.duration = time.Duration(written.Spec.LeaseDurationSeconds) * time.Second
	}
}
