package subject

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// Local contains the options for replicas that run as processes of this machine.
type Local struct {
	Executable string
	Settings   Settings
	Cluster    cluster.Cluster
	// Route may change the client configuration of a replica, for example to connect
	// through the fault proxy. Without a change the replica connects directly to the
	// API server. Route is called once for each replica, and restarts use the same
	// configuration.
	Route func(replica string, config *rest.Config) error

	// ServesDebug makes the replicas serve metrics and goroutines, for Fetch.
	ServesDebug bool

	StateDir string // for kubeconfigs and keys; contains credentials and is removed after the run
	LogDir   string
}

// Launcher returns a launcher that starts replicas as processes.
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
			Args:    l.Settings.Flags(files.kubeconfig, files.serving),
			Env:     []string{"HOME=" + l.StateDir, "TMPDIR=" + l.StateDir, "PATH=" + os.Getenv("PATH")},
			LogPath: filepath.Join(l.LogDir, replica+".log"),
		})
		if err != nil {
			return nil, err
		}
		return local{p, files.serving}, nil
	}
}

// replicaFiles are the paths of the files that all instances of a replica share.
type replicaFiles struct {
	kubeconfig string
	serving    *Serving // nil if the replica serves nothing
}

func (l Local) files(replica string) (files replicaFiles, err error) {
	if files.kubeconfig, err = l.route(replica); err == nil && l.ServesDebug {
		files.serving, err = newServing(l.StateDir, replica)
	}
	return files, err
}

// route calls Route for a replica, writes the resulting kubeconfig, and returns its
// path.
func (l Local) route(replica string) (string, error) {
	config := l.Cluster.Config(cluster.Subject)
	if err := l.Route(replica, config); err != nil {
		return "", fmt.Errorf("setting up the connection to the API server: %w", err)
	}
	kubeconfig := filepath.Join(l.StateDir, replica+".kubeconfig")
	return kubeconfig, cluster.WriteKubeconfig(kubeconfig, config)
}

// local is an instance that runs as a process.
type local struct {
	*process.Process
	serving *Serving
}

func (l local) Fetch(ctx context.Context, path string) ([]byte, error) {
	if l.serving == nil {
		return nil, ErrNoDebugEndpoint
	}
	return l.serving.fetch(ctx, path)
}

func (l local) Usage() *history.Usage {
	select {
	case <-l.Done():
		used := l.Process.Usage()
		return &history.Usage{CPU: used.CPU, PeakMemory: used.RSSBytesMax}
	default:
		return nil
	}
}

func (l local) Kill(context.Context) error { return l.Process.Kill() } // ends within seconds

// DumpStacks sends SIGQUIT. The Go runtime then prints the stacks of all goroutines
// and ends the process.
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

func (l local) Pause(context.Context) error { return l.Signal(syscall.SIGSTOP) }

func (l local) Resume(context.Context) error { return l.Signal(syscall.SIGCONT) }
