package check

import (
	"fmt"
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

// refOf names what a request is about.
func refOf(r *history.Request) *history.Ref {
	return &history.Ref{Resource: r.Resource, Namespace: r.Namespace, Name: r.ObjectName()}
}

// seconds is how evidence writes a time.
func seconds(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }
