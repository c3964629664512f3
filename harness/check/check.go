package check

import (
	"iter"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Check is one guarantee of the subject, with the checker that decides whether a history
// violates it.
type Check struct {
	// ID identifies the check in scenarios, in reports and on the command line.
	ID string
	// Guarantee is the promise, in one or two sentences.
	Guarantee string
	// Contract names the sections and statements of controllers/CONTRACT.md that contain the
	// promise.
	Contract string
	Property Property
	// Scope says to which controllers the check applies.
	Scope Scope
	// AllowedBehaviors are the slugs of the allowed behaviors that this check must not report.
	// The variable AllowedBehaviors lists all of them.
	AllowedBehaviors []string
	// New returns a checker for one history.
	New func(Settings) Checker
}

// Property is the class of a guarantee.
type Property string

// The classes of guarantees.
const (
	// Safety means that a certain error never happens. Checks of this class apply throughout
	// the run.
	Safety Property = "safety"
	// Liveness means that a certain state is reached eventually. Checks of this class apply
	// after all faults are healed.
	Liveness Property = "liveness"
)

// Checker decides whether one history violates a guarantee. The runner calls Observe for
// each record in order, after the model has processed the record, and Result once at the
// end.
type Checker interface {
	Observe(m *Model, r *history.Record)
	Result() Result
}

// Settings are the values of a scenario that checkers need.
type Settings struct {
	// Within is the time in which the cluster must converge after all faults are healed.
	Within time.Duration
	// Quiet is the time after convergence during which the subject must write nothing.
	Quiet time.Duration
	// QPS is the client-side rate limit of one replica of the subject, in requests per second.
	// 0 means no limit.
	QPS float64
	// Upstream is true if the subject is the set of controllers of Kubernetes itself. The
	// verdict on a known upstream issue is then known-upstream; for other subjects it is fail.
	Upstream bool
	// Exercises lists the IDs of the checks that the scenario must exercise.
	Exercises []string
	// Controllers are the controllers under test. The default is kube.ControllersNamed().
	Controllers []kube.Controller
}

// idleAfter returns the time after which a process that sends nothing counts as idle. This
// time covers the lag and the delay by the client-side rate limit.
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

// Run runs all checks on a history. It returns one result for each check, in the order of
// All, and the activity in the history. It iterates over the records only once.
//
// A check that applies to none of the controllers under test does not run. Its verdict is
// not-exercised.
//
// If the history is truncated, a result that would be pass is unknown. Run returns any
// other read error without results.
func Run(setting Settings, records iter.Seq2[*history.Record, error]) ([]Result, Activity, error) {
	return run(All, setting, records)
}
