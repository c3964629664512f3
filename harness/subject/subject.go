// Package subject starts, stops and pauses the replicas of the subject. The subject is the program
// with the controllers under test. The replicas elect a leader among them.
//
// A subject is a black box. It gets a kubeconfig that connects to the fault proxy, and flags of
// kube-controller-manager. It also gets exactly the RBAC permissions that its controllers need. An
// executable with other flags needs a [Definition]. The checks read the subject's API requests,
// never its log.
//
// A [Subject] grants the permissions, starts the replicas, and records when each replica starts and
// ends. A [Launcher] starts a replica as a local process, as a pod, or as goroutines of gauntlet.
package subject

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
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

// Launcher starts a replica and returns its process as an [Instance]. A [Subject] calls its
// Launcher for the first start of each replica and for each restart. The argument replica is the
// replica's name: subject-0, subject-1 and so on.
type Launcher func(ctx context.Context, replica string) (Instance, error)

// Instance is one process of a replica, from its start to its end. A restart of the replica creates
// another Instance.
type Instance interface {
	// PID returns the ID of the process on this machine, or 0 if the process runs on
	// another machine.
	PID() int
	// Stop sends SIGTERM to the process and waits until the process has ended. Stop sends SIGKILL
	// after the grace period, or as soon as ctx is canceled. A SIGKILL alone is not an error.
	Stop(ctx context.Context, grace time.Duration) error
	// Kill sends SIGKILL to the process and waits until the process has ended.
	Kill(ctx context.Context) error
	// Pause suspends the process until Resume. The process's connections stay open.
	Pause(ctx context.Context) error
	// Resume continues a process that Pause has suspended.
	Resume(ctx context.Context) error
	// Done returns a channel that is closed when the process has ended.
	Done() <-chan struct{}
	// Err returns nil until the channel that Done returns is closed. Then the error says how the
	// process ended, for example with its exit status; it is never nil.
	Err() error
	// Usage returns the CPU time and the peak memory of a process that has ended. Usage returns nil
	// while the process runs, or if its usage is unknown.
	Usage() *history.Usage
	// LogTail returns the last lines of the process's log.
	LogTail() string
	// CommandLine returns the executable or the container image, followed by the arguments.
	CommandLine() []string
}

// Options says what [Start] starts: which program, with which permissions, and how many replicas.
type Options struct {
	// Target and Controllers determine the RBAC permissions. Launch must start the program that
	// Target names, with the same controllers. Nil Controllers mean [kube.DefaultControllers].
	Target      Target
	Controllers []kube.Controller
	// Account is the user or ServiceAccount as which the replicas authenticate. Start grants it the
	// RBAC permissions.
	Account rbacv1.Subject

	Replicas int      // number of replicas
	Launch   Launcher // starts a replica
	// Holder finds the running replica that holds the lease. The argument identity is the
	// holderIdentity of the leader-election Lease. Holder returns "" if no running replica uses
	// this identity.
	Holder func(identity string) (replica string)
	// Leader returns the running replica that last wrote a leader-election Lease, or "" if there
	// is none. A [Subject] calls Leader in place of Holder for a target from [Operator] or a Go
	// package, because gauntlet does not know the Lease of such a program.
	Leader func() (replica string)
	// LeaseNamespace is the namespace of the leader-election Lease. It must equal
	// [Settings.LeaseNamespace], which the replicas get as a flag.
	LeaseNamespace string
	Admin          kubernetes.Interface // client with all permissions
	Recorder       Recorder
}

// Recorder is the history of the test run. A [Subject] appends a record each time a replica
// starts, pauses, resumes or ends.
type Recorder interface{ Append(history.Record) }

// Subject is a program under test that [Start] has started. Its methods start, stop and pause
// single replicas.
type Subject struct {
	options  Options
	replicas []*replica

	failed chan struct{} // closed when a replica has ended unexpectedly
	once   sync.Once     // makes sure that the channel failed is closed only once
	err    error         // which replica ended, and how; set before the channel failed is closed
}

// stopGracePeriod is the time between SIGTERM and SIGKILL when a replica is stopped. In this time,
// the replica finishes the work queue keys that it is processing, and releases the lease.
const stopGracePeriod = 5 * time.Second

