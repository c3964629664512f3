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

// replica is one of the subject's, through all of its lives.
type replica struct {
	name    string
	subject *Subject

	mu      sync.Mutex       // held while it is started or ended
	current *trackedInstance // nil before the first; the last one otherwise
	retired bool             // it must not start any more
}

// trackedInstance is an instance, and whether its end was asked for.
type trackedInstance struct {
	Instance
	mu            sync.Mutex
	stopRequested bool
	pause         pauseState
	// endRecorded is closed when the end is recorded, so that the next life's beginning
	// stands after it.
	endRecorded chan struct{}
}

// pauseState is the time for which a life was paused.
type pauseState struct {
	paused    bool
	resumedAt time.Time // zero if it never was paused, or has not been resumed
	// lease is as it held it when it was paused, nil if it did not.
	lease *coordinationv1.Lease
	// restart begins another life if this one ends for having been paused.
	restart func()
}

// endAfterResumeMax bounds how long a replica may take after a pause to find its lease lost.
const endAfterResumeMax = 30 * time.Second

// explainsEnd reports whether the pause explains an end at the present moment.
func (s pauseState) explainsEnd() bool {
	return s.paused || !s.resumedAt.IsZero() && time.Since(s.resumedAt) < endAfterResumeMax
}

// errStopped is why no replica starts any more.
var errStopped = errors.New("the subject has been stopped")

// start begins a life, unless one goes on.
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

// stop ends the life that goes on, by the means given, and reports whether there
// was one.
func (r *replica) stop(forGood bool, by func(Instance) error) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retired = r.retired || forGood
	if !r.running() {
		return false, nil
	}
	r.current.mu.Lock()
	r.current.stopRequested = true
	r.current.mu.Unlock()
	if err := by(r.current.Instance); err != nil {
		return false, fmt.Errorf("ending %s: %w", r.name, err)
	}
	<-r.current.endRecorded
	return true, nil
}

// pause freezes the life that goes on, which may hold a lease, and reports whether
// there was one.
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

// resume lets the life go on that was paused, if it still does, and returns when
// it has come to itself.
func (r *replica) resume(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.running() {
		return nil
	}
	l := r.current
	l.mu.Lock()
	slept := l.pause
	if slept.paused {
		l.pause.paused, l.pause.resumedAt = false, time.Now()
	}
	l.mu.Unlock()
	if !slept.paused {
		return nil
	}
	r.record(l, history.ProcessResumed, "") // before it can do anything
	if err := l.Resume(ctx); err != nil {
		return fmt.Errorf("resuming %s: %w", r.name, err)
	}
	if slept.lease == nil {
		return nil
	}
	const interval = 20 * time.Millisecond
	return cluster.Poll(ctx, interval, r.name+" to renew its lease or to end", func(ctx context.Context) error {
		select {
		case <-l.Done():
			return nil
		default:
		}
		switch lease, err := r.subject.lease(ctx, r.name); {
		case err != nil:
			return err
		case lease == nil:
			return errors.New("it runs without its lease")
		case lease.Spec.RenewTime.Equal(slept.lease.Spec.RenewTime):
			return errors.New("it has not renewed its lease")
		}
		return nil
	})
}

// restart begins a life after one that ended for having been paused.
func (r *replica) restart(ctx context.Context) {
	if err := r.start(ctx); err != nil && !errors.Is(err, errStopped) {
		r.subject.fail(err)
	}
}

// running reports whether a life goes on. The caller holds r.mu.
func (r *replica) running() bool {
	if r.current == nil {
		return false
	}
	select {
	case <-r.current.Done():
		<-r.current.endRecorded // about to be closed
		return false
	default:
		return true
	}
}

// awaitEnd records the end of a life, and fails the subject when nobody asked for it.
func (r *replica) awaitEnd(l *trackedInstance) {
	defer close(l.endRecorded)
	<-l.Done()
	l.mu.Lock()
	asked, slept := l.stopRequested, l.pause
	l.mu.Unlock()
	if asked {
		r.record(l, history.ProcessStopped, l.Err().Error())
		return
	}
	if slept.explainsEnd() {
		r.record(l, history.ProcessStopped, "after a pause: "+l.Err().Error())
		go slept.restart()
		return
	}
	r.record(l, history.ProcessDied, l.Err().Error())
	r.subject.fail(l.Err())
}

func (r *replica) logTail() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == nil {
		return ""
	}
	return r.current.LogTail()
}

func (r *replica) record(l *trackedInstance, event history.ProcessEvent, detail string) {
	r.subject.options.Recorder.Append(history.Record{Process: &history.Process{
		Name: r.name, Event: event, PID: l.PID(), Detail: detail, Usage: l.Usage(),
	}})
}
