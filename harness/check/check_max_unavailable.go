package check

import (
	"fmt"
	"math"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// maxUnavailableCheck is the row of max-unavailable in All.
var maxUnavailableCheck = Check{
	ID:               "max-unavailable",
	Guarantee:        "A rolling update scales down only what leaves replicas less maxUnavailable pods available, by what the controller knew of them.",
	Contract:         "Deployment 8, 9",
	Property:         Safety,
	AllowedBehaviors: []string{"external-disruptions", "template-and-replicas-together", "undeletable-pods", "writes-from-one-snapshot"},
	New:              newMaxUnavailableChecker,
}

// maxUnavailableChecker: each time a rolling update scales a ReplicaSet down in a
// way that takes available pods away, enough stay available by what the process
// was told, for some way in which it may have had them in mind.
//
// Scaling in proportion, when the Deployment itself is scaled, is none of this.
// A ReplicaSet counts with all that are available of it, though it asks for fewer
// by now: who goes by the status alone does not know better.
type maxUnavailableChecker struct{ findings }

func newMaxUnavailableChecker(Settings) Checker { return &maxUnavailableChecker{} }

func (checker *maxUnavailableChecker) Observe(m *Model, _ *history.Record) {
	s := checkableScaling(m)
	if s == nil || !s.isRollingUpdate() || s.creates || s.mayBePending() {
		return
	}
	most := math.MinInt
	for _, sets := range s.replicaSetStates {
		set := findByName(sets, s.name)
		if set == nil || min(availableReplicas(set), s.to) >= min(availableReplicas(set), set.replicas) {
			return // it takes nothing away that was available
		}
		most = max(most, sumOf(sets, availableReplicas)-availableReplicas(set)+min(availableReplicas(set), s.to))
	}
	checker.exercised++
	fewest := math.MaxInt
	for _, d := range s.deployments {
		fewest = min(fewest, d.minAvailable())
	}
	if most >= fewest {
		return
	}
	checker.addViolation(func() Evidence {
		return s.evidence(m, fmt.Sprintf("lowered ReplicaSet %s to %d, which leaves %d available", s.name, s.to, most),
			fmt.Sprintf("at least %d available", fewest))
	})
}
