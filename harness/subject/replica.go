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

	mu      sync.Mutex // held while it is started or ended
	life    *life      // nil before the first; the last one otherwise
	retired bool       // it must not start any more
}

// life is an instance, and whether its end was asked for.
type life struct {
	Instance
	mu    sync.Mutex
	asked bool
	sleep sleep
	// over is closed when the end is recorded, so that the next life's beginning
	// stands after it.
	over chan struct{}
}

// sleep is the time for which a life was paused.
type sleep struct {
	paused bool
	woke   time.Time // zero if it never was paused, or has not been resumed
	// lease is as it held it when it was paused, nil if it did not.
	lease *coordinationv1.Lease
	// revive begins another life if this one ends for having been paused.
	revive func()
}

// wakeMax bounds how long a replica may take after a pause to find its lease lost.
const wakeMax = 30 * time.Second

// excuses reports whether the pause explains an end at the present moment.
func (s sleep) excuses() bool { return s.paused || !s.woke.IsZero() && time.Since(s.woke) < wakeMax }

// errStopped is why no replica starts any more.
var errStopped = errors.New("the subject has been stopped")

// start begins a life, unless one goes on.
func (r *replica) start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.retired {
		return fmt.Errorf("starting %s: %w", r.name, errStopped)
	}
	if r.runs() {
		return nil
	}
	instance, err := r.subject.options.Launch(ctx, r.name)
	if err != nil {
		return fmt.Errorf("starting %s: %w", r.name, err)
	}
	r.life = &life{Instance: instance, over: make(chan struct{})}
	r.note(r.life, history.ProcessStarted, "")
	go r.watch(r.life)
	return nil
}

// end ends the life that goes on, by the means given, and reports whether there
// was one.
func (r *replica) end(forGood bool, by func(Instance) error) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retired = r.retired || forGood
	if !r.runs() {
		return false, nil
	}
	r.life.mu.Lock()
	r.life.asked = true
	r.life.mu.Unlock()
	if err := by(r.life.Instance); err != nil {
		return false, fmt.Errorf("ending %s: %w", r.name, err)
	}
	<-r.life.over
	return true, nil
}

// pause freezes the life that goes on, which may hold a lease, and reports whether
// there was one.
func (r *replica) pause(ctx context.Context, lease *coordinationv1.Lease) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.runs() {
		return false, nil
	}
	r.life.mu.Lock()
	r.life.sleep = sleep{paused: true, lease: lease, revive: func() { r.revive(context.WithoutCancel(ctx)) }}
	r.life.mu.Unlock()
	if err := r.life.Pause(ctx); err != nil {
		return false, fmt.Errorf("pausing %s: %w", r.name, err)
	}
	r.note(r.life, history.ProcessPaused, "")
	return true, nil
}

// resume lets the life go on that was paused, if it still does, and returns when
// it has come to itself.
func (r *replica) resume(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.runs() {
		return nil
	}
	l := r.life
	l.mu.Lock()
	slept := l.sleep
	if slept.paused {
		l.sleep.paused, l.sleep.woke = false, time.Now()
	}
	l.mu.Unlock()
	if !slept.paused {
		return nil
	}
	r.note(l, history.ProcessResumed, "") // before it can do anything
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

// revive begins a life after one that ended for having been paused.
func (r *replica) revive(ctx context.Context) {
	if err := r.start(ctx); err != nil && !errors.Is(err, errStopped) {
		r.subject.fail(err)
	}
}

// runs reports whether a life goes on. The caller holds r.mu.
func (r *replica) runs() bool {
	if r.life == nil {
		return false
	}
	select {
	case <-r.life.Done():
		<-r.life.over // about to be closed
		return false
	default:
		return true
	}
}

// watch records the end of a life, and fails the subject when nobody asked for it.
func (r *replica) watch(l *life) {
	defer close(l.over)
	<-l.Done()
	l.mu.Lock()
	asked, slept := l.asked, l.sleep
	l.mu.Unlock()
	if asked {
		r.note(l, history.ProcessStopped, l.Err().Error())
		return
	}
	if slept.excuses() {
		r.note(l, history.ProcessStopped, "after a pause: "+l.Err().Error())
		go slept.revive()
		return
	}
	r.note(l, history.ProcessDied, l.Err().Error())
	r.subject.fail(l.Err())
}

func (r *replica) logTail() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life == nil {
		return ""
	}
	return r.life.LogTail()
}

func (r *replica) note(l *life, event history.ProcessEvent, detail string) {
	r.subject.options.Recorder.Append(history.Record{Process: &history.Process{
		Name: r.name, Event: event, PID: l.PID(), Detail: detail, Usage: l.Usage(),
	}})
}
