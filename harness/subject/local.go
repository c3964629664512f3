package subject

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// Local contains the options for replicas that run as local processes.
type Local struct {
	Executable string // path of the program
	Target     Target // the program under test; its arguments are Settings.Flags, or those in the definition of an Operator target
	Settings   Settings
	Cluster    cluster.Cluster
	// Route changes a replica's client configuration, for example to the address of the fault
	// proxy. Unchanged, config connects directly to the API server. The Launcher calls Route once
	// per replica; restarts use the same configuration.
	Route func(replica string, config *rest.Config) error

	// Webhooks connects the API server with the webhooks of the replicas. It is required for a
	// target from [Operator], and nil for all others.
	Webhooks *Webhooks

	// ServesDebug makes the replicas serve their metrics and goroutine stacks; see [Subject.Fetch].
	ServesDebug bool

	StateDir string // directory for kubeconfigs and keys, which the caller removes after the test run
	LogDir   string // directory for the logs; the log of a replica is <replica>.log
}

// Launcher returns a [Launcher] that starts each replica as a local process.
func (l Local) Launcher() Launcher {
	var mu sync.Mutex
	replicas := map[string]replicaFiles{}
	return func(ctx context.Context, replica string) (Instance, error) {
		mu.Lock()
		files, ok := replicas[replica]
		mu.Unlock()
		if !ok {
			var err error
			if files, err = l.files(replica); err != nil {
				return nil, err
			}
			mu.Lock()
			replicas[replica] = files
			mu.Unlock()
		}
		p, err := process.Start(ctx, process.Spec{
			Name:    replica,
			Path:    l.Executable,
			Args:    files.args,
			Env:     append([]string{"HOME=" + l.StateDir, "TMPDIR=" + l.StateDir, "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + files.kubeconfig}, files.env...),
			Mounts:  files.mounts,
			Root:    files.root,
			LogPath: filepath.Join(l.LogDir, replica+".log"),
		})
		if err != nil {
			return nil, err
		}
		return local{p, files.serving}, nil
	}
}

// replicaFiles contains the file paths, arguments and environment variables of one replica. They
// stay the same when the replica restarts.
type replicaFiles struct {
	kubeconfig string   // path of the kubeconfig
	serving    *Serving // nil if the replica has no debug endpoint
	args       []string
	env        []string // environment variables from a [Definition], as NAME=VALUE
	// mounts are the files that the program finds at fixed paths, and root is an empty directory; see
	// [process.Spec].
	mounts []process.Mount
	root   string
}

// files creates a replica's kubeconfig and serving certificate in the state directory. It also
// computes the replica's arguments and environment variables.
func (l Local) files(replica string) (replicaFiles, error) {
	config := l.Cluster.Config(cluster.Subject)
	if err := l.Route(replica, config); err != nil {
		return replicaFiles{}, fmt.Errorf("setting up the connection of %s to the API server: %w", replica, err)
	}
	files := replicaFiles{kubeconfig: filepath.Join(l.StateDir, replica+".kubeconfig")}
	if err := cluster.WriteKubeconfig(files.kubeconfig, config); err != nil {
		return files, err
	}
	if l.Target.definition != nil {
		err := l.addOperatorFiles(&files, replica, config)
		return files, err
	}
	var err error
	if l.ServesDebug {
		files.serving, err = newServing(l.StateDir, replica)
	}
	files.args = l.Settings.Flags(files.kubeconfig, files.serving)
	return files, err
}

// addOperatorFiles creates the files of a replica of a target from [Operator], and computes its
// arguments, environment variables and mounts. The argument config is the configuration of the
// replica's clients.
func (l Local) addOperatorFiles(files *replicaFiles, replica string, config *rest.Config) error {
	definition := l.Target.definition
	values, err := valuesOf(replica, files.kubeconfig, l.Webhooks.dir, filepath.Join(l.StateDir, replica+".files"))
	if err != nil {
		return err
	}
	if err := definition.writeFiles(values); err != nil {
		return err
	}
	l.Webhooks.add(replica, net.JoinHostPort(values.Address, strconv.Itoa(definition.webhookPort(values))))
	if files.args, files.env, err = definition.command(values); err != nil || process.MountsSupported() != nil {
		return err
	}
	files.root = filepath.Join(l.StateDir, replica+".root")
	if err := os.MkdirAll(files.root, 0o700); err != nil {
		return err
	}
	account, env, err := accountOf(config)
	if err != nil {
		return err
	}
	values.Namespace = definition.Namespace
	volumes := append(slices.Clone(definition.Volumes), account)
	files.mounts, err = writeVolumes(volumes, filepath.Join(l.StateDir, replica+".volumes"), values, l.StateDir, l.Executable)
	files.env = append(env, files.env...)
	return err
}

// local is an [Instance] whose process runs on this machine.
type local struct {
	*process.Process
	serving *Serving // nil if the replica has no debug endpoint
}

// Fetch sends a GET request to the replica's debug endpoint; see [DebugClient].
func (l local) Fetch(ctx context.Context, path string) ([]byte, error) {
	if l.serving == nil {
		return nil, ErrNoDebugEndpoint
	}
	return l.serving.fetch(ctx, path)
}

// Usage returns the CPU time and the peak memory of the process, or nil while the process runs.
func (l local) Usage() *history.Usage {
	select {
	case <-l.Done():
		used := l.Process.Usage()
		return &history.Usage{CPU: used.CPU, PeakMemory: used.RSSBytesMax}
	default:
		return nil
	}
}

// Kill sends SIGKILL and waits until the process has ended. Kill ignores the context, because it
// takes at most 10 seconds.
func (l local) Kill(context.Context) error { return l.Process.Kill() }

// DumpStacks sends SIGQUIT, on which a Go program prints the stacks of all goroutines and exits. If
// ctx is canceled first, DumpStacks kills the process.
func (l local) DumpStacks(ctx context.Context) error {
	if err := l.Signal(syscall.SIGQUIT); err != nil && !errors.Is(err, process.ErrEnded) {
		return err
	}
	select {
	case <-l.Done():
		return nil
	case <-ctx.Done():
		return l.Process.Kill()
	}
}

// Pause suspends the process with SIGSTOP.
func (l local) Pause(context.Context) error { return l.Signal(syscall.SIGSTOP) }

// Resume continues the process with SIGCONT.
func (l local) Resume(context.Context) error { return l.Signal(syscall.SIGCONT) }
