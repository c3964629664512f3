package subject

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Main runs the controllers under test in this process, like the function main of a controller
// manager. The arguments args are those of the command line, without a kubeconfig. Main returns
// when ctx is canceled. If it returns an error, the replica counts as a process that has exited
// with this error.
type Main func(ctx context.Context, config *rest.Config, args []string) error

// Linker is a cluster that runs the controllers under test in its own process. Its provider has
// the capability [cluster.SubjectLinked].
type Linker interface {
	// Main returns the function that runs one replica of the target.
	Main(Target) (Main, error)
}

// Linked contains the options of replicas that run as goroutines of this process, not as
// processes of their own.
type Linked struct {
	Target   Target
	Main     Main
	Settings Settings
	Cluster  cluster.Cluster
	// Route changes config, the client configuration of a replica, so that the replica connects to
	// the fault proxy. It is called at each start of the replica.
	Route func(replica string, config *rest.Config) error
	// Disconnect breaks the connections of a replica. Later requests of the replica fail.
	Disconnect func(replica string)
}

// ReplicaLabel is the key of a label of all goroutines of a linked replica. The label's value is
// the name of the replica. Go prints the labels of a goroutine that panics, so the output shows
// which replica has the bug.
const ReplicaLabel = "replica"

// Launcher returns a [Launcher] that starts each replica as goroutines of this process.
func (l Linked) Launcher() Launcher {
	return func(ctx context.Context, replica string) (Instance, error) {
		config := l.Cluster.Config(cluster.Subject)
		if err := l.Route(replica, config); err != nil {
			return nil, fmt.Errorf("setting up the connection of %s to the API server: %w", replica, err)
		}
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		i := &linked{
			args:       l.Settings.controllerFlags(),
			target:     l.Target,
			cancel:     cancel,
			disconnect: func() { l.Disconnect(replica) },
			done:       make(chan struct{}),
		}
		go func() {
			pprof.SetGoroutineLabels(pprof.WithLabels(ctx, pprof.Labels(ReplicaLabel, replica)))
			defer close(i.done)
			defer i.disconnect()
			i.err = errors.New("the main function of the controllers did not return: it called runtime.Goexit")
			i.err = exitOf(l.Main(ctx, config, i.args))
		}()
		return i, nil
	}
}

// exitOf turns err, which the main function of a replica returned, into the error for the
// replica's end. A nil err becomes "exited with status 0".
func exitOf(err error) error {
	if err == nil {
		return errors.New("exited with status 0")
	}
	return fmt.Errorf("exited with an error: %w", err)
}

// linked is an [Instance] that runs as goroutines of this process.
type linked struct {
	args       []string
	target     Target
	cancel     context.CancelFunc
	disconnect func()
	done       chan struct{}
	err        error // how the replica ended; set before the channel done is closed
}

// PID returns 0, because the replica is not a process of its own.
func (*linked) PID() int { return 0 }

// Stop cancels the context of the replica. A controller in its own process would do the same on
// SIGTERM. If the replica has not returned after the grace period, or if ctx is canceled, Stop does
// the same as Kill.
func (i *linked) Stop(ctx context.Context, grace time.Duration) error {
	i.cancel()
	select {
	case <-i.done:
		return nil
	case <-time.After(grace):
	case <-ctx.Done():
	}
	return i.Kill(ctx)
}

// linkedKillTimeout is the time in which the goroutines of a replica must end after Kill.
const linkedKillTimeout = time.Minute

// Kill breaks the connections of the replica, so that it can write nothing more. Then it cancels
// the context of the replica and waits until the goroutines have ended.
func (i *linked) Kill(context.Context) error {
	i.disconnect()
	i.cancel()
	select {
	case <-i.done:
		return nil
	case <-time.After(linkedKillTimeout):
		return fmt.Errorf("the goroutines of the replica (%s) did not end within %s after its context was canceled", i.target, linkedKillTimeout)
	}
}

var errNotPausable = errors.New("a replica that runs as goroutines of gauntlet cannot be paused; expected a provider that pauses the subject, such as --provider=embedded")

// Pause returns an error, because goroutines cannot be paused.
func (*linked) Pause(context.Context) error { return errNotPausable }

// Resume returns an error, because goroutines cannot be paused.
func (*linked) Resume(context.Context) error { return errNotPausable }

// Done returns a channel that is closed when the replica has ended.
func (i *linked) Done() <-chan struct{} { return i.done }

// Err returns nil until the channel that Done returns is closed. After that, it says how the
// replica ended.
func (i *linked) Err() error {
	select {
	case <-i.done:
		return i.err
	default:
		return nil
	}
}

// Usage returns nil, because the CPU time and memory of one replica are unknown: all replicas
// share one process.
func (*linked) Usage() *history.Usage { return nil }

// LogTail returns "", because the replicas share one log.
func (*linked) LogTail() string { return "" }

// CommandLine returns the target and the arguments of the replica.
func (i *linked) CommandLine() []string { return append([]string{i.target.String()}, i.args...) }
