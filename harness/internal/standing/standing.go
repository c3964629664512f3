// Package standing manages standing clusters, which outlive the command that created
// them. Users inspect them or run other tests on them. The package creates, lists and
// removes them, and cleans up after killed commands.
//
// A cluster with the capability RunsDetached, such as a kind cluster, needs no process of
// gauntlet. Other clusters, such as an embedded cluster, consist of processes that never
// outlive the gauntlet that started them. Therefore a separate gauntlet process, the host
// process, runs such a cluster in the background until a command asks it to end.
package standing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/kind"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// State says whether a cluster is in use, standing or left behind.
type State = kind.State

// The states of a cluster; see package kind.
const (
	InUse      = kind.InUse
	Standing   = kind.Standing
	LeftBehind = kind.LeftBehind
	Elsewhere  = kind.Elsewhere
)

// Cluster is a standing cluster, or the files that a removed or failed cluster has left.
type Cluster struct {
	// Name identifies the cluster for commands such as gauntlet down. It is unique
	// among the clusters that exist.
	Name     string
	Provider string
	State    State
	// Kubeconfig is the path of the admin kubeconfig. The file exists if State is
	// Standing.
	Kubeconfig string

	dir    string // directory of the cluster's state; empty if unknown
	hosted bool   // a host process runs the cluster
	kind   kind.Found
}

// Root returns the directory that contains one directory for each standing cluster.
func Root() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home := os.Getenv("HOME")
		if home == "" {
			return "", errors.New("finding the directory of standing clusters: set XDG_STATE_HOME or HOME")
		}
		state = filepath.Join(home, ".local", "state")
	}
	if !filepath.IsAbs(state) {
		return "", fmt.Errorf("finding the directory of standing clusters: expected an absolute path in XDG_STATE_HOME, found %q", state)
	}
	return filepath.Join(state, "gauntlet"), nil
}

// Up creates a standing cluster, with a subject unless s is nil. The caller leaves the
// directories in o empty, because Up sets them.
func Up(ctx context.Context, o environment.Options, s *environment.SubjectOptions) (Cluster, error) {
	provider, err := providers.NamedWith(o.Provider, cluster.StandingClusters)
	if err != nil {
		return Cluster{}, err
	}
	root, err := Root()
	if err != nil {
		return Cluster{}, err
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return Cluster{}, fmt.Errorf("creating the directory of the cluster: %w", err)
	}
	dir, err := os.MkdirTemp(root, o.Provider+"-")
	if err != nil {
		return Cluster{}, fmt.Errorf("creating the directory of the cluster: %w", err)
	}
	if err := writeOwner(dir); err != nil {
		return Cluster{}, errors.Join(err, os.RemoveAll(dir))
	}
	o.StateDir, o.KeepState, o.LogDir = dir, true, filepath.Join(dir, logSubdir)
	up := upHosted
	if provider.Capabilities.Has(cluster.RunsDetached) {
		up = upDetached
	}
	c, err := up(ctx, o, s)
	if err == nil {
		return c, nil
	}
	if logs, _ := os.ReadDir(o.LogDir); len(logs) == 0 {
		return Cluster{}, errors.Join(err, os.RemoveAll(dir))
	}
	// Keep the logs of a failed start.
	return Cluster{}, fmt.Errorf("%w\n(the logs are in %s; `gauntlet clean` removes them)", err, o.LogDir)
}

// logSubdir is the subdirectory for logs in a cluster's directory.
const logSubdir = "logs"

// upDetached starts a cluster that needs no process of gauntlet.
func upDetached(ctx context.Context, o environment.Options, s *environment.SubjectOptions) (Cluster, error) {
	o.ControlPlane.Standing = true
	e, err := environment.Start(ctx, o)
	if err != nil {
		return Cluster{}, err
	}
	detached, ok := e.Cluster.(cluster.Detached)
	if !ok {
		return Cluster{}, errors.Join(fmt.Errorf("expected a cluster that needs no process of gauntlet, found %T", e.Cluster), e.Cluster.Stop(ctx))
	}
	if s != nil {
		if err := e.StartSubject(ctx, *s); err != nil {
			return Cluster{}, errors.Join(err, e.Cluster.Stop(ctx))
		}
	}
	return Cluster{Name: detached.ID(), Provider: o.Provider, State: Standing, Kubeconfig: detached.Kubeconfig(), dir: o.StateDir}, nil
}

// List returns this user's standing clusters with host processes, and every kind cluster
// that gauntlet created on the container engine. If no container engine is running, List
// returns no kind clusters.
func List(ctx context.Context) ([]Cluster, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	all, err := listHosted(root)
	if err != nil {
		return nil, err
	}
	found, err := kind.List(ctx)
	if errors.Is(err, kind.ErrNoEngine) || errors.Is(err, kind.ErrEngineDown) {
		return all, nil // without the engine, directories of kind clusters may still be needed
	}
	if err != nil {
		return nil, err
	}
	inUse := map[string]bool{}
	for _, f := range found {
		c := Cluster{Name: f.Name, Provider: kind.Name, State: f.State, Kubeconfig: f.Kubeconfig(), kind: f}
		if dir := filepath.Dir(f.Dir); filepath.Dir(dir) == root {
			c.dir, inUse[dir] = dir, true
		}
		all = append(all, c)
	}
	leftovers, err := listLeftovers(root, inUse)
	return append(all, leftovers...), err
}

// listLeftovers returns the directories without a kind cluster. They contain the logs
// of failed starts.
func listLeftovers(root string, inUse map[string]bool) ([]Cluster, error) {
	owners, err := ownersOf(root, kind.Name)
	if err != nil {
		return nil, err
	}
	var leftovers []Cluster
	for _, o := range owners {
		if !inUse[o.dir] && o.existence == process.Gone {
			leftovers = append(leftovers, Cluster{Name: filepath.Base(o.dir), Provider: kind.Name, State: LeftBehind, dir: o.dir})
		}
	}
	return leftovers, nil
}

// Down removes a cluster, even if it is in use.
func Down(ctx context.Context, c Cluster) error {
	if c.hosted {
		if err := stopHost(ctx, c.dir); err != nil {
			return fmt.Errorf("removing cluster %s: %w", c.Name, err)
		}
	} else if c.kind.Name != "" {
		if err := kind.Remove(ctx, c.kind); err != nil {
			return err
		}
	}
	if c.dir == "" {
		return nil
	}
	if err := os.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("removing the state of cluster %s: %w", c.Name, err)
	}
	return nil
}

// Clean removes clusters that were left behind. It returns the removed clusters and the
// remaining ones.
func Clean(ctx context.Context) (removed, remaining []Cluster, err error) {
	all, err := List(ctx)
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	for _, c := range all {
		if c.State != LeftBehind {
			remaining = append(remaining, c)
			continue
		}
		if err := Down(ctx, c); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, c)
	}
	return removed, remaining, errors.Join(errs...)
}

// CleanExisting removes the objects that a killed run left on an existing cluster, and
// reports whether there were any.
func CleanExisting(ctx context.Context, kubeconfig, context string) (removed bool, err error) {
	config, err := existing.Config(kubeconfig, context)
	if err != nil {
		return false, err
	}
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		return false, fmt.Errorf("existing cluster: %w", err)
	}
	if removed, err = existing.Clean(ctx, admin); err != nil {
		return removed, err
	}
	return removed, subject.Revoke(ctx, admin)
}
