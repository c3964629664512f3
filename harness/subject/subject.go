// Package subject starts, stops and watches over what is under test: the four
// workload controllers, as one replica or several that elect a leader.
//
// A subject is a black box. It is given a kubeconfig that leads to the fault
// proxy, the flags of kube-controller-manager, and exactly the rights its
// controllers need; it is judged by what it does to the API, never by its log.
//
// A [Subject] has rights, a lease and replicas, and records what becomes of them.
// What a replica is made of, a process or a pod, is its [Launcher]'s to know.
package subject

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Launcher begins the life of a replica, the first and any after it. The names
// of replicas are subject-0, subject-1, ...
type Launcher func(ctx context.Context, replica string) (Instance, error)

// Instance is one life of a replica.
type Instance interface {
	// PID is the process's ID on this machine, 0 if it has none here.
	PID() int
	// Stop asks it to end, ends it by force after grace or when ctx ends, and
	// returns when it is gone, which is no error however it went.
	Stop(ctx context.Context, grace time.Duration) error
	// Kill ends it by force, with no time to do anything, and returns when it is
	// gone.
	Kill(ctx context.Context) error
	// Pause keeps it from running, with all it has open, until Resume.
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	// Done is closed when it is gone.
	Done() <-chan struct{}
	// Err is nil until Done is closed, then how it ended, and never nil.
	Err() error
	// Usage is what it used, nil if that is not known, and as long as it lives.
	Usage() *history.Usage
	// LogTail is the end of what it has logged so far.
	LogTail() string
}

// Options says what to start.
type Options struct {
	Target   Target         // whose rights it is granted
	Account  rbacv1.Subject // who is granted them
	Replicas int
	Launch   Launcher
	// Holder names the replica that takes part in elections under an identity, ""
	// if no replica that lives is known by it.
	Holder func(identity string) (replica string)
	// LeaseNamespace is where they elect, as their Settings say.
	LeaseNamespace string
	Admin          kubernetes.Interface
	Recorder       Recorder
}

// Recorder takes the records of the replicas' lives.
type Recorder interface{ Append(history.Record) }

// Subject is what is under test.
type Subject struct {
	options  Options
	replicas []*replica

	failed chan struct{}
	once   sync.Once
	err    error // set before failed is closed
}

// stopGracePeriod is how long a subject may take to end when asked to: its workers
// finish what they hold, and its lease is released.
const stopGracePeriod = 5 * time.Second

// Start grants the subject its rights and starts its replicas. It does not wait
// until one leads; see WaitForLeader.
func Start(ctx context.Context, o Options) (*Subject, error) {
	if err := Grant(ctx, o.Admin, o.Target, o.Account, o.LeaseNamespace); err != nil {
		return nil, fmt.Errorf("granting the subject its rights: %w", err)
	}
	s := &Subject{options: o, failed: make(chan struct{})}
	for i := range o.Replicas {
		s.replicas = append(s.replicas, &replica{name: fmt.Sprintf("subject-%d", i), subject: s})
	}
	for _, r := range s.replicas {
		if err := r.start(ctx); err != nil {
			return nil, errors.Join(err, s.Stop(ctx))
		}
	}
	return s, nil
}

// WaitForLeader returns when a replica holds the lease, or with the error that
// one died of first.
func (s *Subject) WaitForLeader(ctx context.Context) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		if CheckLeaseHeld(ctx, s.options.Admin, s.options.LeaseNamespace) == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no replica of the subject took the lease %s/%s; the end of its log:\n%s",
				s.options.LeaseNamespace, leaseName, s.replicas[0].logTail())
		case <-s.failed:
			return s.err
		case <-ticker.C:
		}
	}
}

// Replicas are the names of all replicas, running or not, in order.
func (s *Subject) Replicas() []string {
	var names []string
	for _, r := range s.replicas {
		names = append(names, r.name)
	}
	return names
}

// Leader is the name of the running replica that holds the lease, "" if none
// does at the moment.
func (s *Subject) Leader(ctx context.Context) (string, error) {
	lease, err := leaseOf(ctx, s.options.Admin, s.options.LeaseNamespace)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the lease %s/%s: %w", s.options.LeaseNamespace, leaseName, err)
	}
	if holderOf(lease) == "" {
		return "", nil
	}
	return s.options.Holder(holderOf(lease)), nil
}

// Kill ends a replica by force and returns when it is gone; ended is false if it
// did not run. Terminate asks it to end, and does it by force when its time is up.
func (s *Subject) Kill(ctx context.Context, replica string) (ended bool, err error) {
	return s.stopReplica(replica, func(i Instance) error { return i.Kill(ctx) })
}

// Terminate ends a replica as Kill does, but gives it time to do so by itself.
func (s *Subject) Terminate(ctx context.Context, replica string) (ended bool, err error) {
	return s.stopReplica(replica, func(i Instance) error { return i.Stop(ctx, stopGracePeriod) })
}

// StackDumper is an instance that can be ended so that it says in its log what it was
// doing.
type StackDumper interface {
	// DumpStacks returns when it is gone. It ends it by force when ctx ends first.
	DumpStacks(ctx context.Context) error
}

