package subject

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// replica is one replica of the subject. It stays the same across restarts, and each
// start creates a new instance.
type replica struct {
	name    string
	subject *Subject

	mu      sync.Mutex       // held while an instance starts or ends
	current *trackedInstance // the latest instance; nil before the first start
	retired bool             // no further start is allowed
}

// trackedInstance is an instance with the state that decides whether its end was
// expected.
type trackedInstance struct {
	Instance
	mu            sync.Mutex
	stopRequested bool
	pause         pauseState
	// endRecorded is closed when the end of the instance is in the history. The start
	// of the next instance waits for it, so that the records are in order.
	endRecorded chan struct{}
}

// pauseState contains the times of a pause of an instance and what the run must do
// after it.
type pauseState struct {
	paused    bool
	resumedAt time.Time // zero if the instance was never paused or is still paused
	// lease is the lease that the replica held before the pause; nil if it held none.
	lease *coordinationv1.Lease
	// restart makes the run start another instance after this one has ended because of
	// the pause.
	restart func()
}

// endAfterResumeMax is the time after a resume within which an end counts as a
// consequence of the pause. A resumed leader may take that long to notice that it has lost
// its lease, and exits then.
const endAfterResumeMax = 30 * time.Second

// explainsEnd reports whether the pause explains an end of the instance at the given
// time.
func (s pauseState) explainsEnd() bool {
	return s.paused || !s.resumedAt.IsZero() && time.Since(s.resumedAt) < endAfterResumeMax
}

// errStopped means that the subject was stopped and no replica may start again.
var errStopped = errors.New("the subject has been stopped")

// start starts an instance, unless one is running.
func (r *replica) start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.retired {
		return fmt.Errorf("starting %s: %w", r.name, errStopped)
	}
	if r.running() {
		return nil
	}
	instance, err := r.subject.options.Launch(ctx, r.name)
	if err != nil {
		return fmt.Errorf("starting %s: %w", r.name, err)
	}
	r.current = &trackedInstance{Instance: instance, endRecorded: make(chan struct{})}
	r.record(r.current, history.ProcessStarted, "")
	go r.awaitEnd(r.current)
	return nil
}

// stop ends the running instance with the function by. It reports whether an instance
// was running.
func (r *replica) stop(permanently bool, by func(Instance) error) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retired = r.retired || permanently
	if !r.running() {
		return false, nil
	}
	r.current.mu.Lock()
	r.current.stopRequested = true
	r.current.mu.Unlock()
	if err := by(r.current.Instance); err != nil {
		return false, fmt.Errorf("stopping %s: %w", r.name, err)
	}
	<-r.current.endRecorded
	return true, nil
}

// pause suspends the running instance and reports whether one was running. The
// argument lease is the lease that the replica holds, or nil.
func (r *replica) pause(ctx context.Context, lease *coordinationv1.Lease) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.running() {
		return false, nil
	}
	r.current.mu.Lock()
	r.current.pause = pauseState{paused: true, lease: lease, restart: func() { r.restart(context.WithoutCancel(ctx)) }}
	r.current.mu.Unlock()
	if err := r.current.Pause(ctx); err != nil {
		return false, fmt.Errorf("pausing %s: %w", r.name, err)
	}
	r.record(r.current, history.ProcessPaused, "")
	return true, nil
}

// resume resumes the instance if it is paused. If the replica held the lease before
// the pause, resume waits until it has renewed the lease or has ended.
func (r *replica) resume(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.running() {
		return nil
	}
	current := r.current
	current.mu.Lock()
	pause := current.pause
	if pause.paused {
		current.pause.paused, current.pause.resumedAt = false, time.Now()
	}
	current.mu.Unlock()
	if !pause.paused {
		return nil
	}
	r.record(current, history.ProcessResumed, "") // record it before the instance can act
	if err := current.Resume(ctx); err != nil {
		return fmt.Errorf("resuming %s: %w", r.name, err)
	}
	if pause.lease == nil {
		return nil
	}
	const interval = 20 * time.Millisecond
	return cluster.Poll(ctx, interval, r.name+" to renew its lease or to end", func(ctx context.Context) error {
		select {
		case <-current.Done():
			return nil
		default:
		}
		switch lease, err := r.subject.lease(ctx, r.name); {
		case err != nil:
			return err
		case lease == nil:
			return errors.New("it runs, but does not hold the lease")
		case lease.Spec.RenewTime.Equal(pause.lease.Spec.RenewTime):
			return errors.New("it has not renewed its lease")
		}
		return nil
	})
}

// restart starts an instance after one that ended because of a pause.
func (r *replica) restart(ctx context.Context) {
	if err := r.start(ctx); err != nil && !errors.Is(err, errStopped) {
		r.subject.fail(err)
	}
}

// running reports whether an instance is running. The caller holds r.mu.
func (r *replica) running() bool {
	if r.current == nil {
		return false
	}
	select {
	case <-r.current.Done():
		<-r.current.endRecorded // awaitEnd closes it soon
		return false
	default:
		return true
	}
}

// awaitEnd waits until an instance ends and records the end. If neither the run nor a
// pause explains the end, awaitEnd reports a failure of the subject.
func (r *replica) awaitEnd(current *trackedInstance) {
	defer close(current.endRecorded)
	<-current.Done()
	current.mu.Lock()
	requested, pause := current.stopRequested, current.pause
	current.mu.Unlock()
	if requested {
		r.record(current, history.ProcessStopped, current.Err().Error())
		return
	}
	if pause.explainsEnd() {
		r.record(current, history.ProcessStopped, "after a pause: "+current.Err().Error())
		go pause.restart()
		return
	}
	r.record(current, history.ProcessDied, current.Err().Error())
	r.subject.fail(current.Err())
}

func (r *replica) logTail() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == nil {
		return ""
	}
	return r.current.LogTail()
}

func (r *replica) record(current *trackedInstance, event history.ProcessEvent, detail string) {
	r.subject.options.Recorder.Append(history.Record{Process: &history.Process{
		Name: r.name, Event: event, PID: current.PID(), Detail: detail, Usage: current.Usage(),
	}})
}
