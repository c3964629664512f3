// Package subject starts, stops and pauses the replicas of the subject. The subject is the program
// with the controllers under test. Its replicas elect a leader.
//
// A subject is a black box. It gets a kubeconfig that connects to the fault proxy, the flags of
// kube-controller-manager, and exactly the RBAC permissions that its controllers need. An
// executable with other flags needs a [Definition]. The checks read the API requests of the subject,
// never its log.
//
// A [Subject] grants the permissions, starts the replicas, and records when they start and end. A
// [Launcher] starts a replica as a local process or as a pod.
package subject

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// Launcher starts a replica and returns the running [Instance]. A Subject calls it for the first
// start of each replica and for each restart. The replicas are named subject-0, subject-1 and so
// on.
type Launcher func(ctx context.Context, replica string) (Instance, error)

// Instance is the process of a replica between one start and its end. A restart of the replica
// creates another Instance.
type Instance interface {
	// PID returns the ID of the process on this machine, or 0 if the process runs on
	// another machine.
	PID() int
	// Stop sends SIGTERM to the process and waits until the process has ended. It sends SIGKILL
	// after the grace period, or as soon as ctx is canceled. It returns no error because of a
	// SIGKILL.
	Stop(ctx context.Context, grace time.Duration) error
	// Kill sends SIGKILL to the process and waits until the process has ended.
	Kill(ctx context.Context) error
	// Pause suspends the process until Resume. The connections of the process stay open.
	Pause(ctx context.Context) error
	// Resume ends the pause of a process that Pause has suspended.
	Resume(ctx context.Context) error
	// Done returns a channel that is closed when the process has ended.
	Done() <-chan struct{}
	// Err returns nil until the channel of Done is closed. After that, it returns a non-nil error,
	// which says how the process ended.
	Err() error
	// Usage returns the CPU time and the memory that the process has used. It returns nil if the
	// process is running, or if the usage is unknown.
	Usage() *history.Usage
	// LogTail returns the last lines that the process has written to its log so far.
	LogTail() string
	// CommandLine returns the executable or the image of the process, and its arguments.
	CommandLine() []string
}

// Options describes the subject that [Start] starts.
type Options struct {
	// Target and Controllers determine the RBAC permissions. Launch must start the program of
	// Target with the same controllers. Empty Controllers mean [kube.DefaultControllers].
	Target      Target
	Controllers []kube.Controller
	// Account is the user or ServiceAccount that gets the permissions.
	Account rbacv1.Subject

	Replicas int      // number of replicas
	Launch   Launcher // starts a replica
	// Holder maps a leader-election identity, such as the holder of the Lease, to the running
	// replica that uses it. It returns "" if no running replica uses the identity.
	Holder func(identity string) (replica string)
	// Leader returns the running replica that last wrote a leader-election Lease, or "". A Subject
	// calls it for a target that [Operator] has returned, because the name of its Lease is unknown.
	Leader func() (replica string)
	// LeaseNamespace is the namespace of the leader-election Lease. The replicas must use the same
	// namespace (Settings.LeaseNamespace).
	LeaseNamespace string
	Admin          kubernetes.Interface // client with all permissions
	Recorder       Recorder
}

// Recorder appends a record to the history each time a replica starts, pauses, resumes or ends.
type Recorder interface{ Append(history.Record) }

// Subject is a started subject. Its methods start, stop and pause single replicas.
type Subject struct {
	options  Options
	replicas []*replica

	failed chan struct{} // closed when a replica has ended unexpectedly
	once   sync.Once     // closes failed
	err    error         // set before failed is closed
}

// stopGracePeriod is the time between SIGTERM and SIGKILL for a replica. In this time, its
// workers finish the work queue keys that they are processing, and the replica releases the
// lease.
const stopGracePeriod = 5 * time.Second

// Start grants the subject its RBAC permissions and starts all replicas. It does not wait until a
// replica holds the lease; see [Subject.WaitForLeader].
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

