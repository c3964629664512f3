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
	"github.com/kube-gauntlet/gauntlet/harness/process"
)

// Local says how replicas run as processes of this machine.
type Local struct {
	Executable string
	Settings   Settings
	Cluster    cluster.Cluster
	// Route opens a way to the API server for the replica of that name, and bends
	// its configuration, which leads straight there, to take it. It is called once
	// for each replica: the way stays when the replica is started again.
	Route func(replica string, config *rest.Config) error

	// ServesDebug has the replicas serve their metrics and goroutines, for Ask.
	ServesDebug bool

	StateDir string // for kubeconfigs: holds credentials, removed after the run
	LogDir   string
}

// Launcher returns the launcher of such replicas.
func (l Local) Launcher() Launcher {
	var mu sync.Mutex
	seats := map[string]replicaFiles{}
	return func(ctx context.Context, replica string) (Instance, error) {
		mu.Lock()
		has, ok := seats[replica]
		mu.Unlock()
		if !ok {
			var err error
			if has, err = l.files(replica); err != nil {
				return nil, err
			}
			mu.Lock()
			seats[replica] = has
			mu.Unlock()
		}
		p, err := process.Start(ctx, process.Spec{
			Name:    replica,
			Path:    l.Executable,
			Args:    l.Settings.Flags(has.kubeconfig, has.serving),
			Env:     []string{"HOME=" + l.StateDir, "TMPDIR=" + l.StateDir, "PATH=" + os.Getenv("PATH")},
			LogPath: filepath.Join(l.LogDir, replica+".log"),
		})
		if err != nil {
			return nil, err
		}
		return local{p, has.serving}, nil
	}
}

// replicaFiles is what a replica has through all of its lives.
type replicaFiles struct {
	kubeconfig string
	serving    *Serving // nil if it serves nothing
}

func (l Local) files(replica string) (has replicaFiles, err error) {
	if has.kubeconfig, err = l.route(replica); err == nil && l.ServesDebug {
		has.serving, err = newServing(l.StateDir, replica)
	}
	return has, err
}

// route writes the kubeconfig of a replica that leads the way it is to take.
func (l Local) route(replica string) (string, error) {
	config := l.Cluster.Config(cluster.Subject)
	if err := l.Route(replica, config); err != nil {
		return "", fmt.Errorf("opening a way to the API server: %w", err)
	}
	kubeconfig := filepath.Join(l.StateDir, replica+".kubeconfig")
	return kubeconfig, cluster.WriteKubeconfig(kubeconfig, config)
}

// local is a replica's life as a process.
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

func (l local) Kill(context.Context) error { return l.Process.Kill() } // takes seconds at most

// DumpStacks has the Go runtime end the process with a dump of all goroutines.
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
