// Package standing creates, lists and removes standing clusters. A standing cluster keeps running
// after `gauntlet up`, until `gauntlet down`. Users inspect the cluster or run other tests on it.
// The package also removes clusters that killed gauntlet commands have left behind.
//
// A cluster with the capability RunsDetached, such as a kind cluster, needs no gauntlet process to
// keep running. An embedded cluster consists of processes that end when the gauntlet process
// that started them ends. A separate gauntlet process in the background, the host process,
// therefore runs an embedded cluster. The host process runs until `gauntlet down` stops it.
package standing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/kind"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// State says whether a cluster is in use, stays up after `gauntlet up`, or is left behind. The
// state of a cluster on another machine may be unknown ([Elsewhere]).
type State = kind.State

// These are the states of a cluster, such as in use. Package kind documents them for kind clusters.
// A gauntlet process in the background (the host process) runs an embedded cluster. The state of
// this cluster is Standing, and LeftBehind after the host process has ended.
const (
	InUse      = kind.InUse
	Standing   = kind.Standing
	LeftBehind = kind.LeftBehind
	Elsewhere  = kind.Elsewhere
)

// Cluster is a cluster of gauntlet, or the files of a cluster that failed to start. Most
// clusters are standing clusters, which keep running after `gauntlet up`. A kind cluster may
// also belong to a run, or be left behind by a killed run.
type Cluster struct {
	// Name is the name of the cluster, as an argument of `gauntlet down`. No two existing
	// clusters have the same name.
	Name     string
	Provider string // name of the provider, such as "kind"
	State    State
	// Kubeconfig is the path of the admin kubeconfig. The file exists only after the cluster is
	// ready.
	Kubeconfig string

	dir    string     // directory of the cluster's state; "" if unknown
	hosted bool       // true if a gauntlet process in the background (host process) runs the cluster, or ran it
	kind   kind.Found // the kind cluster; empty if package kind has not found one
}

// Root returns the path of the directory for the files of clusters that stay up after `gauntlet
// up`. Each cluster has a subdirectory. The directory is $XDG_STATE_HOME/gauntlet, or
// ~/.local/state/gauntlet if XDG_STATE_HOME is not set.
func Root() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home := os.Getenv("HOME")
		if home == "" {
			return "", errors.New("finding the directory of standing clusters: neither XDG_STATE_HOME nor HOME is set; expected an absolute path in one of them")
		}
		state = filepath.Join(home, ".local", "state")
	}
	if !filepath.IsAbs(state) {
		return "", fmt.Errorf("finding the directory of standing clusters: expected an absolute path in XDG_STATE_HOME, found %q", state)
	}
	if err := inputfile.CheckDirectory(state); err != nil {
		return "", fmt.Errorf("finding the directory of standing clusters: %w in XDG_STATE_HOME", err)
	}
	return filepath.Join(state, "gauntlet"), nil
}

// Up starts a cluster that stays up until `gauntlet down`, and returns when the cluster is
// ready. If s is not nil, Up also starts a subject: the program with the controllers under test.
//
// Up overwrites the fields StateDir, KeepState and LogDir of o. If the start fails, the log
// files remain, and the error contains the path of their directory.
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
		return Cluster{}, fmt.Errorf("creating the directory of the cluster in %s: %w", root, err)
	}
	dir, err := os.MkdirTemp(root, o.Provider+"-")
	if err != nil {
		return Cluster{}, fmt.Errorf("creating the directory of the cluster in %s: %w", root, err)
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
	// The directory remains, because it contains the logs of the failed start.
	return Cluster{}, fmt.Errorf("%w\n(the logs are in %s; `gauntlet clean` removes them)", err, o.LogDir)
}

// logSubdir is the name of the subdirectory for log files in a cluster's directory.
const logSubdir = "logs"

// upDetached starts a cluster that keeps running without a gauntlet process, such as a kind
// cluster. It returns when the cluster is ready.
func upDetached(ctx context.Context, o environment.Options, s *environment.SubjectOptions) (Cluster, error) {
	o.ControlPlane.Standing = true
	e, err := environment.Start(ctx, o)
	if err != nil {
		return Cluster{}, err
	}
	detached, ok := e.Cluster.(cluster.Detached)
	if !ok {
		return Cluster{}, errors.Join(fmt.Errorf("provider %s cannot keep a cluster running without gauntlet: found a cluster of type %T; expected one that implements cluster.Detached", o.Provider, e.Cluster), e.Cluster.Stop(ctx))
	}
	if s != nil {
		if err := e.StartSubject(ctx, *s); err != nil {
			return Cluster{}, errors.Join(err, e.Cluster.Stop(ctx))
		}
	}
	return Cluster{Name: detached.ID(), Provider: o.Provider, State: Standing, Kubeconfig: detached.Kubeconfig(), dir: o.StateDir}, nil
}

// List returns the clusters of this user that gauntlet processes in the background (host processes)
// run or ran. It also returns all kind clusters, including those of runs and of other users of the
// container engine. Directories with the logs of kind clusters that failed to start are in the list
// too. If no container engine is running, List returns only clusters of host processes.
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
		return all, nil // do not list leftovers: a stopped engine may start again, with its clusters
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

// listLeftovers returns the directories that failed starts of kind clusters have left in the
// directory root (see [Root]). They contain log files.
//
// A directory is a leftover if it is not in inUse, and the gauntlet process that owns it has ended.
// The keys of inUse are the directories of the kind clusters that exist.
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

// Down stops a cluster and removes its files, even if the cluster is in use.
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

// Clean removes all clusters whose state is LeftBehind. It returns the removed clusters, and the
// remaining clusters, which have another state. A cluster that could not be removed is in
// neither list.
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