// Start grants the program under test its RBAC permissions and starts all replicas. It does not
// wait for a leader; see [Subject.WaitForLeader]. If a replica does not start, Start stops the
// others.
func Start(ctx context.Context, o Options) (*Subject, error) {
	if err := o.Target.CheckControllers(o.Controllers); err != nil {
		return nil, err
	}
	if err := Grant(ctx, o.Admin, o.Target, o.Controllers, o.Account, o.LeaseNamespace); err != nil {
		return nil, fmt.Errorf("granting RBAC permissions to the subject: %w", err)
	}
	s := &Subject{options: o, failed: make(chan struct{})}
	for i := range o.Replicas {
		s.replicas = append(s.replicas, &replica{name: fmt.Sprintf("subject-%d", i), subject: s, mu: make(lock, 1)})
	}
	for _, r := range s.replicas {
		if err := r.start(ctx); err != nil {
			return nil, errors.Join(err, s.Stop(ctx))
		}
	}
	return s, nil
}

// WaitForLeader waits until a replica holds the leader-election lease. If a replica ends
// unexpectedly during the wait, WaitForLeader returns that replica's error.
//
// If [Operator] made the target, or the target is a Go package, WaitForLeader returns nil at once,
// because gauntlet does not know the name of the program's Lease.
func (s *Subject) WaitForLeader(ctx context.Context) error {
	if s.options.Target.ownLease() {
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

// addressInUse matches the message of a program that cannot listen on a port.
var addressInUse = regexp.MustCompile(`(?i)address already in use`)

// ExplainStart adds details to err, the reason why the program under test did not become ready.
// The details are the time that gauntlet waited, the end of the log, and the command line. For the
// targets exec:PATH and image:REF, ExplainStart also adds a hint about flags. If the program could not
// listen on a port, it adds a hint about addresses.
func (s *Subject) ExplainStart(err error, waited time.Duration) error {
	first := s.replicas[0]
	text := fmt.Sprintf("gauntlet waited %.1f s", waited.Seconds())
	if tail := first.logTail(); !errors.Is(err, ErrDied) { // ErrDied already contains the end of the log
		text += fmt.Sprintf("; last lines of the log of %s:\n\t%s", first.name, strings.ReplaceAll(cmp.Or(tail, "(empty)"), "\n", "\n\t"))
	}
	text += "\ncommand line: " + strings.Join(first.commandLine(), " ")
	if addressInUse.MatchString(err.Error()) {
		text += "\nanother process on this machine listens on this port, perhaps the same program in another run; if the program listens on all addresses, pass {{.Metrics}}, {{.Health}} or {{.Address}} to its flags for addresses in the subject file of each run; if its port is fixed, make one run at a time with --parallel=1"
	}
	if kind := s.options.Target.kind; kind == execKind || kind == imageKind {
		text += "\ngauntlet passes flags of kube-controller-manager to this program; if the program has other flags, wrap the program in a script that translates the flags, or use subject.Command in Go"
	}
	return fmt.Errorf("%w\n%s", err, text)
}

// Replicas returns the names of all replicas, such as [subject-0 subject-1]. Replicas that do not
// run are included.
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
// For a target from [Operator] or a Go package, Leader returns the running replica that last wrote
// a Lease. If such a target has only one replica, Leader returns that replica while it runs.
func (s *Subject) Leader(ctx context.Context) (string, error) {
	if s.options.Target.ownLease() {
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

// Kill sends SIGKILL to a replica and waits until the replica has ended. The result ended is false
// if the replica was not running. The replica stays down until [Subject.Start].
func (s *Subject) Kill(ctx context.Context, replica string) (ended bool, err error) {
	return s.stopReplica(replica, func(i Instance) error { return i.Kill(ctx) })
}

// Terminate sends SIGTERM to a replica and waits until the replica has ended. If the replica still
// runs after 5 seconds ([stopGracePeriod]), Terminate sends SIGKILL. The result ended is false if
// the replica was not running.
func (s *Subject) Terminate(ctx context.Context, replica string) (ended bool, err error) {
	return s.stopReplica(replica, func(i Instance) error { return i.Stop(ctx, stopGracePeriod) })
}

// StackDumper is an [Instance] that can write the stacks of all its goroutines to its log.
type StackDumper interface {
	// DumpStacks makes the process write the stacks of all goroutines to its log and exit.
	// DumpStacks waits until the process has ended. If ctx is canceled, it kills the process.
	DumpStacks(ctx context.Context) error
}

// DumpStacks makes a replica write the stacks of all goroutines to its log and exit. The result
// ended is false if the replica was not running, or if its Instance is not a [StackDumper].
//
// If the replica has not exited after 5 seconds ([stopGracePeriod]), DumpStacks kills the
// replica.
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
	if _, ok := current.Instance.(StackDumper); !ok { // a later instance of the replica would have the same type
		return false, nil
	}
	return r.stop(false, func(i Instance) error {
		ctx, cancel := context.WithTimeout(ctx, stopGracePeriod)
		defer cancel()
		return i.(StackDumper).DumpStacks(ctx)
	})
}

// DebugClient is an [Instance] that serves its metrics and goroutine stacks over HTTPS.
type DebugClient interface {
	// Fetch returns the body of the response to a GET request for [MetricsPath] or
	// [GoroutinesPath].
	Fetch(ctx context.Context, path string) ([]byte, error)
}

// ErrNoDebugEndpoint is the error of [Subject.Fetch] for a replica without a debug endpoint. The
// debug endpoint serves metrics and goroutine stacks.
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
// a kubelet would. The exit does not close the channel of [Subject.Failed].
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
// A leader may have lost the lease during the pause, and may write until it notices the loss. If
// the replica was the leader, Resume therefore waits until the replica has renewed the lease or has
// ended.
func (s *Subject) Resume(ctx context.Context, replica string) error {
	r, err := s.replica(replica)
	if err != nil {
		return err
	}
	return r.resume(ctx)
}

// lease returns the leader-election Lease if the named replica holds it. Otherwise, lease returns
// nil and no error.
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

// Start starts a replica that has ended. If the replica is running, Start does nothing. After
// [Subject.Stop], Start returns an error.
func (s *Subject) Start(ctx context.Context, replica string) error {
	r, err := s.replica(replica)
	if err != nil {
		return err
	}
	return r.start(ctx)
}

// Failed returns a channel that is closed when a replica has ended unexpectedly. It is also closed
// when a replica that ended because of a pause or a lost lease does not start again.
//
// The end of a replica is expected if a method of s has stopped or killed the replica. The end is
// also expected while the replica is paused, within 30 seconds after Resume, and if the replica is the
// leader and could not renew its lease.
func (s *Subject) Failed() <-chan struct{} { return s.failed }

// Err returns nil until the channel that Failed returns is closed. Then the error wraps [ErrDied]
// and says which replica ended, and how.
func (s *Subject) Err() error {
	select {
	case <-s.failed:
		return s.err
	default:
		return nil
	}
}

// Stop stops all replicas at the same time; no replica can be started again. Stop sends SIGTERM. It
// sends SIGKILL after 5 seconds ([stopGracePeriod]), or as soon as ctx is canceled.
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

// stopReplica ends the named replica with the given function, such as one that calls Instance.Kill.
// It returns true if the replica was running and has ended.
func (s *Subject) stopReplica(name string, by func(Instance) error) (bool, error) {
	r, err := s.replica(name)
	if err != nil {
		return false, err
	}
	return r.stop(false, by)
}

// replica returns the named replica. If there is no such replica, the error lists the names of all
// replicas.
func (s *Subject) replica(name string) (*replica, error) {
	i := slices.IndexFunc(s.replicas, func(r *replica) bool { return r.name == name })
	if i < 0 {
		return nil, fmt.Errorf("the subject has no replica %q; expected one of %v", name, s.Replicas())
	}
	return s.replicas[i], nil
}

// CheckLeaseHeld returns nil if the leader-election Lease in leaseNamespace has a holder. It does
// not check whether the Lease has expired. If the Lease has no holder or does not exist,
// CheckLeaseHeld returns an error.
func CheckLeaseHeld(ctx context.Context, admin kubernetes.Interface, leaseNamespace string) error {
	lease, err := leaseOf(ctx, admin, leaseNamespace)
	if err != nil {
		return fmt.Errorf("reading Lease %s/%s: %w", leaseNamespace, leaseName, err)
	}
	if holderOf(lease) == "" {
		return fmt.Errorf("found no holder of Lease %s/%s; expected a replica of the controllers as its holder", leaseNamespace, leaseName)
	}
	return nil
}

// leaseOf gets the leader-election Lease of the program under test from the API server.
func leaseOf(ctx context.Context, admin kubernetes.Interface, leaseNamespace string) (*coordinationv1.Lease, error) {
	return admin.CoordinationV1().Leases(leaseNamespace).Get(ctx, leaseName, metav1.GetOptions{})
}

// holderOf returns a Lease's spec.holderIdentity, or "" if the Lease has no holder.
func holderOf(lease *coordinationv1.Lease) string { return ptr.Deref(lease.Spec.HolderIdentity, "") }

// ErrDied means that a replica has ended although gauntlet did not stop it. [Subject.Err] then
// returns an error that wraps ErrDied.
var ErrDied = errors.New("the subject ended unexpectedly")

// fail marks the program under test as failed after a replica's unexpected end. It closes the
// channel s.failed, and sets s.err to an error that wraps the argument err. Only the first call of
// fail has an effect.
func (s *Subject) fail(err error) {
	s.once.Do(func() {
		s.err = fmt.Errorf("%w: %w", ErrDied, err)
		close(s.failed)
	})
}
