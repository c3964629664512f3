package chaos

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"github.com/kube-gauntlet/gauntlet/controllers/rbac"
	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/rbacaudit"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

var savedRuns = flag.String("runs", "", "the directory of saved runs that TestRBACInRuns looks at, from the top of the project; empty is none")

// allowedUnused are the rights of ours that no scenario needs to make use of, and
// why they are granted all the same.
var allowedUnused = map[rbacaudit.Permission]string{
	"update replicationcontrollers/finalizers": usedByAdmission,
	"update replicasets.apps/finalizers":       usedByAdmission,
	"update deployments.apps/finalizers":       usedByAdmission,
	"list pods":                                usedWithoutWatchList,
	"list replicationcontrollers":              usedWithoutWatchList,
	"list replicasets.apps":                    usedWithoutWatchList,
	"list deployments.apps":                    usedWithoutWatchList,
	"list services":                            usedWithoutWatchList,
	"list endpoints":                           usedWithoutWatchList,
	"get endpoints":                            "asked for when Endpoints have neither a Service nor a place in the cache",
}

const (
	usedByAdmission      = "asked for by an admission plugin, where it is on, never by a request"
	usedWithoutWatchList = "asked for where the API server does not stream lists"
)

// requestedEntry is the name of the report entry that says what a run of ours asked for.
const requestedEntry = "rights asked for"

// expectPermissionsGranted expects of a run of ours that its roles grant whatever it asked
// for, and reports what that was.
func expectPermissionsGranted(directory string) {
	ginkgo.GinkgoHelper()
	ginkgo.AddReportEntry(requestedEntry, ginkgo.ReportEntryVisibilityNever, requestedPermissions(directory))
}

// requestedPermissions returns what a run of ours asked for, and expects that its roles
// grant it.
func requestedPermissions(directory string) rbacaudit.Requested {
	ginkgo.GinkgoHelper()
	asked, err := rbacaudit.RequestedIn(history.ReadFile(run.HistoryFile(directory)))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(rbacaudit.Without(asked.Permissions, grantedPermissions())).To(gomega.BeEmpty(), "asked for in %s, and not granted by rbac.yaml", directory)
	gomega.Expect(asked.Refused).To(gomega.BeEmpty(), "refused by the API server in %s", directory)
	return asked
}

// Whatever rbac.yaml grants, some run made use of.
var _ = ginkgo.ReportAfterSuite("ours is granted no more than it uses", func(report ginkgo.Report) {
	used, whole := permissionsUsedIn(report)
	if !whole {
		return // of some runs alone nothing follows
	}
	expectNoUnusedPermissions(used)
})

// expectNoUnusedPermissions expects that rbac.yaml grants nothing beyond what all runs together
// used, but for what may go unused.
func expectNoUnusedPermissions(used []rbacaudit.Permission) {
	ginkgo.GinkgoHelper()
	gomega.Expect(rbacaudit.Without(slices.Sorted(maps.Keys(allowedUnused)), grantedPermissions())).To(gomega.BeEmpty(), "said to go unused, and not granted by rbac.yaml")
	unused := rbacaudit.Without(grantedPermissions(), used)
	gomega.Expect(rbacaudit.Without(unused, slices.Collect(maps.Keys(allowedUnused)))).To(gomega.BeEmpty(), "granted by rbac.yaml, and used in no run")
}

// TestRBACInRuns expects of saved runs of ours what is expected of the specs':
// where make chaos makes them, the specs of ours need not make them once more. It
// wants a run of every scenario, and takes the last one of each.
func TestRBACInRuns(t *testing.T) {
	if *savedRuns == "" {
		t.Skip("looks at saved runs: make rights")
	}
	gomega.RegisterTestingT(t)
	var used []rbacaudit.Permission
	for _, asked := range library.All() {
		if run.Supported(asked, faults.Simulated) == nil {
			used = append(used, requestedPermissions(lastRunDirectory(asked.Name)).Permissions...)
		}
	}
	expectNoUnusedPermissions(used)
}

// lastRunDirectory returns the directory of the last saved run of a scenario on ours.
// Names of run directories begin with the time, in digits.
func lastRunDirectory(name string) string {
	directories, err := filepath.Glob(filepath.Join(root, *savedRuns, "*-"+name+"-"+subject.Ours.String()+"-seed*"))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	last := ""
	for _, directory := range directories { // sorted
		encoded, err := os.ReadFile(filepath.Join(directory, "environment.json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was given up before it began
		}
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		var made run.Environment
		gomega.Expect(json.Unmarshal(encoded, &made)).To(gomega.Succeed(), directory)
		if made.Scenario == name && made.Provider == faults.Simulated {
			last = directory
		}
	}
	gomega.Expect(last).NotTo(gomega.BeEmpty(), "no run of %s on ours in %s: make chaos makes one", name, *savedRuns)
	return last
}

// permissionsUsedIn returns what the runs of ours asked for, and whether all of them ran
// and passed that could.
func permissionsUsedIn(report ginkgo.Report) (used []rbacaudit.Permission, whole bool) {
	ours := report.SpecReports.WithLeafNodeType(types.NodeTypeIt)
	ours = slices.DeleteFunc(ours, func(spec types.SpecReport) bool { return !slices.Contains(spec.Labels(), subject.Ours.String()) })
	for _, spec := range ours {
		if cannotRun := len(entries[string](spec, unsupportedEntry)) > 0; !cannotRun && spec.State != types.SpecStatePassed {
			return nil, false
		}
		for _, asked := range entries[rbacaudit.Requested](spec, requestedEntry) {
			used = append(used, asked.Permissions...)
		}
	}
	return used, len(ours) > 0
}

// grantedPermissions returns what rbac.yaml grants.
func grantedPermissions() []rbacaudit.Permission {
	ginkgo.GinkgoHelper()
	controllers, lease, err := rbac.Roles("kube-system", "lease")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return rbacaudit.Granted(append(controllers.Rules, lease.Rules...)...)
}
