package explore

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

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

// ScenarioWith returns a scenario with the faults of a place. The argument delay is how long they
// delay an event or a response.
func ScenarioWith(p Place, calm *scenario.Scenario, delay time.Duration) (*scenario.Scenario, error) {
	return trial{p}.scenario(calm, delay)
}
