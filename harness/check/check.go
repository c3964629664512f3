package check

import (
	"iter"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Check is one guarantee of the subject, with the checker that decides whether a history
// keeps it.
type Check struct {
	// ID identifies the check in scenarios, in reports and on the command line.
	ID string
	// Guarantee is the promise, in one or two sentences.
	Guarantee string
	// Contract is the place of the promise in controllers/CONTRACT.md: section and
	// statement.
	Contract string
	Property Property
	// AllowedBehaviors are the slugs of the allowed behaviors that this check must not
	// report; see AllowedBehaviors.
	AllowedBehaviors []string
	// New returns a checker for one history.
	New func(Settings) Checker
}

// Property is the class of a guarantee.
type Property string

// The classes of guarantees.
const (
	// Safety means that something never happens. It is checked throughout the run.
	Safety Property = "safety"
	// Liveness means that something happens eventually. It is checked after all faults are
	// healed.
	Liveness Property = "liveness"
)

// Checker decides whether one history keeps a guarantee. The runner calls Observe for
// each record in order, after the model has processed the record, and Result once at the
// end.
type Checker interface {
	Observe(m *Model, r *history.Record)
	Result() Result
}

// Settings are the values of a scenario that checkers need.
type Settings struct {
	// Within bounds the time from the healing of all faults to convergence.
	Within time.Duration
	// Quiet is how long the subject must write nothing after convergence.
	Quiet time.Duration
	// QPS is the client-side rate limit of one replica, in requests per second; 0 means
	// no limit.
	QPS float64
	// Upstream reports whether the subject is upstream's controllers. Only for them a known
	// upstream issue is not a failure.
	Upstream bool
	// Exercises lists the IDs of the checks that the scenario must exercise.
	Exercises []string
}

// idleAfter returns how long a process must send nothing to count as idle. It covers the
// lag and the delay by the client-side rate limit.
func (s Settings) idleAfter() time.Duration {
	if s.QPS <= 0 {
		return lag
	}
	return lag + time.Duration(2/s.QPS*float64(time.Second))
}

// batchTime returns the time that a full batch of requests may take, including the lag
// and the client-side rate limit.
func (s Settings) batchTime() time.Duration {
	if s.QPS <= 0 {
		return lag
	}
	return lag + time.Duration(burstLimit/s.QPS*float64(time.Second))
}

// All lists the checks in the order of reports.
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

// Find returns the check with the given ID.
func Find(id string) (Check, bool) {
	for _, c := range All {
		if c.ID == id {
			return c, true
		}
	}
	return Check{}, false
}

// Run runs all checks on a history. It returns one result for each check, in the order
// of All, and the activity in the history. It reads the records once.
//
// If the history is truncated, a result that would be pass is unknown. Run returns any
// other read error without results.
func Run(setting Settings, records iter.Seq2[*history.Record, error]) ([]Result, Activity, error) {
	return run(All, setting, records)
}