// WaitForLeader waits until a replica holds the leader-election lease. If a replica ends
// unexpectedly before that, it returns the error of this replica.
//
// The Lease of a target from [Operator] is unknown, so WaitForLeader does not wait for it.
func (s *Subject) WaitForLeader(ctx context.Context) error {
	if s.options.Target.definition != nil {
		return nil
	}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		if CheckLeaseHeld(ctx, s.options.Admin, s.options.LeaseNamespace) == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no replica of the subject holds Lease %s/%s", s.options.LeaseNamespace, leaseName)
		case <-s.failed:
			return s.err
		case <-ticker.C:
		}
	}
}

// ExplainStart adds to err what helps users to find out why the subject did not become ready.
// It adds how long gauntlet has waited, the end of the log, the command line, and a hint about
// flags.
func (s *Subject) ExplainStart(err error, waited time.Duration) error {
	first := s.replicas[0]
	text := fmt.Sprintf("gauntlet waited %.1f s", waited.Seconds())
	if tail := first.logTail(); !errors.Is(err, ErrDied) { // otherwise, err contains the end of the log
		text += fmt.Sprintf("; last lines of the log of %s:\n\t%s", first.name, strings.ReplaceAll(cmp.Or(tail, "(empty)"), "\n", "\n\t"))
	}
	text += "\ncommand line: " + strings.Join(first.commandLine(), " ")
	if kind := s.options.Target.kind; kind == execKind || kind == imageKind {
		text += "\ngauntlet passes flags of kube-controller-manager to this program; if it has other flags, wrap it in a script that translates them, or use subject.Command in Go"
	}
	return fmt.Errorf("%w\n%s", err, text)
}

// Replicas returns the names of all replicas, in the order of their numbers. It includes replicas
// that do not run.
func (s *Subject) Replicas() []string {
	var names []string
	for _, r := range s.replicas {
		names = append(names, r.name)
	}
	return names
}

