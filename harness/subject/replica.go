package subject

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// replica starts, pauses and stops one replica of the program under test, and records its end.
// Each start creates a new instance, which is one process of the replica.
type replica struct {
	name    string // name of the replica, such as subject-0
	subject *Subject

	mu      lock             // locked while an instance starts, stops, pauses or resumes
	current *trackedInstance // the latest instance, even after its end; nil before the first start
	retired bool             // true after Subject.Stop; the replica must not start again
}

// lock is a mutual exclusion lock for operations that take long. It is a channel with a capacity
// of 1, because tests use the clock of testing/synctest. That clock stands still while a goroutine
// waits for a sync.Mutex, but not while it waits for a channel.
type lock chan struct{}

// Lock waits until the lock is free, and locks it.
func (l lock) Lock() { l <- struct{}{} }

// Unlock makes the lock free.
func (l lock) Unlock() { <-l }

// trackedInstance is an instance (one process of a replica) with the facts that explain its end.
// These are its pauses, and whether gauntlet stopped it. When the instance ends, awaitEnd decides
// from these facts whether the end was expected.
type trackedInstance struct {
	Instance
	mu            sync.Mutex
	stopRequested bool // true after a method of Subject has stopped or killed the instance
	pause         pauseState
	// endRecorded is closed when the history contains the end of the instance. The replica starts
	// its next instance only after that, so the history has the end before the next start.
	endRecorded chan struct{}
}

// pauseState describes the latest pause of an instance. The zero value means that the instance
// was never paused.
type pauseState struct {
	paused    bool
	resumedAt time.Time // zero if the instance was never paused or is still paused
	// lease is the leader-election Lease before the pause. It is nil if this replica did not hold
	// the Lease.
	lease *coordinationv1.Lease
	// restart starts the replica again. awaitEnd calls it if the instance has ended because of the
	// pause.
	restart func()
}

// endAfterResumeMax is the time after Resume in which gauntlet expects that the replica may exit. A
// leader that has lost the lease during the pause exits, but may need this time to notice the loss.
const endAfterResumeMax = 30 * time.Second

// explainsEnd reports whether a pause explains that an instance has just ended. It returns true if
// the instance is paused, or was resumed less than [endAfterResumeMax] ago.
func (s pauseState) explainsEnd() bool {
	return s.paused || !s.resumedAt.IsZero() && time.Since(s.resumedAt) < endAfterResumeMax
}

// errStopped is the error of an attempt to start a replica after [Subject.Stop].
var errStopped = errors.New("the subject has been stopped")

// nameIfRunning returns the replica's name, or "" if the replica is not running.
func (r *replica) nameIfRunning() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.running() {
		return ""
	}
	return r.name
}

// start starts a new instance of the replica. If an instance is running, start does nothing.
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
		if prefix := "starting " + r.name + ": "; !strings.HasPrefix(err.Error(), prefix) { // package process writes it, too
			err = fmt.Errorf("%s%w", prefix, err)
		}
		return err
	}
	r.current = &trackedInstance{Instance: instance, endRecorded: make(chan struct{})}
	r.record(r.current, history.ProcessStarted, "")
	go r.awaitEnd(context.WithoutCancel(ctx), r.current)
	return nil
}

// stop ends the running instance with the given function, such as one that calls Instance.Kill. It
// returns false if no instance was running. If the argument permanently is true, the replica cannot
// be started again.
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

// pause suspends the running instance. It returns false if no instance was running. The argument
// lease is the leader-election Lease if this replica holds the Lease, and nil otherwise.
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
		r.current.mu.Lock()
		r.current.pause = pauseState{} // a later exit is no effect of a pause
		r.current.mu.Unlock()
		return false, fmt.Errorf("pausing %s: %w", r.name, err)
	}
	r.record(r.current, history.ProcessPaused, "")
	return true, nil
}

// resume resumes the instance if it is paused. If the replica held the lease before the pause,
// resume waits until the replica has renewed the lease or the instance has ended.
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
	r.record(current, history.ProcessResumed, "") // recorded before the resumed instance can send a request
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
			return fmt.Errorf("%s is running, but does not hold Lease %s/%s", r.name, r.subject.options.LeaseNamespace, leaseName)
		case lease.Spec.RenewTime.Equal(pause.lease.Spec.RenewTime):
			return fmt.Errorf("%s has not renewed Lease %s/%s", r.name, r.subject.options.LeaseNamespace, leaseName)
		}
		return nil
	})
}

// restart starts the replica again after its instance has ended because of a pause or a lost lease. If
// the start fails, restart marks the program under test as failed, unless the program was stopped.
func (r *replica) restart(ctx context.Context) {
	if err := r.start(ctx); err != nil && !errors.Is(err, errStopped) {
		r.subject.fail(err)
	}
}

// running reports whether an instance is running. The caller must hold r.mu.
func (r *replica) running() bool {
	if r.current == nil {
		return false
	}
	select {
	case <-r.current.Done():
		<-r.current.endRecorded // a short wait, until awaitEnd has recorded the end
		return false
	default:
		return true
	}
}

// awaitEnd waits until the given instance ends, and adds the end to the history. If the end was not
// expected, awaitEnd marks the program under test as failed; see [Subject.Failed]. A leader that could
// not renew its lease must exit, so awaitEnd starts it again, as a kubelet would.
func (r *replica) awaitEnd(ctx context.Context, current *trackedInstance) {
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
	couldNotRenew := r.couldNotRenew(ctx) // before the record: an ended process holds no lease
	r.record(current, history.ProcessDied, current.Err().Error())
	if couldNotRenew {
		go r.restart(ctx)
		return
	}
	r.subject.fail(current.Err())
}

// couldNotRenew reports whether the replica holds the lease, but has not renewed it for too long. Such a
// replica must exit. If the API server does not say so within 5 s, the result is false.
func (r *replica) couldNotRenew(ctx context.Context) bool {
	if r.subject.options.Target.ownLease() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	lease, err := r.subject.lease(ctx, r.name)
	if err != nil || lease == nil || lease.Spec.RenewTime == nil {
		return false
	}
	// gauntlet sets the flag --leader-elect-renew-deadline to two thirds of the lease duration.
	duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	return time.Since(lease.Spec.RenewTime.Time) >= duration*2/3-time.Second
}

// logTail returns the last log lines of the latest instance, or "" before the first start.
func (r *replica) logTail() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == nil {
		return ""
	}
	return r.current.LogTail()
}

// commandLine returns the command line of the latest instance, or nil before the first start.
func (r *replica) commandLine() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == nil {
		return nil
	}
	return r.current.CommandLine()
}

// record appends a process record to the history. The record says what has happened to the given
// instance, such as its start or end.
func (r *replica) record(current *trackedInstance, event history.ProcessEvent, detail string) {
	r.subject.options.Recorder.Append(history.Record{Process: &history.Process{
		Name: r.name, Event: event, PID: current.PID(), Detail: detail, Usage: current.Usage(),
	}})
}
