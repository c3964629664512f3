// Package virtual describes the provider "virtual", whose control planes run in virtual time. In
// virtual time, the clock jumps to the next timer whenever all goroutines wait.
//
// The control plane is a part of the program gauntlet-virtual, which the module harness/virtual
// contains. gauntlet starts this program once for each run, and the program records the history.
// Only this program links kube-apiserver; gauntlet itself does not.
package virtual

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/executable"
)

// Name is the name of this provider, as in --provider=virtual.
const Name = "virtual"

// Program is the file name of the program that contains the control plane.
const Program = "gauntlet-virtual"

// Capabilities says what the control planes of this provider can do. Faults and suites ask for
// capabilities, not for the name of a provider.
var Capabilities = cluster.Capabilities{
	cluster.OwnsControlPlane, cluster.RestartsControlPlane, cluster.AccessesEtcd, cluster.ControlsAdmission,
	cluster.ParallelRuns, cluster.VirtualTime,
	cluster.SimulatedKubelets, cluster.ControlsContainers, cluster.ControlsKubelets,
	cluster.SubjectLinked, cluster.SkewsClocks,
}

// Served has the resources that the API server of this provider serves, by API group and version. A
// test of the API server compares the two.
var Served = map[string][]string{
	"v1": {
		"configmaps", "endpoints", "events", "namespaces", "nodes", "pods", "replicationcontrollers", "resourcequotas", "secrets",
		"serviceaccounts", "services",
	},
	"admissionregistration.k8s.io/v1": {"validatingadmissionpolicies", "validatingadmissionpolicybindings"},
	"apps/v1":                         {"deployments", "replicasets"},
	"coordination.k8s.io/v1":          {"leases"},
	"events.k8s.io/v1":                {"events"},
	"policy/v1":                       {"poddisruptionbudgets"},
	"rbac.authorization.k8s.io/v1":    {"clusterrolebindings", "clusterroles", "rolebindings", "roles"},
	"scheduling.k8s.io/v1":            {"priorityclasses"},
}

// Serves reports whether the API server of this provider serves a resource.
func Serves(resource schema.GroupVersionResource) bool {
	return slices.Contains(Served[resource.GroupVersion().String()], resource.Resource)
}

// Find returns the path of [Program], the executable that executes runs in virtual time. The
// argument gauntlet is the path of the executable gauntlet. Program must be in the same directory. The argument upstream
// says whether Program must link upstream's kube-controller-manager.
func Find(gauntlet string, upstream bool) (string, error) {
	if gauntlet == "" {
		return "", errors.New("the path of the gauntlet executable is unknown; gauntlet expects " + Program + " in the directory of this executable")
	}
	path := filepath.Join(filepath.Dir(gauntlet), Program)
	if err := executable.Check(path); err != nil {
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			return "", fmt.Errorf("%s: %w; raise the limit with ulimit -n", path, err)
		}
		return "", fmt.Errorf("%s: %w; run `make virtual` in a checkout of gauntlet", path, err)
	}
	if upstream && linksOnlyOurs(path) {
		return "", fmt.Errorf("%s: found a program without kube-controller-manager, because `make chaos` built it; run `make virtual` in a checkout of gauntlet", path)
	}
	return path, nil
}

// OnlyOurs is the build tag for a [Program] that does not link kube-controller-manager. Its build takes less time.
const OnlyOurs = "ours"

// linksOnlyOurs reports whether a [Program] was built with the tag [OnlyOurs].
func linksOnlyOurs(path string) bool {
	info, err := buildinfo.ReadFile(path)
	return err == nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-tags", Value: OnlyOurs})
}

// Start returns an error. The control plane exists only in [Program], so it cannot start in
// gauntlet's process.
func Start(context.Context) (cluster.Cluster, error) {
	return nil, errors.New("a control plane in virtual time exists only during `gauntlet run`; use another provider")
}