// Leader returns the name of the running replica that holds the leader-election lease, or "" if
// there is none.
//
// For a target from [Operator], it returns the running replica that last wrote a Lease, or the
// only replica.
func (s *Subject) Leader(ctx context.Context) (string, error) {
	if s.options.Target.definition != nil {
		if len(s.replicas) > 1 {
			return s.options.Leader(), nil
		}
		return s.replicas[0].nameIfRunning(), nil
	}
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

// Kill kills a replica with SIGKILL and waits until the replica has ended. It reports whether the
// replica was running. The replica stays down until the caller calls [Subject.Start].
func (s *Subject) Kill(ctx context.Context, replica string) (ended bool, err error) {
	return s.stopReplica(replica, func(i Instance) error { return i.Kill(ctx) })
}

// Terminate sends SIGTERM to a replica and waits until the replica has ended. If the replica still
// runs after 5 seconds ([stopGracePeriod]), Terminate sends SIGKILL. It reports whether the replica
// was running.
func (s *Subject) Terminate(ctx context.Context, replica string) (ended bool, err error) {
	return s.stopReplica(replica, func(i Instance) error { return i.Stop(ctx, stopGracePeriod) })
}

// StackDumper is an [Instance] that can write the stacks of all its goroutines to its log.
type StackDumper interface {
	// DumpStacks makes the process write the stacks of all goroutines to its log and exit. It waits
	// until the process has ended, and kills the process when ctx is canceled.
	DumpStacks(ctx context.Context) error
}

// DumpStacks makes a replica write the stacks of all goroutines to its log and exit. It reports
// whether it has ended the replica.
//
// If the replica has not exited after 5 seconds ([stopGracePeriod]), DumpStacks kills it. It
// does nothing if the replica is not running or is no [StackDumper].
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

// DebugClient is an [Instance] that serves its metrics and goroutines over HTTPS.
type DebugClient interface {
	// Fetch returns the body of the response to a GET request for [MetricsPath] or
	// [GoroutinesPath].
	Fetch(ctx context.Context, path string) ([]byte, error)
}

// ErrNoDebugEndpoint is the error of [Subject.Fetch] if the replica serves no metrics and
// goroutines.
var ErrNoDebugEndpoint = errors.New("the replica has no debug endpoint")

// ErrNotRunning is the error of [Subject.Fetch] if the replica has ended or was never started.
var ErrNotRunning = errors.New("the replica is not running")

// Fetch sends a GET request to the debug endpoint of a replica and returns the response body. The
// path is [MetricsPath] or [GoroutinesPath]. The error is [ErrNotRunning] if the replica is not
// running, and [ErrNoDebugEndpoint] if the replica has no debug endpoint.
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

// Pause suspends a replica until Resume, and reports whether the replica was running. A leader that
// has lost the lease during the pause exits after Resume. The Subject then restarts the replica, as
// a kubelet would, and does not report the exit as a failure ([Subject.Failed]).
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

// Resume resumes a paused replica.
//
// A replica that held the lease before the pause may have lost it, and may write until it
// notices the loss. For such a replica, Resume waits until the replica has renewed the lease or
// has ended.
func (s *Subject) Resume(ctx context.Context, replica string) error {
	r, err := s.replica(replica)
	if err != nil {
		return err
	}
	return r.resume(ctx)
}

// lease returns the leader-election Lease if the given replica holds the Lease. Otherwise, it
// returns nil and no error.
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

// Start starts a replica that has ended. It does nothing if the replica is running, and returns an
// error after [Subject.Stop].
func (s *Subject) Start(ctx context.Context, replica string) error {
	r, err := s.replica(replica)
	if err != nil {
		return err
	}
	return r.start(ctx)
}

// Failed returns a channel that is closed when a replica has ended unexpectedly.
//
// The end of a replica is expected if a method of s has stopped or killed it. It is also
// expected while the replica is paused, and within 30 seconds after Resume.
func (s *Subject) Failed() <-chan struct{} { return s.failed }

// Err returns nil until the channel of Failed is closed. After that, it returns an error that says
// which replica ended, and how.
func (s *Subject) Err() error {
	select {
	case <-s.failed:
		return s.err
	default:
		return nil
	}
}

// Stop stops all replicas at the same time; they cannot be started again. It sends SIGTERM and,
// after 5 seconds ([stopGracePeriod]) or when ctx is canceled, SIGKILL.
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

// stopReplica ends the named replica with the function by, and reports whether the replica was
// running.
func (s *Subject) stopReplica(name string, by func(Instance) error) (bool, error) {
	r, err := s.replica(name)
	if err != nil {
		return false, err
	}
	return r.stop(false, by)
}

// replica returns the named replica. Its error lists the names of all replicas.
func (s *Subject) replica(name string) (*replica, error) {
	i := slices.IndexFunc(s.replicas, func(r *replica) bool { return r.name == name })
	if i < 0 {
		return nil, fmt.Errorf("the subject has no replica %q; expected one of %v", name, s.Replicas())
	}
	return s.replicas[i], nil
}

// CheckLeaseHeld returns an error if the leader-election Lease in leaseNamespace has no holder.
// A Lease that has expired counts as held.
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

// leaseOf gets the leader-election Lease of the subject from the API server.
func leaseOf(ctx context.Context, admin kubernetes.Interface, leaseNamespace string) (*coordinationv1.Lease, error) {
	return admin.CoordinationV1().Leases(leaseNamespace).Get(ctx, leaseName, metav1.GetOptions{})
}

// holderOf returns the identity of the holder of a Lease, or "" if the Lease has no holder.
func holderOf(lease *coordinationv1.Lease) string { return ptr.Deref(lease.Spec.HolderIdentity, "") }

// ErrDied means that a replica has ended by itself. [Subject.Err] then returns an error that wraps
// ErrDied.
var ErrDied = errors.New("the subject ended unexpectedly")

// fail records that the subject has failed because of err, and closes the channel failed. Only
// the first call has an effect.
func (s *Subject) fail(err error) {
	s.once.Do(func() {
		s.err = fmt.Errorf("%w: %w", ErrDied, err)
		close(s.failed)
	})
}
