package standing

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// HostCommand is the name of a hidden gauntlet command that runs a cluster in the background
// after `gauntlet up`. The command must call [Host].
const HostCommand = "host-cluster"

const (
	// kubeconfigFile is the name of the admin kubeconfig in a cluster's directory.
	kubeconfigFile = "kubeconfig"
	// hostReady is the line that a host process writes to its standard output when its cluster is
	// ready. The command `gauntlet up`, which started the host process in the background, waits for
	// this line.
	hostReady = "ready\n"
	// hostEndTimeout is the maximum time from SIGTERM until a host process has exited. A host
	// process runs a cluster in the background. It stops the cluster before it exits, and normally
	// needs a few seconds.
	hostEndTimeout = 30 * time.Second
)

// upHosted starts a cluster in a separate gauntlet process, the host process, and returns when the
// cluster is ready. The host process keeps running after `gauntlet up` has ended.
func upHosted(ctx context.Context, o environment.Options, s *environment.SubjectOptions) (Cluster, error) {
	if err := os.Mkdir(o.LogDir, 0o755); err != nil {
		return Cluster{}, fmt.Errorf("starting the background process of the cluster: %w", err)
	}
	log, err := os.Create(filepath.Join(o.LogDir, "host.log"))
	if err != nil {
		return Cluster{}, fmt.Errorf("starting the background process of the cluster: %w", err)
	}
	defer log.Close()
	args := []string{HostCommand, o.Provider, o.StateDir, fmt.Sprint(o.ControlPlane.Nodes), o.ControlPlane.UpstreamDir}
	if s != nil {
		args = append(args, s.Target.String(), fmt.Sprint(s.Spec.Replicas), s.Ours)
	}
	host := exec.Command("/proc/self/exe", args...)
	// In a new session, the host process receives no signals of the terminal, so it keeps running
	// after this command.
	host.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	host.Stderr = log
	answer, err := host.StdoutPipe()
	if err != nil {
		return Cluster{}, fmt.Errorf("starting the background process of the cluster: %w", err)
	}
	if err := host.Start(); err != nil {
		return Cluster{}, fmt.Errorf("starting the background process of the cluster: %w", err)
	}
	interrupted := context.AfterFunc(ctx, func() { _ = host.Process.Signal(syscall.SIGTERM) })
	defer interrupted()
	if line, err := bufio.NewReader(answer).ReadString('\n'); line != hostReady {
		_ = host.Wait() // the error below contains the log instead of the exit status
		if ctx.Err() != nil {
			return Cluster{}, errors.New("`gauntlet up` was interrupted while the cluster was starting")
		}
		output, _ := os.ReadFile(log.Name())
		if err != nil && !errors.Is(err, io.EOF) {
			return Cluster{}, fmt.Errorf("reading the output of the background process of the cluster: %w", err)
		}
		return Cluster{}, hostError(string(output))
	}
	return Cluster{
		Name: filepath.Base(o.StateDir), Provider: o.Provider, State: Standing,
		Kubeconfig: filepath.Join(o.StateDir, kubeconfigFile), dir: o.StateDir, hosted: true,
	}, host.Process.Release()
}

// hostError returns the error that a host process has written to its log. It omits the name of the
// program, because `gauntlet up` writes this name, too.
func hostError(log string) error {
	return errors.New(strings.TrimPrefix(strings.TrimSpace(log), "gauntlet: "))
}

// Host runs a cluster until ctx is canceled or a component of the cluster fails. If s is not nil,
// Host also runs a subject, which is the program under test. After a failure of a component, Host
// returns the error of the component.
//
// Host stores the state of the cluster in o.StateDir. When the cluster and the subject are ready,
// Host writes the line "ready" to the argument answer.
func Host(ctx context.Context, o environment.Options, s *environment.SubjectOptions, answer io.Writer) (err error) {
	if _, err := providers.NamedWith(o.Provider, cluster.StandingClusters); err != nil {
		return err
	}
	if err := writeOwner(o.StateDir); err != nil {
		return err
	}
	o.KeepState, o.LogDir = true, filepath.Join(o.StateDir, logSubdir)
	e, err := environment.Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Stop(ctx)) }()
	if s != nil {
		if err := e.StartSubject(ctx, *s); err != nil {
			return err
		}
	}
	if err := cluster.WriteKubeconfig(filepath.Join(o.StateDir, kubeconfigFile), e.Cluster.Config(cluster.Admin)); err != nil {
		return err
	}
	if _, err := io.WriteString(answer, hostReady); err != nil {
		return fmt.Errorf("reporting to `gauntlet up` that the cluster is ready: %w", err)
	}
	return e.Failed(ctx)
}

// listHosted returns the clusters that run, or ran, in a gauntlet process in the background (the
// host process). The state of a cluster is LeftBehind if its host process has ended. The argument
// root is the path of the directory with the files of all clusters; see [Root].
func listHosted(root string) ([]Cluster, error) {
	states := map[process.Existence]State{process.Lives: Standing, process.Gone: LeftBehind, process.Elsewhere: Elsewhere}
	var all []Cluster
	for _, p := range providers.All {
		if !p.Capabilities.Has(cluster.StandingClusters) || p.Capabilities.Has(cluster.RunsDetached) {
			continue
		}
		owners, err := ownersOf(root, p.Name)
		if err != nil {
			return nil, err
		}
		for _, o := range owners {
			all = append(all, Cluster{
				Name: filepath.Base(o.dir), Provider: p.Name, State: states[o.existence],
				Kubeconfig: filepath.Join(o.dir, kubeconfigFile), dir: o.dir, hosted: true,
			})
		}
	}
	return all, nil
}

// stopHost ends the process that runs the cluster in dir in the background. It sends SIGTERM, and
// waits until the process has exited. It does nothing if the process has already exited.
func stopHost(ctx context.Context, dir string) error {
	o, err := ownerOf(dir)
	if err != nil {
		return err
	}
	host := o.process
	switch o.existence {
	case process.Gone:
		return nil
	case process.Elsewhere:
		return fmt.Errorf("cannot stop background process %s of the cluster: it runs on another machine or in another container; run `gauntlet down` there", host)
	}
	if err := syscall.Kill(host.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stopping background process %d of the cluster: %w", host.PID, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, hostEndTimeout, fmt.Errorf("background process %d of the cluster did not end within %s after SIGTERM", host.PID, hostEndTimeout))
	defer cancel()
	const interval = 50 * time.Millisecond
	return cluster.Poll(ctx, interval, "the background process of the cluster to end", func(context.Context) error {
		switch existence, err := host.Existence(); {
		case err != nil:
			return err
		case existence != process.Gone:
			return fmt.Errorf("background process %d of the cluster is still running", host.PID)
		}
		return nil
	})
}
