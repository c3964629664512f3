// Package keep has clusters that outlive the command that made them: for whoever
// wants a control plane to look at, or to run other tests against. It brings them
// up, finds them, and takes them down, and removes what killed commands left.
//
// A kind cluster stands by itself. An embedded one is processes, which never
// outlive the gauntlet that started them: there a gauntlet of its own, the
// keeper, runs in the background until it is told to end.
package standing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/kind"
	"github.com/kube-gauntlet/gauntlet/harness/process"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// State is what is to be done with a cluster.
type State = kind.State

// The states that a cluster can be in; see package kind.
const (
	InUse      = kind.InUse
	Standing   = kind.Standing
	LeftBehind = kind.LeftBehind
	Elsewhere  = kind.Elsewhere
)

// Cluster is a cluster that was found.
type Cluster struct {
	// Name is unique, for as long as the cluster stands.
	Name     string
	Provider string
	State    State
	// Kubeconfig is the path of the admin's; there is one if the State is Kept.
	Kubeconfig string

	dir  string // that was made for it; empty if none is known
	kind kind.Found
}

// The providers whose clusters can be kept.
const (
	embeddedProvider = "embedded"
	kindProvider     = "kind"
)

// Root is the directory in which the state of kept clusters is, one directory
// for each.
func Root() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home := os.Getenv("HOME")
		if home == "" {
			return "", errors.New("keeping a cluster: neither XDG_STATE_HOME nor HOME is set: no place for its state")
		}
		state = filepath.Join(home, ".local", "state")
	}
	if !filepath.IsAbs(state) {
		return "", fmt.Errorf("keeping a cluster: the directory %q is not an absolute path (XDG_STATE_HOME)", state)
	}
	return filepath.Join(state, "gauntlet"), nil
}

// Up brings up a cluster that stays up, with a resident subject unless that is
// nil. The plane's directories are chosen here.
func Up(ctx context.Context, provider string, plane run.ControlPlane, resident *run.StandingSubject) (Cluster, error) {
	if kept := []string{embeddedProvider, kindProvider}; !slices.Contains(kept, provider) {
		return Cluster{}, fmt.Errorf("provider %q: expected %s", provider, strings.Join(kept, " or "))
	}
	root, err := Root()
	if err != nil {
		return Cluster{}, err
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return Cluster{}, fmt.Errorf("keeping a cluster: %w", err)
	}
	dir, err := os.MkdirTemp(root, provider+"-")
	if err != nil {
		return Cluster{}, fmt.Errorf("keeping a cluster: %w", err)
	}
	if err := writeOwner(dir); err != nil {
		return Cluster{}, errors.Join(err, os.RemoveAll(dir))
	}
	plane.Dir, plane.LogDir, plane.Standing = dir, filepath.Join(dir, logSubdir), true
	up := upKind
	if provider == embeddedProvider {
		up = upEmbedded
	}
	c, err := up(ctx, plane, resident)
	if err == nil {
		return c, nil
	}
	if logs, _ := os.ReadDir(plane.LogDir); len(logs) == 0 {
		return Cluster{}, errors.Join(err, os.RemoveAll(dir))
	}
	// The logs of a start that failed are what is left to look at.
	return Cluster{}, fmt.Errorf("%w\n(the logs are in %s, until `gauntlet clean`)", err, plane.LogDir)
}

// logSubdir is where in its directory a cluster's logs are.
const logSubdir = "logs"

func upKind(ctx context.Context, plane run.ControlPlane, resident *run.StandingSubject) (Cluster, error) {
	started, err := run.StartControlPlane(ctx, kindProvider, plane)
	if err != nil {
		return Cluster{}, err
	}
	made, ok := started.(*kind.Cluster)
	if !ok {
		return Cluster{}, errors.Join(fmt.Errorf("the kind provider started a %T", started), started.Stop(ctx))
	}
	if resident != nil {
		if _, err := resident.Install(ctx, made, plane); err != nil {
			return Cluster{}, errors.Join(err, made.Stop(ctx))
		}
	}
	return Cluster{Name: made.ID(), Provider: kindProvider, State: Standing, Kubeconfig: made.Kubeconfig(), dir: plane.Dir}, nil
}

// List finds every cluster that this user's commands keep, and every kind cluster
// of the engine that gauntlet made. Without an engine
// that answers there are none of the latter.
func List(ctx context.Context) ([]Cluster, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	all, err := listEmbedded(root)
	if err != nil {
		return nil, err
	}
	found, err := kind.List(ctx)
	if errors.Is(err, kind.ErrNoEngine) || errors.Is(err, kind.ErrEngineDown) {
		return all, nil // whose directories are still needed cannot be told
	}
	if err != nil {
		return nil, err
	}
	claimed := map[string]bool{}
	for _, f := range found {
		c := Cluster{Name: f.Name, Provider: kindProvider, State: f.State, Kubeconfig: f.Kubeconfig(), kind: f}
		if dir := filepath.Dir(f.Dir); filepath.Dir(dir) == root {
			c.dir, claimed[dir] = dir, true
		}
		all = append(all, c)
	}
	rests, err := listLeftovers(root, claimed)
	return append(all, rests...), err
}

// listLeftovers finds the directories that belong to no kind cluster any more: they
// hold the logs of starts that failed.
func listLeftovers(root string, claimed map[string]bool) ([]Cluster, error) {
	owners, err := ownersOf(root, kindProvider)
	if err != nil {
		return nil, err
	}
	var rests []Cluster
	for _, o := range owners {
		if !claimed[o.dir] && o.existence == process.Gone {
			rests = append(rests, Cluster{Name: filepath.Base(o.dir), Provider: kindProvider, State: LeftBehind, dir: o.dir})
		}
	}
	return rests, nil
}

// Down removes a cluster, whoever needs it.
func Down(ctx context.Context, c Cluster) error {
	if c.Provider == embeddedProvider {
		if err := stopHost(ctx, c.dir); err != nil {
			return fmt.Errorf("taking down %s: %w", c.Name, err)
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
		return fmt.Errorf("removing the state of %s: %w", c.Name, err)
	}
	return nil
}

// Clean removes what was left behind, and returns what it removed and what it
// spared.
func Clean(ctx context.Context) (removed, spared []Cluster, err error) {
	all, err := List(ctx)
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	for _, c := range all {
		if c.State != LeftBehind {
			spared = append(spared, c)
			continue
		}
		if err := Down(ctx, c); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, c)
	}
	return removed, spared, errors.Join(errs...)
}

// CleanExisting removes what a killed run left on a cluster that somebody else
// made, and reports whether there was anything.
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
