package check

import (
	"iter"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Check is one guarantee of the subject, with the checker that decides whether a history
// violates it.
type Check struct {
	// ID identifies the check in scenarios, in reports and on the command line.
	ID string
	// Guarantee is what the subject promises, in one or two sentences.
	Guarantee string
	// Contract names the sections and statements of controllers/CONTRACT.md that contain the
	// guarantee, such as "Deployment 9". If only the documentation of Kubernetes contains the
	// guarantee, it names the page.
	Contract string
	// Property is Safety or Liveness.
	Property Property
	// Scope says to which controllers the check applies.
	Scope Scope
	// ExercisedWhen says, in one or two sentences, which event the check counts in
	// Result.Exercised.
	ExercisedWhen string
	// Ignores says which behavior the check ignores, although it concerns the guarantee. Each general check has it.
	Ignores string
	// AllowedBehaviors are the slugs of correct behaviors that look like a violation, and
	// that this check must not report. The variable AllowedBehaviors has a row for each slug.
	AllowedBehaviors []string
	// New returns a new checker. A checker reads exactly one history.
	New func(Settings) Checker
}

// Property says whether a guarantee is a safety or a liveness property.
type Property string

// The values of Property.
const (
	// Safety means that the subject never does a certain wrong thing. Checks of this property
	// look at every record of the run.
	Safety Property = "safety"
	// Liveness means that the cluster eventually reaches a certain state. Checks of this
	// property look at the time after all faults are healed.
	Liveness Property = "liveness"
)

// Checker decides whether one history violates a guarantee.
type Checker interface {
	// Observe reads the next record. The runner calls it for each record in order, after the
	// model has processed the record. Observe must not change m or r.
	Observe(m *Model, r *history.Record)
	// Result returns the verdict and its evidence. The runner calls it once, after the last
	// record.
	Result() Result
}

// Settings are the values of a scenario that checkers need.
type Settings struct {
	// Within is the time, after all faults are healed, in which the cluster must converge.
	Within time.Duration
	// Quiet is the time after convergence during which the subject must write nothing.
	Quiet time.Duration
	// QPS is the client-side rate limit of one replica of the subject, in requests per second.
	// 0 means no limit.
	QPS float64
	// Upstream is true if the subject is kube-controller-manager, or is built from its source.
	// A violation that matches a known upstream issue then has the verdict known-upstream. For
	// other subjects its verdict is fail.
	Upstream bool
	// Exercises lists the IDs of the checks that the scenario must exercise. A listed check
	// that the run does not exercise has the verdict unknown instead of not-exercised.
	Exercises []string
	// Controllers are the controllers under test. If the list is empty, these are the
	// controllers with a contract, as kube.ControllersNamed() returns them.
	Controllers []kube.Controller
	// Baseline is what runs of the scenario without faults have in common. It may be nil. The checks
	// same-end-state and no-extra-effects are then not exercised.
	Baseline *baseline.Baseline
}

// idleAfter returns how long a process must send nothing before it counts as idle. The model
// assumes that an idle process has no sync in progress.
//
// A process that works may pause between two requests for lag (1 s). The client-side rate limit
// may delay the next request further, by the time for two requests.
func (s Settings) idleAfter() time.Duration {
	if s.QPS <= 0 {
		return lag
	}
	return lag + time.Duration(2/s.QPS*float64(time.Second))
}

// batchTime returns the maximum time from the decision of a sync to its last request.
//
// One sync creates or deletes at most burstLimit (500) pods. The result is lag (1 s) plus the
// time in which the client-side rate limit admits that many requests.
func (s Settings) batchTime() time.Duration {
	if s.QPS <= 0 {
		return lag
	}
	return lag + time.Duration(burstLimit/s.QPS*float64(time.Second))
}

// All lists the checks in the order in which reports show them.
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
	noLostUpdateCheck,
	noStaleDeleteCheck,
	sameEndStateCheck,
	noExtraEffectsCheck,
	needlessWritesCheck,
	noWritesWhenSettledCheck,
	leaseHolderWritesCheck,
	deletionCompletesCheck,
	observedGenerationCheck,
	rbacDeniedCheck,
	hotLoopCheck,
	processAliveCheck,
}

// Find returns the check with the given ID. It returns false if there is no such check.
func Find(id string) (Check, bool) {
	for _, c := range All {
		if c.ID == id {
			return c, true
		}
	}
	return Check{}, false
}

// Run runs all checks on a history. It returns one result for each check, in the order of All,
// and counts of what happened in the history. It reads the records once.
//
// A check that applies to none of the controllers under test does not run. Its verdict is
// not-exercised.
//
// A history is incomplete if it is truncated, has a gap, or does not contain the beginning of
// the last phase (PhaseEnd). An impossible record, such as a response without its request,
// makes it incomplete too. Checks of an incomplete history fail if it shows a safety violation.
// Their verdict is unknown otherwise.
//
// Run returns any other read error without results.
func Run(setting Settings, records iter.Seq2[*history.Record, error]) ([]Result, Activity, error) {
	return run(All, setting, records)
}
