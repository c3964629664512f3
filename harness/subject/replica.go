package subject

import (
	"context"
	"fmt"
	"sync"

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
	// over is closed when the end is recorded, so that the next life's beginning
	// stands after it.
	over chan struct{}
}

// start begins a life, unless one goes on.
func (r *replica) start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.retired {
		return fmt.Errorf("starting %s: the subject has been stopped", r.name)
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
	asked := l.asked
	l.mu.Unlock()
	if asked {
		r.note(l, history.ProcessStopped, l.Err().Error())
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
