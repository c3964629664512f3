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

	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// The labels of the network of a cluster. They show whether the cluster is still in use,
// even after its process was killed.
const (
	ownerLabel = "gauntlet.owner" // a process.Identity
	keepLabel  = "gauntlet.keep"  // "true" if the cluster may outlive its owner
	dirLabel   = "gauntlet.dir"   // the state directory
	imageLabel = "gauntlet.image"
	// nodeLabel is the label that kind sets on the containers of nodes.
	nodeLabel = "io.x-k8s.kind.cluster"
	// namePrefix is the prefix of the names of all clusters of gauntlet.
	namePrefix = "gauntlet-"
	// markerFile is a file in the state directory that contains the name of the cluster.
	markerFile = "kind-cluster"
)

// createNetwork creates the network of the cluster and thereby reserves its name.
func (c *Cluster) createNetwork(ctx context.Context, keep bool) error {
	self, err := process.Self()
	if err != nil {
		return err
	}
	_, err = c.engine.run(ctx, engineChangeTimeout, "network", "create", "--driver", "bridge",
		"--label", ownerLabel+"="+self.String(),
		"--label", keepLabel+"="+fmt.Sprint(keep),
		"--label", dirLabel+"="+c.dir,
		"--label", imageLabel+"="+c.image,
		c.name)
	return err
}

// removeScript is a shell script that removes a cluster like [engine.remove]. The
// guard process runs it after gauntlet has died. It repeats the removal, because
// commands that survive gauntlet may still create nodes. See [thaw] for the inner
// loop.
const removeScript = `
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

// guard makes the guard process remove the cluster if gauntlet dies before it calls unguard.
func (c *Cluster) guard() (unguard func(), err error) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return nil, fmt.Errorf("guarding the cluster: %w", err)
	}
	unguardDir, err := process.GuardDirectory(c.dir)
	if err != nil {
		return nil, err
	}
	unguardCluster, err := process.GuardCommand([]string{shell, "-c", removeScript, "remove", nodeLabel, c.name}, os.Environ())
	if err != nil {
		return nil, err
	}
	return func() { unguardCluster(); unguardDir() }, nil
}

// State is the state of a cluster that [List] found.
type State string

const (
	// InUse means that the process that created the cluster is running.
	InUse State = "in use"
	// Standing means that the cluster is complete and was created with Options.Keep.
	Standing State = "kept"
	// LeftBehind means that no process uses the cluster, so that it can be removed.
	LeftBehind State = "left behind"
	// Elsewhere means that a process on another machine or in another container created
	// the cluster. The cluster may be in use there.
	Elsewhere State = "made elsewhere"
)

// Found is a cluster, or the rest of a cluster, that [List] found.
type Found struct {
	Name  string
	State State
	Owner string // process.Identity of the creator; empty if unknown
	Dir   string // state directory; empty if unknown
	Image string
}

// Kubeconfig returns the path of the kubeconfig of the Admin role. It exists if the cluster is complete.
func (f Found) Kubeconfig() string { return filepath.Join(f.Dir, kubeconfigFile) }

// List returns all clusters of the container engine that gauntlet created, sorted by name.
func List(ctx context.Context) ([]Found, error) {
	var e engine
	if err := e.check(ctx); err != nil {
		return nil, err
	}
	// List the nodes before the networks. A network is created before its nodes, so a
	// node without a network is a leftover and not part of a starting cluster.
	nodes, err := e.lines(ctx, "ps", "--all", "--filter", "label="+nodeLabel, "--format", fmt.Sprintf("{{.Label %q}}", nodeLabel))
	if err != nil {
		return nil, fmt.Errorf("listing the containers of nodes: %w", err)
	}
	networks, err := e.lines(ctx, "network", "ls", "--filter", "label="+ownerLabel, "--format",
		fmt.Sprintf("{{.Name}}\t{{.Label %q}}\t{{.Label %q}}\t{{.Label %q}}\t{{.Label %q}}", ownerLabel, keepLabel, dirLabel, imageLabel))
	if err != nil {
		return nil, fmt.Errorf("listing the networks: %w", err)
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
		hasNetwork := slices.ContainsFunc(all, func(f Found) bool { return f.Name == name })
		if strings.HasPrefix(name, namePrefix) && !hasNetwork {
			all = append(all, Found{Name: name, State: LeftBehind})
		}
	}
	slices.SortFunc(all, func(a, b Found) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// parseNetwork parses a line of the list of networks.
func parseNetwork(line string) (Found, error) {
	fields := strings.Split(line, "\t")
	if len(fields) != 5 {
		return Found{}, fmt.Errorf("parsing the list of networks: expected 5 fields, found %q", line)
	}
	f := Found{Name: fields[0], Owner: fields[1], Dir: fields[3], Image: fields[4]}
	owner, err := process.ParseIdentity(f.Owner)
	if err != nil {
		return Found{}, fmt.Errorf("label %s of network %s: %w", ownerLabel, f.Name, err)
	}
	existence, err := owner.Existence()
	if err != nil {
		return Found{}, fmt.Errorf("owner of network %s: %w", f.Name, err)
	}
	// A kubeconfig that cannot be accessed, such as the file of another user, counts as
	// existing.
	_, err = os.Stat(f.Kubeconfig())
	f.State = stateOf(existence, fields[2] == "true", !errors.Is(err, fs.ErrNotExist))
	return f, nil
}

// stateOf returns the state of a cluster. The argument keep is the value of
// Options.Keep, and complete is true if Start has completed.
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

// Remove removes a cluster that [List] found, with its state directory.
func Remove(ctx context.Context, found Found) error {
	if err := (engine{}).remove(ctx, found.Name); err != nil {
		return fmt.Errorf("removing kind cluster %s: %w", found.Name, err)
	}
	if found.Dir == "" {
		return nil
	}
	marker, err := os.ReadFile(filepath.Join(found.Dir, markerFile))
	if err != nil || strings.TrimSpace(string(marker)) != found.Name {
		return nil // already removed, or not the state directory of this cluster
	}
	if err := os.RemoveAll(found.Dir); err != nil {
		return fmt.Errorf("removing the state directory of kind cluster %s: %w", found.Name, err)
	}
	return nil
}
