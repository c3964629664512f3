package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// leaseHolder says whether one process holds the leader-election lease, and until when. The model
// learns this from the process's writes of the lease.
type leaseHolder struct {
	// identity is the holderIdentity that the process writes to the lease. It is empty until the
	// first such write.
	identity string
	// held is true if a successful response named the process as the lease's holder. It is false
	// again after the process has released the lease. It stays true when the lease expires.
	held bool
	// since is the time of the last response that named the process as the holder, or of the
	// release. seq is the sequence number of the record that contains this response or release.
	since time.Duration
	seq   int64
	// duration is the leaseDurationSeconds in the last response that named the process as the
	// holder.
	duration time.Duration
	// stalled is how long the process got no CPU time since the last response that named it as
	// holder. The clock of the process excludes this time.
	stalled time.Duration
	// confirmed is the time of the last such response that the process has certainly received, and
	// stalledSinceConfirmed how long it got no CPU time since then. On a busy machine, a response can
	// arrive after the time limit of the process's client. The next update of the lease confirms a
	// response, unless the process read the lease again after such a time.
	confirmed             time.Duration
	stalledSinceConfirmed time.Duration
	// sent is when the process sent the last write of the lease. late is true if the process may have
	// read the lease again because the response to this write came late. Both are on the clock of
	// [leaseHolder.sinceConfirmed].
	sent time.Duration
	late bool
}

// sinceConfirmed returns the time from lease.confirmed until now, with the time for which the process got
// no CPU time. The argument at is the time on the clock of the process.
func (lease *leaseHolder) sinceConfirmed(at time.Duration) time.Duration {
	return at + lease.stalledSinceConfirmed - lease.confirmed
}

// requestTimeout is the time after which client-go gives up a request for the lease. This is half of
// RenewDeadline, which is by default two thirds of the lease duration.
func (lease *leaseHolder) requestTimeout() time.Duration { return lease.duration / 3 }

// recordRead records a GET request for the lease. The process sends one at once if the response to its last
// write came too late. Old versions of client-go send one before each write.
func (lease *leaseHolder) recordRead(at time.Duration) {
	lease.late = lease.late || lease.held && lease.sinceConfirmed(at)-lease.sent >= lease.requestTimeout()-lag
}

// awaitsConfirmation reports whether the response to the last write of the lease may have come late. The
// process then has not confirmed the response. It sent the write longer ago than lag, or has read the lease
// again.
func (lease *leaseHolder) awaitsConfirmation(at time.Duration) bool {
	return lease.confirmed != lease.since && (lease.late || lease.sinceConfirmed(at)-lease.sent > lag)
}

// recordStall adds a time for which the process got no CPU time.
func (lease *leaseHolder) recordStall(lasted time.Duration) {
	lease.stalled += lasted
	lease.stalledSinceConfirmed += lasted
}

// confirm records that the process has received the last response that named it as the holder.
func (lease *leaseHolder) confirm() {
	lease.confirmed, lease.stalledSinceConfirmed = lease.since, lease.stalled
	lease.late = false
}

// expiresAt returns when the process's lease expires or was released. The time is on the clock
// of the process.
func (lease *leaseHolder) expiresAt() time.Duration {
	if lease.held {
		return lease.since + lease.duration
	}
	return lease.since
}

// mayGiveUp reports whether, at the given time, the process may exit because it could not renew the
// lease. A leader exits if its LeaderElector has not renewed the lease within RenewDeadline, which
// is by default two thirds of the lease duration. RenewDeadline also runs while the process gets no
// CPU time. The argument at is a time on the clock of the process, which excludes such stalls.
func (lease *leaseHolder) mayGiveUp(at time.Duration) bool {
	return lease.held && lease.sinceConfirmed(at) >= lease.duration*2/3-lag
}

// leaseSpec contains the fields of a lease that name the holder and the lease's duration.
type leaseSpec struct {
	Spec struct {
		HolderIdentity       string
		LeaseDurationSeconds int
	}
}

// leaseOf decodes a lease. The bool result is true if the parameter o is a lease that can be
// decoded.
func leaseOf(o *history.Object) (leaseSpec, bool) {
	var lease leaseSpec
	if o == nil || objects.Unmarshal(o.Body, &lease) != nil {
		return leaseSpec{}, false // the API server rejects a lease that cannot be decoded
	}
	return lease, true
}

// recordRequest records a write of the lease that the process sent. A write without a
// holderIdentity releases the lease.
func (lease *leaseHolder) recordRequest(r *history.Request, seq int64, at time.Duration) {
	written, ok := leaseOf(r.Object)
	switch {
	case !ok:
	case written.Spec.HolderIdentity != "":
		lease.identity = written.Spec.HolderIdentity
		if !lease.late {
			lease.confirm()
		}
		lease.sent, lease.late = lease.sinceConfirmed(at), false
	case lease.held: // the write has no holderIdentity: the process releases the lease
		lease.held, lease.since, lease.seq = false, at, seq
	}
}

// recordAnswer records the response to a write of the lease. It ignores a response that names
// another holder, because the process may write until its last renewal expires.
func (lease *leaseHolder) recordAnswer(r *history.Response, seq int64, at time.Duration) {
	written, ok := leaseOf(r.Object)
	if ok && r.OK() && lease.identity != "" && written.Spec.HolderIdentity == lease.identity {
		acquired := !lease.held
		lease.held, lease.since, lease.seq, lease.stalled = true, at, seq, 0
		lease.duration = time.Duration(written.Spec.LeaseDurationSeconds) * time.Second
		if acquired { // the process works as the leader only after it has received this response
			lease.confirm()
			lease.sent = 0
		}
	}
}
