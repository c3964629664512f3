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

var savedRuns = flag.String("runs", "", "the directory of saved runs that TestRightsInRuns looks at, from the top of the project; empty is none")

// mayGoUnused are the rights of ours that no scenario needs to make use of, and
// why they are granted all the same.
var mayGoUnused = map[rbacaudit.Permission]string{
	"update replicationcontrollers/finalizers": admission,
	"update replicasets.apps/finalizers":       admission,
	"update deployments.apps/finalizers":       admission,
	"list pods":                                listing,
	"list replicationcontrollers":              listing,
	"list replicasets.apps":                    listing,
	"list deployments.apps":                    listing,
	"list services":                            listing,
	"list endpoints":                           listing,
	"get endpoints":                            "asked for when Endpoints have neither a Service nor a place in the cache",
}

const (
	admission = "asked for by an admission plugin, where it is on, never by a request"
	listing   = "asked for where the API server does not stream lists"
)

// askedEntry is the name of the report entry that says what a run of ours asked for.
const askedEntry = "rights asked for"

// withinRights expects of a run of ours that its roles grant whatever it asked
// for, and reports what that was.
func withinRights(directory string) {
	ginkgo.GinkgoHelper()
	ginkgo.AddReportEntry(askedEntry, ginkgo.ReportEntryVisibilityNever, askedWithin(directory))
}

// askedWithin returns what a run of ours asked for, and expects that its roles
// grant it.
func askedWithin(directory string) rbacaudit.Requested {
	ginkgo.GinkgoHelper()
	asked, err := rbacaudit.RequestedIn(history.ReadFile(run.HistoryFile(directory)))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(rbacaudit.Without(asked.Permissions, granted())).To(gomega.BeEmpty(), "asked for in %s, and not granted by rbac.yaml", directory)
	gomega.Expect(asked.Refused).To(gomega.BeEmpty(), "refused by the API server in %s", directory)
	return asked
}

// Whatever rbac.yaml grants, some run made use of.
var _ = ginkgo.ReportAfterSuite("ours is granted no more than it uses", func(report ginkgo.Report) {
	used, whole := usedBy(report)
	if !whole {
		return // of some runs alone nothing follows
	}
	noneUnused(used)
})

// noneUnused expects that rbac.yaml grants nothing beyond what all runs together
// used, but for what may go unused.
func noneUnused(used []rbacaudit.Permission) {
	ginkgo.GinkgoHelper()
	gomega.Expect(rbacaudit.Without(slices.Sorted(maps.Keys(mayGoUnused)), granted())).To(gomega.BeEmpty(), "said to go unused, and not granted by rbac.yaml")
	unused := rbacaudit.Without(granted(), used)
	gomega.Expect(rbacaudit.Without(unused, slices.Collect(maps.Keys(mayGoUnused)))).To(gomega.BeEmpty(), "granted by rbac.yaml, and used in no run")
}

// TestRightsInRuns expects of saved runs of ours what is expected of the specs':
// where make chaos makes them, the specs of ours need not make them once more. It
// wants a run of every scenario, and takes the last one of each.
func TestRightsInRuns(t *testing.T) {
	if *savedRuns == "" {
		t.Skip("looks at saved runs: make rights")
	}
	gomega.RegisterTestingT(t)
	var used []rbacaudit.Permission
	for _, asked := range library.All() {
		if run.Supported(asked, faults.Simulated) == nil {
			used = append(used, askedWithin(lastRunOfOurs(asked.Name)).Permissions...)
		}
	}
	noneUnused(used)
}

// lastRunOfOurs returns the directory of the last saved run of a scenario on ours.
// Names of run directories begin with the time, in digits.
func lastRunOfOurs(name string) string {
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

// usedBy returns what the runs of ours asked for, and whether all of them ran
// and passed that could.
func usedBy(report ginkgo.Report) (used []rbacaudit.Permission, whole bool) {
	ours := report.SpecReports.WithLeafNodeType(types.NodeTypeIt)
	ours = slices.DeleteFunc(ours, func(spec types.SpecReport) bool { return !slices.Contains(spec.Labels(), subject.Ours.String()) })
	for _, spec := range ours {
		if cannotRun := len(entries[string](spec, unsupportedEntry)) > 0; !cannotRun && spec.State != types.SpecStatePassed {
			return nil, false
		}
		for _, asked := range entries[rbacaudit.Requested](spec, askedEntry) {
			used = append(used, asked.Permissions...)
		}
	}
	return used, len(ours) > 0
}

// granted returns what rbac.yaml grants.
func granted() []rbacaudit.Permission {
	ginkgo.GinkgoHelper()
	controllers, lease, err := rbac.Roles("kube-system", "lease")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return rbacaudit.Granted(append(controllers.Rules, lease.Rules...)...)
}
