package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// generalScope and contractScope are the texts that reports show for the scope of a check. The
// scope says to which controllers the check applies.
const (
	generalScope  = "general"  // the scope of a check that applies to any controller
	contractScope = "contract" // the scope of a check in the contract of certain controllers, such as deployment-controller
)

// scopeOf returns "general" if the check with the given ID applies to any controller. It returns
// "contract" if the check applies only to certain controllers, such as deployment-controller. It
// returns "" if this version of gauntlet does not know the check.
func scopeOf(id string) string {
	c, ok := check.Find(id)
	switch {
	case !ok:
		return ""
	case c.Scope.General():
		return generalScope
	}
	return contractScope
}

// listedResults returns the run's results in two lists, each with the worst verdict first. The
// results in the first list have a row in the table of checks.
//
// The list inapplicable has unexercised checks that apply only to controllers that are not under
// test. Reports show these checks apart from the table.
func (r *Run) listedResults() (listed, inapplicable []check.Result) {
	for _, result := range r.sortedResults() {
		if result.Verdict == check.NotExercised && strings.HasPrefix(result.Reason, check.InapplicablePrefix) {
			inapplicable = append(inapplicable, result)
		} else {
			listed = append(listed, result)
		}
	}
	return listed, inapplicable
}

// countInapplicable returns a text that says how many checks are for controllers that are not
// under test. Reports show it with the table of checks.
func countInapplicable(results []check.Result) string {
	noun := "checks are"
	if len(results) == 1 {
		noun = "check is"
	}
	return fmt.Sprintf("%d %s part of the contract of controllers that are not under test", len(results), noun)
}

// idsOf returns the check ID of each result, such as "max-surge", in the same order.
func idsOf(results []check.Result) []string {
	var ids []string
	for _, result := range results {
		ids = append(ids, result.Check)
	}
	return ids
}

// showsScopes reports whether a table of checks needs the column scope. It returns true if this
// version of gauntlet knows at least one of the checks.
func showsScopes(results []check.Result) bool {
	return slices.ContainsFunc(results, func(result check.Result) bool { return scopeOf(result.Check) != "" })
}
