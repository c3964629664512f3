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

// The labels of a cluster's container network. From these labels, [List] finds out whether the
// cluster is still in use.
const (
	ownerLabel = "gauntlet.owner" // process.Identity of the gauntlet process that created the cluster
	keepLabel  = "gauntlet.keep"  // label with the value of Options.Keep, "true" or "false"
	dirLabel   = "gauntlet.dir"   // label with the path of the state directory
	imageLabel = "gauntlet.image" // label with the name of the node image
	// nodeLabel is the label of each node's container, which kind sets. The value is the name of
	// the cluster.
	nodeLabel = "io.x-k8s.kind.cluster"
	// namePrefix is the prefix of the name of every cluster that gauntlet creates.
	namePrefix = "gauntlet-"
	// markerFile is the name of a file in the state directory that contains the name of the
	// cluster. [Remove] reads this file before it removes the directory, because another cluster
	// may use the directory by then.
	markerFile = "kind-cluster"
)

// createNetwork creates the container network of the cluster, with the labels that [List] reads.
// The argument keep is Options.Keep. If a network with the cluster's name already exists,
// createNetwork returns an error.
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

// removeScript is a shell script that removes a cluster. The guard process runs the script after
// gauntlet has died. $1 is nodeLabel and $2 the name of the cluster.
//
// The script does the same as [engine.remove]. The script repeats the removal up to 20 times,
// because commands that gauntlet started may still create nodes. The inner loop unfreezes
// processes, as [thaw] does.
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

// guard makes the guard process remove the cluster and its state directory if gauntlet dies. The
// caller calls unguard when the removal is no longer necessary.
func (c *Cluster) guard() (unguard func(), err error) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return nil, fmt.Errorf("preparing the guard process to remove kind cluster %s if gauntlet is killed: %w", c.name, err)
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

// State says whether a cluster that [List] found is in use, or can be removed.
type State string

const (
	// InUse means that the gauntlet process that created the cluster is still running.
	InUse State = "in use"
	// Standing means that the cluster has Options.Keep and was started completely. The gauntlet
	// process that created the cluster has exited or runs on another machine.
	Standing State = "kept"
	// LeftBehind means that the gauntlet process that created the cluster has died. The cluster can
	// be removed.
	LeftBehind State = "left behind"
	// Elsewhere means that a gauntlet process on another machine or in another container created
	// the cluster. That process may still use the cluster.
	Elsewhere State = "made elsewhere"
)

// Found describes a cluster that [List] found. Some nodes or files of the cluster may already be
// removed.
type Found struct {
	Name  string // name of the cluster
	State State
	Owner string // process.Identity of the gauntlet process that created the cluster; empty if unknown
	Dir   string // state directory of the cluster; empty if unknown
	Image string // node image of the cluster; empty if unknown
}

// Kubeconfig returns the path of the kubeconfig file for the user with all permissions (role
// cluster.Admin). The file exists if the cluster was started completely.
func (f Found) Kubeconfig() string { return filepath.Join(f.Dir, kubeconfigFile) }

// List returns all clusters that gauntlet created in the container engine, sorted by name.
func List(ctx context.Context) ([]Found, error) {
	var e engine
	if err := e.check(ctx); err != nil {
		return nil, err
	}
	// List the nodes before the networks. Start creates a cluster's network before its nodes. A
	// node without a network is therefore a leftover, and does not belong to a cluster that another
	// process is starting.
	nodes, err := e.lines(ctx, "ps", "--all", "--filter", "label="+nodeLabel, "--format", fmt.Sprintf("{{.Label %q}}", nodeLabel))
	if err != nil {
		return nil, fmt.Errorf("listing the node containers of kind clusters: %w", err)
	}
	networks, err := e.lines(ctx, "network", "ls", "--filter", "label="+ownerLabel, "--format",
		fmt.Sprintf("{{.Name}}\t{{.Label %q}}\t{{.Label %q}}\t{{.Label %q}}\t{{.Label %q}}", ownerLabel, keepLabel, dirLabel, imageLabel))
	if err != nil {
		return nil, fmt.Errorf("listing the container networks of kind clusters: %w", err)
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

// parseNetwork returns the cluster that belongs to one line of `docker network ls`. The line
// contains the network's name and labels, separated by tabs.
func parseNetwork(line string) (Found, error) {
	fields := strings.Split(line, "\t")
	if len(fields) != 5 {
		return Found{}, fmt.Errorf("parsing the output of `docker network ls`: expected a name and 4 labels, separated by tabs; found %q", line)
	}
	f := Found{Name: fields[0], Owner: fields[1], Dir: fields[3], Image: fields[4]}
	owner, err := process.ParseIdentity(f.Owner)
	if err != nil {
		return Found{}, fmt.Errorf("parsing label %s of container network %s: %w", ownerLabel, f.Name, err)
	}
	existence, err := owner.Existence()
	if err != nil {
		return Found{}, fmt.Errorf("finding out whether the gauntlet process that created network %s still runs: %w", f.Name, err)
	}
	// After any error but ErrNotExist, the kubeconfig probably exists and belongs to another user.
	// The cluster is then considered complete.
	_, err = os.Stat(f.Kubeconfig())
	f.State = stateOf(existence, fields[2] == "true", !errors.Is(err, fs.ErrNotExist))
	return f, nil
}

// stateOf derives the State of a cluster from three facts about the cluster.
//
// The argument owner says whether the gauntlet process that created the cluster still runs. The
// argument keep is the cluster's Options.Keep. The argument complete is true if the cluster's
// kubeconfig exists, which Start writes last.
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

// Remove removes the nodes, the network and the state directory of a cluster that [List] found.
func Remove(ctx context.Context, found Found) error {
	if err := (engine{}).remove(ctx, found.Name); err != nil {
		return fmt.Errorf("removing kind cluster %s: %w", found.Name, err)
	}
	if found.Dir == "" {
		return nil
	}
	marker, err := os.ReadFile(filepath.Join(found.Dir, markerFile))
	if err != nil || strings.TrimSpace(string(marker)) != found.Name {
		return nil // the directory is already removed, or belongs to another cluster
	}
	if err := os.RemoveAll(found.Dir); err != nil {
		return fmt.Errorf("removing the state directory of kind cluster %s: %w", found.Name, err)
	}
	return nil
}