// DumpStacks ends a replica as Terminate does, and has it log what each of its
// goroutines was doing. One that is no [Quitter] is left alone, and not ended.
func (s *Subject) DumpStacks(ctx context.Context, replica string) (ended bool, err error) {
	r, err := s.replica(replica)
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	l := r.current
	r.mu.Unlock()
	if l == nil {
		return false, nil
	}
	if _, ok := l.Instance.(StackDumper); !ok { // nor is any other life of it
		return false, nil
	}
	return r.stop(false, func(i Instance) error {
		ctx, cancel := context.WithTimeout(ctx, stopGracePeriod)
		defer cancel()
		return i.(StackDumper).DumpStacks(ctx)
	})
}

// DebugClient is an instance that tells of itself.
type DebugClient interface {
	// Fetch returns what it serves under a path, [MetricsPath] or [GoroutinesPath].
	Fetch(ctx context.Context, path string) ([]byte, error)
}

// ErrNoDebugEndpoint is why a replica says nothing of itself.
var ErrNoDebugEndpoint = errors.New("it serves nothing where it could be asked")

// ErrNotRunning is why a replica that has ended says nothing.
var ErrNotRunning = errors.New("it does not run")

// Fetch returns what a replica that runs serves under a path. The error is ErrSilent
// where what it runs as cannot be asked.
func (s *Subject) Fetch(ctx context.Context, replica, path string) ([]byte, error) {
	r, err := s.replica(replica)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	l, runs := r.current, r.running()
	r.mu.Unlock()
	if !runs {
		return nil, ErrNotRunning
	}
	teller, ok := l.Instance.(DebugClient)
	if !ok {
		return nil, ErrNoDebugEndpoint
	}
	return teller.Fetch(ctx, path)
}

// Pause freezes a replica until it is resumed; paused is false if it did not run.
// When it wakes it may end for having lost its lease. Nobody holds that against
// it, and it is started again as by a kubelet.
func (s *Subject) Pause(ctx context.Context, replica string) (paused bool, err error) {
	r, err := s.replica(replica)
	if err != nil {
		return false, err
	}
	lease, err := s.lease(ctx, replica)
	if err != nil {
		return false, err
	}
	return r.pause(ctx, lease)
}

// Resume lets a replica run that was paused; any other is left alone. When one
// that led has been resumed, it has renewed its lease, or has ended for having
// lost it: what it does in between is over then.
func (s *Subject) Resume(ctx context.Context, replica string) error {
	r, err := s.replica(replica)
	if err != nil {
		return err
	}
	return r.resume(ctx)
}

// lease is the lease as a replica holds it, nil if it does not.
func (s *Subject) lease(ctx context.Context, replica string) (*coordinationv1.Lease, error) {
	lease, err := leaseOf(ctx, s.options.Admin, s.options.LeaseNamespace)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the lease %s/%s: %w", s.options.LeaseNamespace, leaseName, err)
	case holderOf(lease) == "" || s.options.Holder(holderOf(lease)) != replica:
		return nil, nil
	}
	return lease, nil
}

// Start begins another life of a replica that was ended. One that runs is left
// alone. No replica starts any more once the subject was stopped.
func (s *Subject) Start(ctx context.Context, replica string) error {
	r, err := s.replica(replica)
	if err != nil {
		return err
	}
	return r.start(ctx)
}

// Failed is closed when a replica has ended and nobody asked it to.
func (s *Subject) Failed() <-chan struct{} { return s.failed }

// Err is nil until Failed is closed, then which replica ended and how.
func (s *Subject) Err() error {
	select {
	case <-s.failed:
		return s.err
	default:
		return nil
	}
}

// Stop ends every replica for good, within stopGrace and what a kill takes.
func (s *Subject) Stop(ctx context.Context) error {
	all := make([]error, len(s.replicas))
	var group sync.WaitGroup
	for i, r := range s.replicas {
		group.Go(func() {
			_, all[i] = r.stop(true, func(i Instance) error { return i.Stop(ctx, stopGracePeriod) })
		})
	}
	group.Wait()
	return errors.Join(all...)
}

func (s *Subject) stopReplica(name string, by func(Instance) error) (bool, error) {
	r, err := s.replica(name)
	if err != nil {
		return false, err
	}
	return r.stop(false, by)
}

func (s *Subject) replica(name string) (*replica, error) {
	i := slices.IndexFunc(s.replicas, func(r *replica) bool { return r.name == name })
	if i < 0 {
		return nil, fmt.Errorf("the subject has no replica %q; expected one of %v", name, s.Replicas())
	}
	return s.replicas[i], nil
}

// CheckLeaseHeld is nil when a subject leads that elects in the namespace, whoever started it.
func CheckLeaseHeld(ctx context.Context, admin kubernetes.Interface, leaseNamespace string) error {
	lease, err := leaseOf(ctx, admin, leaseNamespace)
	if err != nil {
		return fmt.Errorf("reading the lease %s/%s: %w", leaseNamespace, leaseName, err)
	}
	if holderOf(lease) == "" {
		return fmt.Errorf("nobody holds the lease %s/%s", leaseNamespace, leaseName)
	}
	return nil
}

func leaseOf(ctx context.Context, admin kubernetes.Interface, leaseNamespace string) (*coordinationv1.Lease, error) {
	return admin.CoordinationV1().Leases(leaseNamespace).Get(ctx, leaseName, metav1.GetOptions{})
}

func holderOf(lease *coordinationv1.Lease) string { return ptr.Deref(lease.Spec.HolderIdentity, "") }

// fail notes that a replica ended by itself.
func (s *Subject) fail(err error) {
	s.once.Do(func() {
		s.err = fmt.Errorf("the subject ended by itself: %w", err)
		close(s.failed)
	})
}
