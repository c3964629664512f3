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
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/suites/internal/rbacaudit"
)

var savedRuns = flag.String("runs", "", "the directory of saved runs for TestRBACInRuns, relative to the root of the repository; empty means no runs")

// allowedUnused contains the permissions of our controllers that no scenario uses. The value is
// the reason why rbac.yaml nevertheless grants the permission.
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
	"get endpoints":                            "requested for Endpoints that are not in the cache and have no Service",
}

const (
	usedByAdmission      = "checked by an optional admission plugin, never requested"
	usedWithoutWatchList = "requested if the API server does not support streaming lists"
)

// requestedEntry is the name of a Ginkgo report entry. The entry lists the permissions that the
// requests of our controllers needed in a run.
const requestedEntry = "requested permissions"

// expectPermissionsGranted fails the spec unless rbac.yaml grants all permissions that our
// controllers needed in a run. It adds these permissions to the Ginkgo report, for the test of
// unused permissions.
func expectPermissionsGranted(directory string) {
	ginkgo.GinkgoHelper()
	ginkgo.AddReportEntry(requestedEntry, ginkgo.ReportEntryVisibilityNever, requestedPermissions(directory))
}

// requestedPermissions returns the permissions that our controllers needed in a run. It fails the
// Ginkgo spec unless rbac.yaml grants all of them. The argument is the run directory.
func requestedPermissions(directory string) rbacaudit.Requested {
	ginkgo.GinkgoHelper()
	requested, err := rbacaudit.RequestedIn(history.ReadFile(run.HistoryFile(directory)))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(rbacaudit.Without(requested.Permissions, grantedPermissions())).To(gomega.BeEmpty(), "permissions requested in %s but not granted by rbac.yaml", directory)
	gomega.Expect(requested.Refused).To(gomega.BeEmpty(), "requests forbidden by the API server in %s", directory)
	return requested
}

// After the suite, this Ginkgo node checks for each permission in rbac.yaml that at least one run
// used it.
var _ = ginkgo.ReportAfterSuite("unused permissions of our controllers", func(report ginkgo.Report) {
	used, complete := permissionsUsedIn(report)
	if !complete {
		return // some scenarios did not run, and only those may use a certain permission
	}
	expectNoUnusedPermissions(used)
})

// expectNoUnusedPermissions fails the test if rbac.yaml grants a permission that is neither in
// used nor in allowedUnused.
func expectNoUnusedPermissions(used []rbacaudit.Permission) {
	ginkgo.GinkgoHelper()
	gomega.Expect(rbacaudit.Without(slices.Sorted(maps.Keys(allowedUnused)), grantedPermissions())).To(gomega.BeEmpty(), "permissions in allowedUnused that rbac.yaml does not grant")
	unused := rbacaudit.Without(grantedPermissions(), used)
	gomega.Expect(rbacaudit.Without(unused, slices.Collect(maps.Keys(allowedUnused)))).To(gomega.BeEmpty(), "permissions granted by rbac.yaml that no run used")
}

// TestRBACInRuns checks the permissions of our controllers in saved runs, without new runs. These are
// the runs of `make chaos` in virtual time. It needs a run of every scenario of the tier default. Of each
// scenario, it uses the last run.
func TestRBACInRuns(t *testing.T) {
	if *savedRuns == "" {
		t.Skip("needs saved runs: run make rbac")
	}
	gomega.RegisterTestingT(t)
	var used []rbacaudit.Permission
	for _, s := range library.InTier(library.Default) {
		if run.Supported(s, "virtual") == nil {
			used = append(used, requestedPermissions(lastRunDirectory(s.Name)).Permissions...)
		}
	}
	expectNoUnusedPermissions(used)
}

// lastRunDirectory returns the directory of the last saved run of a scenario on our controllers.
// The name of a run directory begins with the start time of the run.
func lastRunDirectory(name string) string {
	directories, err := filepath.Glob(filepath.Join(root, *savedRuns, "*-"+name+"-"+subject.Ours.String()+"-seed*"))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	last := ""
	for _, directory := range directories { // sorted by name, so the last run comes last
		encoded, err := os.ReadFile(filepath.Join(directory, "environment.json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the run could not start
		}
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		var environment run.Environment
		gomega.Expect(json.Unmarshal(encoded, &environment)).To(gomega.Succeed(), directory)
		if environment.Scenario == name && lightweight(environment.Provider) {
			last = directory
		}
	}
	gomega.Expect(last).NotTo(gomega.BeEmpty(), "no run of scenario %s on ours in %s; run make chaos-virtual", name, *savedRuns)
	return last
}

// permissionsUsedIn returns the permissions that our controllers needed in all runs of a Ginkgo
// report. The result complete is true if all supported scenarios of the tier default ran and
// passed.
func permissionsUsedIn(report ginkgo.Report) (used []rbacaudit.Permission, complete bool) {
	ours := report.SpecReports.WithLeafNodeType(types.NodeTypeIt)
	ours = slices.DeleteFunc(ours, func(spec types.SpecReport) bool { return !slices.Contains(spec.Labels(), subject.Ours.String()) })
	for _, spec := range ours {
		required := len(entries[string](spec, unsupportedEntry)) == 0 && !slices.Contains(spec.Labels(), string(library.Full))
		if required && spec.State != types.SpecStatePassed {
			return nil, false
		}
		for _, requested := range entries[rbacaudit.Requested](spec, requestedEntry) {
			used = append(used, requested.Permissions...)
		}
	}
	return used, len(ours) > 0
}

// grantedPermissions returns the permissions that rbac.yaml grants to our controllers.
func grantedPermissions() []rbacaudit.Permission {
	ginkgo.GinkgoHelper()
	controllers, lease, err := rbac.Roles("kube-system", "lease")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return rbacaudit.Granted(append(controllers.Rules, lease.Rules...)...)
}
