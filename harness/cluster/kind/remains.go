package kind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/process"
)

// What a cluster's network says of the cluster, so that it can be told, whatever
// happened to the process that made it, whether anybody still needs it.
const (
	ownerLabel = "gauntlet.owner" // a process.Identity
	keepLabel  = "gauntlet.keep"  // "true" if it may outlive its owner
	dirLabel   = "gauntlet.dir"   // the state directory
	imageLabel = "gauntlet.image"
	// nodeLabel is kind's own label of containers.
	nodeLabel = "io.x-k8s.kind.cluster"
	// namePrefix begins the names of all our clusters.
	namePrefix = "gauntlet-"
	// markerFile in a directory shows that it is the state directory of the cluster
	// whose name the file holds.
	markerFile = "kind-cluster"
)

// makeNetwork makes the cluster's own network and thereby claims its name.
func (c *Cluster) makeNetwork(ctx context.Context, keep bool) error {
	self, err := process.Self()
	if err != nil {
		return err
	}
	_, err = c.engine.run(ctx, engineWorkMax, "network", "create", "--driver", "bridge",
		"--label", ownerLabel+"="+self.String(),
		"--label", keepLabel+"="+fmt.Sprint(keep),
		"--label", dirLabel+"="+c.dir,
		"--label", imageLabel+"="+c.image,
		c.name)
	return err
}

// removal is the shell script that does what [engine.remove] does, for a guard.
// It tries again for as long as nodes are still being made by commands that
// gauntlet's death did not stop. See [thaw] for the loop in it.
const removal = `
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	nodes=$(docker ps --all --quiet --no-trunc --filter "label=$1=$2")
	for node in $nodes; do
		grep -rl -e FROZEN -e FREEZING --include=freezer.state \
			/sys/fs/cgroup/freezer/docker/$node /sys/fs/cgroup/freezer/system.slice/docker-$node.scope |
			while read -r state; do echo THAWED >"$state"; done
	done
	[ -z "$nodes" ] || docker rm --force --volumes $nodes
	docker network rm "$2"
	docker network inspect "$2" || [ -n "$(docker ps --all --quiet --filter "label=$1=$2")" ] || exit 0
	sleep 1
done`

// guard has the cluster removed should gauntlet die.
func (c *Cluster) guard() (release func(), err error) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return nil, fmt.Errorf("guarding the cluster: %w", err)
	}
	keepDir, err := process.GuardDirectory(c.dir)
	if err != nil {
		return nil, err
	}
	keepCluster, err := process.GuardCommand([]string{shell, "-c", removal, "remove", nodeLabel, c.name}, os.Environ())
	if err != nil {
		return nil, err
	}
	return func() { keepCluster(); keepDir() }, nil
}

// State is what is to be done with a cluster that is found.
type State string

const (
	// InUse says that the process that made it lives.
	InUse State = "in use"
	// Standing says that it was to stay, and is complete.
	Standing State = "kept"
	// LeftBehind says that nobody needs it any more.
	LeftBehind State = "left behind"
	// Elsewhere says that it was made on another machine or in another container,
	// where it may still be in use.
	Elsewhere State = "made elsewhere"
)

// Found is a cluster, or the rest of one, that the engine knows.
type Found struct {
	Name  string
	State State
	Owner string // the process.Identity of who made it, empty if unknown
	Dir   string // its state directory, empty if unknown
	Image string
}

// Kubeconfig is the path of the admin's kubeconfig of a cluster that is complete.
func (f Found) Kubeconfig() string { return filepath.Join(f.Dir, kubeconfigFile) }

// List finds all clusters of the engine that gauntlet made, by name.
func List(ctx context.Context) ([]Found, error) {
	var e engine
	if err := e.check(ctx); err != nil {
		return nil, err
	}
	// The nodes before the networks: a network is there before the first of its
	// nodes, so that a node without one is what was left, not what is being made.
	nodes, err := e.lines(ctx, "ps", "--all", "--filter", "label="+nodeLabel, "--format", fmt.Sprintf("{{.Label %q}}", nodeLabel))
	if err != nil {
		return nil, fmt.Errorf("looking for nodes: %w", err)
	}
	networks, err := e.lines(ctx, "network", "ls", "--filter", "label="+ownerLabel, "--format",
		fmt.Sprintf("{{.Name}}\t{{.Label %q}}\t{{.Label %q}}\t{{.Label %q}}\t{{.Label %q}}", ownerLabel, keepLabel, dirLabel, imageLabel))
	if err != nil {
		return nil, fmt.Errorf("looking for networks: %w", err)
	}
	var all []Found
	for _, line := range networks {
		found, err := parseNetwork(line)
		if err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	for _, name := range nodes {
		known := slices.ContainsFunc(all, func(f Found) bool { return f.Name == name })
		if strings.HasPrefix(name, namePrefix) && !known {
			all = append(all, Found{Name: name, State: LeftBehind})
		}
	}
	slices.SortFunc(all, func(a, b Found) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// parseNetwork reads a line of List's question for networks.
func parseNetwork(line string) (Found, error) {
	fields := strings.Split(line, "\t")
	if len(fields) != 5 {
		return Found{}, fmt.Errorf("the engine describes a network as %q: expected 5 fields", line)
	}
	f := Found{Name: fields[0], Owner: fields[1], Dir: fields[3], Image: fields[4]}
	owner, err := process.ParseIdentity(f.Owner)
	if err != nil {
		return Found{}, fmt.Errorf("the owner of the network %s: %w", f.Name, err)
	}
	existence, err := owner.Existence()
	if err != nil {
		return Found{}, fmt.Errorf("the owner of the network %s: %w", f.Name, err)
	}
	// What cannot be looked at, another user's file for one, is taken to be there.
	_, err = os.Stat(f.Kubeconfig())
	f.State = stateOf(existence, fields[2] == "true", !errors.Is(err, fs.ErrNotExist))
	return f, nil
}

// stateOf says what a cluster is, given its owner, whether it was to be kept, and
// whether it was completed.
func stateOf(owner process.Existence, keep, complete bool) State {
	switch {
	case owner == process.Lives:
		return InUse
	case keep && complete:
		return Standing
	case owner == process.Elsewhere:
		return Elsewhere
	default:
		return LeftBehind
	}
}

// Remove removes a cluster that was found, and its state directory.
func Remove(ctx context.Context, found Found) error {
	if err := (engine{}).remove(ctx, found.Name); err != nil {
		return fmt.Errorf("removing the kind cluster %s: %w", found.Name, err)
	}
	if found.Dir == "" {
		return nil
	}
	marker, err := os.ReadFile(filepath.Join(found.Dir, markerFile))
	if err != nil || strings.TrimSpace(string(marker)) != found.Name {
		return nil // gone already, or not ours to remove
	}
	if err := os.RemoveAll(found.Dir); err != nil {
		return fmt.Errorf("removing the state of the kind cluster %s: %w", found.Name, err)
	}
	return nil
}
