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
	"github.com/kube-gauntlet/gauntlet/harness/process"
	"github.com/kube-gauntlet/gauntlet/harness/run"
)

// HostCommand is the name of the command that a keeper runs as: gauntlet must
// have it, and call [Keeper] with its arguments.
const HostCommand = "keep-embedded"

const (
	kubeconfigFile = "kubeconfig"
	// hostReady is what a keeper says once its cluster is ready.
	hostReady = "ready\n"
	// hostEndTimeout bounds the end of a keeper: that of its cluster takes seconds.
	hostEndTimeout = 30 * time.Second
)

// upEmbedded starts a keeper and returns when its cluster is ready.
func upEmbedded(ctx context.Context, plane run.ControlPlane, resident *run.StandingSubject) (Cluster, error) {
	if err := os.Mkdir(plane.LogDir, 0o755); err != nil {
		return Cluster{}, fmt.Errorf("starting the keeper: %w", err)
	}
	log, err := os.Create(filepath.Join(plane.LogDir, "keeper.log"))
	if err != nil {
		return Cluster{}, fmt.Errorf("starting the keeper: %w", err)
	}
	defer log.Close()
	args := []string{HostCommand, plane.Dir, fmt.Sprint(plane.Nodes), plane.UpstreamDir}
	if resident != nil {
		args = append(args, resident.Target.String(), fmt.Sprint(resident.Replicas), resident.Ours)
	}
	keeper := exec.Command("/proc/self/exe", args...)
	// Out of the terminal's reach: the command that started it ends, it stays.
	keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	keeper.Stderr = log
	answer, err := keeper.StdoutPipe()
	if err != nil {
		return Cluster{}, fmt.Errorf("starting the keeper: %w", err)
	}
	if err := keeper.Start(); err != nil {
		return Cluster{}, fmt.Errorf("starting the keeper: %w", err)
	}
	interrupted := context.AfterFunc(ctx, func() { _ = keeper.Process.Signal(syscall.SIGTERM) })
	defer interrupted()
	if line, err := bufio.NewReader(answer).ReadString('\n'); line != hostReady {
		_ = keeper.Wait() // what it said says more than how it ended
		if ctx.Err() != nil {
			return Cluster{}, errors.New("interrupted while bringing up the cluster")
		}
		said, _ := os.ReadFile(log.Name())
		if err != nil && !errors.Is(err, io.EOF) {
			return Cluster{}, fmt.Errorf("the keeper of the cluster: %w", err)
		}
		return Cluster{}, errors.New(strings.TrimSpace(string(said)))
	}
	return Cluster{
		Name: filepath.Base(plane.Dir), Provider: embeddedProvider, State: Standing,
		Kubeconfig: filepath.Join(plane.Dir, kubeconfigFile), dir: plane.Dir,
	}, keeper.Process.Release()
}

// Host keeps an embedded cluster in a directory until ctx ends, with a resident
// subject unless that is nil, and says on answer when it is ready.
func Host(ctx context.Context, plane run.ControlPlane, resident *run.StandingSubject, answer io.Writer) (err error) {
	if err := writeOwner(plane.Dir); err != nil {
		return err
	}
	plane.LogDir = filepath.Join(plane.Dir, logSubdir)
	c, err := run.StartControlPlane(ctx, embeddedProvider, plane)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop(context.WithoutCancel(ctx))) }()
	var died <-chan struct{} // of the subject
	var cause func() error
	if resident != nil {
		s, err := resident.Install(ctx, c, plane)
		if err != nil {
			return err
		}
		defer func() { _ = s.Stop(context.WithoutCancel(ctx)) }() // else it goes with the keeper
		died, cause = s.Failed(), s.Err
	}
	if err := cluster.WriteKubeconfig(filepath.Join(plane.Dir, kubeconfigFile), c.Config(cluster.Admin)); err != nil {
		return err
	}
	if _, err := io.WriteString(answer, hostReady); err != nil {
		return fmt.Errorf("nobody waits for the cluster any more: %w", err)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-c.Failed():
		return c.Err()
	case <-died:
		return cause()
	}
}

// listEmbedded finds the clusters that keepers keep, or have left.
func listEmbedded(root string) ([]Cluster, error) {
	owners, err := ownersOf(root, embeddedProvider)
	if err != nil {
		return nil, err
	}
	states := map[process.Existence]State{process.Lives: Standing, process.Gone: LeftBehind, process.Elsewhere: Elsewhere}
	var all []Cluster
	for _, o := range owners {
		all = append(all, Cluster{
			Name: filepath.Base(o.dir), Provider: embeddedProvider, State: states[o.existence],
			Kubeconfig: filepath.Join(o.dir, kubeconfigFile), dir: o.dir,
		})
	}
	return all, nil
}

// stopHost tells the keeper of a directory to end, and waits until it has.
func stopHost(ctx context.Context, dir string) error {
	o, err := ownerOf(dir)
	if err != nil {
		return err
	}
	keeper := o.process
	switch o.existence {
	case process.Gone:
		return nil
	case process.Elsewhere:
		return fmt.Errorf("its keeper, %s, is on another machine or in another container", keeper)
	}
	if err := syscall.Kill(keeper.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("ending its keeper, process %d: %w", keeper.PID, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, hostEndTimeout, fmt.Errorf("it has not within %s", hostEndTimeout))
	defer cancel()
	const interval = 50 * time.Millisecond
	return cluster.Poll(ctx, interval, "its keeper to end", func(context.Context) error {
		switch existence, err := keeper.Existence(); {
		case err != nil:
			return err
		case existence != process.Gone:
			return fmt.Errorf("process %d still runs", keeper.PID)
		}
		return nil
	})
}
