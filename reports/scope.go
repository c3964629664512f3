package reports

import (
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// The scopes of checks, as reports show them.
const (
	generalScope  = "general"  // the check applies to every controller
	contractScope = "contract" // the check is part of the contract of some controllers
)

// scopeOf returns the scope of a check. It returns "" for an unknown check, which another
// version of gauntlet had.
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

// appliesTo reports whether a check applies to one of the controllers. It returns true for
// an unknown check.
func appliesTo(id string, controllers []kube.Controller) bool {
	c, ok := check.Find(id)
	return !ok || c.Scope.AppliesTo(controllers)
}

// listedResults returns the results that a table of checks lists, worst verdict first, and
// the results that it summarizes. The latter are of checks that were not exercised because
// they are part of the contract of controllers that are not under test.
func (r *Run) listedResults() (listed, inapplicable []check.Result) {
	controllers, err := kube.ControllersNamed(r.Controllers...)
	for _, result := range r.sortedResults() {
		if err == nil && result.Verdict == check.NotExercised && !appliesTo(result.Check, controllers) {
			inapplicable = append(inapplicable, result)
		} else { // an unknown controller means that another version wrote the run
			listed = append(listed, result)
		}
	}
	return listed, inapplicable
}

// countInapplicable says how many checks a table of checks summarizes.
func countInapplicable(results []check.Result) string {
	noun := "checks are"
	if len(results) == 1 {
		noun = "check is"
	}
	return fmt.Sprintf("%d %s part of the contract of controllers that are not under test", len(results), noun)
}

// idsOf returns the IDs of the checks of results.
func idsOf(results []check.Result) []string {
	var ids []string
	for _, result := range results {
		ids = append(ids, result.Check)
	}
	return ids
}

// showsScopes reports whether the scope of at least one result is known.
func showsScopes(results []check.Result) bool {
	return slices.ContainsFunc(results, func(result check.Result) bool { return scopeOf(result.Check) != "" })
}
