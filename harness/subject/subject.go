// Package subject starts, stops and supervises the subject under test. The subject consists
// of the controllers under test, in one replica or in several with leader election.
//
// A subject is a black box. It gets a kubeconfig that connects to the fault proxy, the
// flags of kube-controller-manager, and exactly the RBAC permissions that its
// controllers need. The checks read its API requests, never its log.
//
// A [Subject] manages permissions, lease and replicas, and records starts and ends. A
// [Launcher] decides whether a replica is a process or a pod.
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
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Launcher starts an instance of a replica, for the first start and for each restart.
// The replicas are named subject-0, subject-1, and so on.
type Launcher func(ctx context.Context, replica string) (Instance, error)

// Instance is one start of a replica. It exists until its process ends; a restart
// creates another Instance.
type Instance interface {
	// PID returns the process ID on this machine, 0 if the process runs elsewhere.
	PID() int
	// Stop asks the instance to end and waits until it has ended. It kills the instance
	// after grace or when ctx ends. A kill is not an error.
	Stop(ctx context.Context, grace time.Duration) error
	// Kill kills the instance and waits for its end.
	Kill(ctx context.Context) error
	// Pause suspends the instance until Resume. Its connections stay open.
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	// Done returns a channel that is closed when the instance has ended.
	Done() <-chan struct{}
	// Err returns nil until Done is closed. Afterwards it returns a non-nil error that says
	// how the instance ended.
	Err() error
	// Usage returns the resource usage, nil if it is unknown or the instance is
	// running.
	Usage() *history.Usage
	// LogTail returns the end of the log so far.
	LogTail() string
}

// Options describes the subject to start.
type Options struct {
	// Target and Controllers determine the permissions. No controllers mean the default
	// controllers, as in the replicas' Settings.
	Target      Target
	Controllers []kube.Controller
	Account     rbacv1.Subject // identity that gets the permissions

	Replicas int
	Launch   Launcher
	// Holder returns the running replica that uses a leader-election identity, "" if there
	// is none.
	Holder func(identity string) (replica string)
	// LeaseNamespace is the namespace of the lease, as in the replicas' Settings.
	LeaseNamespace string
	Admin          kubernetes.Interface
	Recorder       Recorder
}

// Recorder receives the process records of the replicas.
type Recorder interface{ Append(history.Record) }

// Subject is a running subject under test.
type Subject struct {
	options  Options
	replicas []*replica

	failed chan struct{}
	once   sync.Once
	err    error // set before failed is closed
}

// stopGracePeriod is the time that a replica has to end when asked. Its workers finish
// their current keys, and it releases its lease.
const stopGracePeriod = 5 * time.Second

// Start grants the subject its permissions and starts its replicas. It does not wait
// for a leader; see WaitForLeader.
func Start(ctx context.Context, o Options) (*Subject, error) {
	if err := o.Target.CheckControllers(o.Controllers); err != nil {
		return nil, err
	}
	if err := Grant(ctx, o.Admin, o.Target, o.Controllers, o.Account, o.LeaseNamespace); err != nil {
		return nil, fmt.Errorf("granting RBAC permissions to the subject: %w", err)
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

// WaitForLeader waits until a replica holds the lease. If a replica fails first,
// WaitForLeader returns the error of that replica.
func (s *Subject) WaitForLeader(ctx context.Context) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		if CheckLeaseHeld(ctx, s.options.Admin, s.options.LeaseNamespace) == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("expected a replica of the subject to hold Lease %s/%s, found none; the end of its log:\n%s",
				s.options.LeaseNamespace, leaseName, s.replicas[0].logTail())
		case <-s.failed:
			return s.err
		case <-ticker.C:
		}
	}
}

// Replicas returns the names of all replicas in order, running or not.
func (s *Subject) Replicas() []string {
	var names []string
	for _, r := range s.replicas {
		names = append(names, r.name)
	}
	return names
}

// Leader returns the running replica that holds the lease, "" if there is none.
func (s *Subject) Leader(ctx context.Context) (string, error) {
	lease, err := leaseOf(ctx, s.options.Admin, s.options.LeaseNamespace)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading Lease %s/%s: %w", s.options.LeaseNamespace, leaseName, err)
	}
	if holderOf(lease) == "" {
		return "", nil
	}
	return s.options.Holder(holderOf(lease)), nil
}

// Kill kills a replica and waits for its end. It returns false if the replica was not
// running.
func (s *Subject) Kill(ctx context.Context, replica string) (ended bool, err error) {
	return s.stopReplica(replica, func(i Instance) error { return i.Kill(ctx) })
}

// Terminate asks a replica to end and waits until it has ended. It kills the replica
// after stopGracePeriod. It returns false if the replica was not running.
func (s *Subject) Terminate(ctx context.Context, replica string) (ended bool, err error) {
	return s.stopReplica(replica, func(i Instance) error { return i.Stop(ctx, stopGracePeriod) })
}

