package chaos

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"github.com/kube-gauntlet/gauntlet/controllers/rbac"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/rights"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// mayGoUnused are the rights of ours that no scenario needs to make use of, and
// why they are granted all the same.
var mayGoUnused = map[rights.Right]string{
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
	run, err := rights.AskedIn(history.ReadFile(filepath.Join(directory, "history.jsonl")))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.AddReportEntry(askedEntry, ginkgo.ReportEntryVisibilityNever, run)
	gomega.Expect(rights.Without(run.Rights, granted())).To(gomega.BeEmpty(), "asked for, and not granted by rbac.yaml")
	gomega.Expect(run.Refused).To(gomega.BeEmpty(), "refused by the API server")
}

// Whatever rbac.yaml grants, some run made use of.
var _ = ginkgo.ReportAfterSuite("ours is granted no more than it uses", func(report ginkgo.Report) {
	used, whole := usedBy(report)
	if !whole {
		return // of some runs alone nothing follows
	}
	gomega.Expect(rights.Without(slices.Sorted(maps.Keys(mayGoUnused)), granted())).To(gomega.BeEmpty(), "said to go unused, and not granted by rbac.yaml")
	unused := rights.Without(granted(), used)
	gomega.Expect(rights.Without(unused, slices.Collect(maps.Keys(mayGoUnused)))).To(gomega.BeEmpty(), "granted by rbac.yaml, and used in no run")
})

// usedBy returns what the runs of ours asked for, and whether all of them ran
// and passed that could.
func usedBy(report ginkgo.Report) (used []rights.Right, whole bool) {
	ours := report.SpecReports.WithLeafNodeType(types.NodeTypeIt)
	ours = slices.DeleteFunc(ours, func(spec types.SpecReport) bool { return !slices.Contains(spec.Labels(), subject.Ours.String()) })
	for _, spec := range ours {
		if cannotRun := len(entries[string](spec, unsupportedEntry)) > 0; !cannotRun && spec.State != types.SpecStatePassed {
			return nil, false
		}
		for _, run := range entries[rights.Asked](spec, askedEntry) {
			used = append(used, run.Rights...)
		}
	}
	return used, len(ours) > 0
}

// granted returns what rbac.yaml grants.
func granted() []rights.Right {
	ginkgo.GinkgoHelper()
	controllers, lease, err := rbac.Roles("kube-system", "lease")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return rights.Granted(append(controllers.Rules, lease.Rules...)...)
}
