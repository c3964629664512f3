package reports

import (
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
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

// appliesTo reports whether a check applies to at least one of the controllers. It also returns
// true if this version of gauntlet does not know the check.
func appliesTo(id string, controllers []kube.Controller) bool {
	c, ok := check.Find(id)
	return !ok || c.Scope.AppliesTo(controllers)
}

// listedResults returns the run's results in two lists, each with the worst verdict first. The
// results in the first list have a row in the table of checks.
//
// The list inapplicable has unexercised checks that apply only to controllers that are not under
// test. Reports show these checks apart from the table.
func (r *Run) listedResults() (listed, inapplicable []check.Result) {
	controllers := r.controllersWithContract()
	for _, result := range r.sortedResults() {
		if result.Verdict == check.NotExercised && !appliesTo(result.Check, controllers) {
			inapplicable = append(inapplicable, result)
		} else {
			listed = append(listed, result)
		}
	}
	return listed, inapplicable
}

// controllersWithContract returns the controllers under test that package kube knows. It leaves out
// the controllers of an operator, which have no contract.
func (r *Run) controllersWithContract() []kube.Controller {
	if len(r.Controllers) == 0 {
		return kube.OrDefault(nil)
	}
	return slices.DeleteFunc(slices.Clone(kube.Controllers), func(c kube.Controller) bool { return !slices.Contains(r.Controllers, c.Name) })
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
