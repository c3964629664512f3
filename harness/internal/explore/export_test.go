package explore

import "github.com/kube-gauntlet/gauntlet/harness/check"

// PruneReason returns the reason why a search does not try two places together. Both faults fired
// when the search tried the places alone. The argument failed says whether the second one failed.
func PruneReason(first, second Place, failed bool) string {
	results := map[string]result{}
	for _, p := range []Place{first, second} {
		results[trial{p}.id()] = result{Trial: trial{p}.id(), Fired: true, Verdict: check.Pass}
	}
	if failed {
		results[trial{second}.id()] = result{Fired: true, Verdict: check.Fail}
	}
	return pruneReason(first, second, results)
}