// StackDumper is an Instance that can write the stacks of all goroutines to its log
// when it ends.
type StackDumper interface {
	// DumpStacks ends the instance with a dump of all goroutines, and waits for its
	// end. It kills the instance when ctx ends first.
	DumpStacks(ctx context.Context) error
}

// DumpStacks ends a replica as Terminate does, and writes the stacks of all goroutines
// to its log first. If the instance is not a [StackDumper], DumpStacks does nothing
// and returns false.
func (s *Subject) DumpStacks(ctx context.Context, replica string) (ended bool, err error) {
	r, err := s.replica(replica)
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	current := r.current
	r.mu.Unlock()
	if current == nil {
		return false, nil
	}
	if _, ok := current.Instance.(StackDumper); !ok { // all instances of a replica have the same type
		return false, nil
	}
	return r.stop(false, func(i Instance) error {
		ctx, cancel := context.WithTimeout(ctx, stopGracePeriod)
		defer cancel()
		return i.(StackDumper).DumpStacks(ctx)
	})
}

// DebugClient is an Instance with a debug endpoint.
type DebugClient interface {
	// Fetch returns the response for [MetricsPath] or [GoroutinesPath].
	Fetch(ctx context.Context, path string) ([]byte, error)
}

// ErrNoDebugEndpoint means that the replica has no debug endpoint.
var ErrNoDebugEndpoint = errors.New("the replica has no debug endpoint")

// ErrNotRunning means that the replica has ended, so that its debug endpoint cannot be
// read.
var ErrNotRunning = errors.New("the replica is not running")

// Fetch returns the response of a running replica's debug endpoint. It returns
// ErrNoDebugEndpoint if the replica has none.
func (s *Subject) Fetch(ctx context.Context, replica, path string) ([]byte, error) {
	r, err := s.replica(replica)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	current, running := r.current, r.running()
	r.mu.Unlock()
	if !running {
		return nil, ErrNotRunning
	}
	client, ok := current.Instance.(DebugClient)
	if !ok {
		return nil, ErrNoDebugEndpoint
	}
	return client.Fetch(ctx, path)
}

// Pause suspends a replica until Resume. It returns false if the replica was not
// running. A resumed leader may exit because it has lost its lease. The subject does
// not count this exit as a failure and restarts the replica, as a kubelet does.
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

// Resume resumes a paused replica. If the replica held the lease before the pause,
// Resume waits until the replica has renewed the lease or has ended. When Resume
// returns, the replica therefore no longer acts on an outdated lease.
func (s *Subject) Resume(ctx context.Context, replica string) error {
	r, err := s.replica(replica)
	if err != nil {
		return err
	}
	return r.resume(ctx)
}

// lease returns the lease if the given replica holds it, and nil otherwise.
func (s *Subject) lease(ctx context.Context, replica string) (*coordinationv1.Lease, error) {
	lease, err := leaseOf(ctx, s.options.Admin, s.options.LeaseNamespace)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading Lease %s/%s: %w", s.options.LeaseNamespace, leaseName, err)
	case holderOf(lease) == "" || s.options.Holder(holderOf(lease)) != replica:
		return nil, nil
	}
	return lease, nil
}

// Start starts a replica that has ended. It does nothing if the replica is running.
// After Stop it fails.
func (s *Subject) Start(ctx context.Context, replica string) error {
	r, err := s.replica(replica)
	if err != nil {
		return err
	}
	return r.start(ctx)
}

// Failed returns a channel that is closed when a replica has ended unexpectedly.
func (s *Subject) Failed() <-chan struct{} { return s.failed }

// Err returns nil until Failed is closed. Afterwards its error says which replica ended and
// how.
func (s *Subject) Err() error {
	select {
	case <-s.failed:
		return s.err
	default:
		return nil
	}
}

// Stop ends every replica permanently. It takes at most stopGracePeriod and the time
// of a kill.
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

// CheckLeaseHeld returns nil if some process holds the subject's lease in the
// namespace, and an error otherwise.
func CheckLeaseHeld(ctx context.Context, admin kubernetes.Interface, leaseNamespace string) error {
	lease, err := leaseOf(ctx, admin, leaseNamespace)
	if err != nil {
		return fmt.Errorf("reading Lease %s/%s: %w", leaseNamespace, leaseName, err)
	}
	if holderOf(lease) == "" {
		return fmt.Errorf("no process holds Lease %s/%s", leaseNamespace, leaseName)
	}
	return nil
}

func leaseOf(ctx context.Context, admin kubernetes.Interface, leaseNamespace string) (*coordinationv1.Lease, error) {
	return admin.CoordinationV1().Leases(leaseNamespace).Get(ctx, leaseName, metav1.GetOptions{})
}

func holderOf(lease *coordinationv1.Lease) string { return ptr.Deref(lease.Spec.HolderIdentity, "") }

// fail stores the first unexpected end of a replica and closes the channel failed.
func (s *Subject) fail(err error) {
	s.once.Do(func() {
		s.err = fmt.Errorf("the subject ended unexpectedly: %w", err)
		close(s.failed)
	})
}
