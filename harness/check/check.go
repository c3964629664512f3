package check

import (
	"iter"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Check is one guarantee of the subject, and how a history is judged by it.
type Check struct {
	// ID names it in scenarios, reports and on the command line.
	ID string
	// Guarantee says in one sentence what is promised.
	Guarantee string
	// Contract is where the promise is written: section and number of the contract.
	Contract string
	Property Property
	// AllowedBehaviors are the numbers of the legitimate behaviours that look like a
	// breach and that the judge leaves alone.
	AllowedBehaviors []int
	// New returns a judge for one history.
	New func(Settings) Checker
}

// Property is the kind of a guarantee.
type Property string

// The kinds of guarantees.
const (
	// Safety: something never happens. It is judged throughout the run.
	Safety Property = "safety"
	// Liveness: something happens in the end. It is judged once faults are healed.
	Liveness Property = "liveness"
)

// Checker watches one history go by. Observe is called for each record in order,
// after the model has taken it in; Result once, at the end.
type Checker interface {
	Observe(m *Model, r *history.Record)
	Result() Result
}

// Settings is what judges need to know of the scenario.
type Settings struct {
	// Within bounds the time from the healing of all faults to convergence.
	Within time.Duration
	// Quiet is how long the subject must then write nothing.
	Quiet time.Duration
	// QPS is the client-side rate limit of one instance, in requests a second;
	// 0 means that there is none.
	QPS float64
	// Upstream tells that the subject is upstream's own controllers, whose known
	// weaknesses are told from failures.
	Upstream bool
	// Exercises lists the IDs of the checks that the scenario must put to the test.
	Exercises []string
}

// idleAfter is how long an instance must do nothing to count as idle: the lag, and
// what its own rate limit may hold back.
func (s Settings) idleAfter() time.Duration {
	if s.QPS <= 0 {
		return lag
	}
	return lag + time.Duration(2/s.QPS*float64(time.Second))
}

// batchTime is in what time a whole batch of calls gets past the rate limit, the lag
// included.
func (s Settings) batchTime() time.Duration {
	if s.QPS <= 0 {
		return lag
	}
	return lag + time.Duration(burstLimit/s.QPS*float64(time.Second))
}

// All is every check, in the order of reports.
var All = []Check{
	ownershipCheck,
	adoptAndReleaseCheck,
	cacheSyncedCheck,
	burstLimitCheck,
	slowStartCheck,
	expectationsCheck,
	notAboveDesiredCheck,
	notBelowDesiredCheck,
	scaleDownOrderCheck,
	statusCheck,
	matchesTemplateCheck,
	maxSurgeCheck,
	maxUnavailableCheck,
	proportionalScalingCheck,
	revisionsCheck,
	deploymentStatusCheck,
	rollbackCheck,
	revisionHistoryLimitCheck,
	recreateCheck,
	backOffCheck,
	terminatingNamespaceCheck,
	convergedCheck,
	rolloutCompleteCheck,
	addressesCheck,
	endpointsExactCheck,
	orphanEndpointsCheck,
	needlessWritesCheck,
	noWritesWhenSettledCheck,
	leaseHolderWritesCheck,
	processAliveCheck,
}

// Find returns the check with that ID.
func Find(id string) (Check, bool) {
	for _, c := range All {
		if c.ID == id {
			return c, true
		}
	}
	return Check{}, false
}

// Run judges a history by every check and returns a result for each, in the
// order of All, and what happened in the history. It reads the records once.
//
// A history that is cut short gives unknown where it would give pass. Any other
// error in reading it is returned, with no results.
func Run(setting Settings, records iter.Seq2[*history.Record, error]) ([]Result, Activity, error) {
	return run(All, setting, records)
}
