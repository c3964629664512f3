package check

import (
	"iter"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Check describes one check: a guarantee of the controllers under test, and the checker that finds
// violations of it.
type Check struct {
	// ID is the name of the check in scenarios, in reports and on the command line, such as
	// max-surge.
	ID string
	// Guarantee is what the subject must do or must never do, in one or two sentences.
	Guarantee string
	// Contract says where the guarantee is documented. It names sections and statements of
	// controllers/CONTRACT.md, such as "Deployment 9", or a page of the Kubernetes documentation.
	Contract string
	// Property says whether the guarantee is a safety property or a liveness property.
	Property Property
	// Scope says to which controllers the check applies, such as those that own pods.
	Scope Scope
	// ExercisedWhen says, in one or two sentences, which events exercise the check. Such an event
	// could have violated the guarantee. Result.Exercised counts these events.
	ExercisedWhen string
	// Ignores says which behavior the check does not report, although the behavior concerns the
	// guarantee. Every general check has this text; for other checks it may be empty.
	Ignores string
	// NeedsBaseline is true if the check compares a run with runs without faults. It is then not
	// exercised in a run for which [Settings] has no Baseline.
	NeedsBaseline bool
	// AllowedBehaviors lists the slugs of correct behaviors that look like a violation of this
	// guarantee. The check must not report them. The variable AllowedBehaviors describes each slug.
	AllowedBehaviors []string
	// New returns a new checker for one history. Settings come from the scenario of the run.
	New func(Settings) Checker
}

// Property is the type of a guarantee: safety or liveness.
type Property string

// Safety says what a controller must never do. Liveness says what it must do in time.
const (
	// Safety means that the subject never does a certain wrong thing. A check of a safety property
	// looks at every record of the run.
	Safety Property = "safety"
	// Liveness means that the cluster eventually reaches a certain state. A check of a liveness
	// property looks at the time after all faults are healed.
	Liveness Property = "liveness"
)

// Checker reads the records of one history and decides whether the history violates one
// guarantee.
type Checker interface {
	// Observe reads the next record. The runner calls Observe for each record in order. Before each
	// call, it updates the model m, which contains the committed objects and the caches of the
	// processes. Observe must not change m or r.
	Observe(m *Model, r *history.Record)
	// Result returns the verdict and the evidence for it. The runner calls Result once, after the
	// last record.
	Result() Result
}

// Settings contains the values that checkers need from the scenario and about the subject (the
// controllers under test).
type Settings struct {
	// Within is how long after the healing of all faults the objects may take to converge. An
	// object has converged when the controllers have nothing left to do for it.
	Within time.Duration
	// Quiet is how long the subject must write nothing after convergence, that is, when it has
	// nothing left to do.
	Quiet time.Duration
	// QPS is the client-side rate limit of one replica of the subject, in requests per second.
	// 0 means no limit.
	QPS float64
	// Upstream is true if the subject is kube-controller-manager, or is built from its source. A
	// check whose violations all match known upstream issues then has the verdict known-upstream.
	// For other subjects, the verdict is fail.
	Upstream bool
	// Exercises lists the IDs of the checks that the scenario must exercise. A listed check
	// that the run does not exercise has the verdict unknown instead of not-exercised.
	Exercises []string
	// Controllers lists the controllers under test. An empty list means the controllers that
	// controllers/CONTRACT.md describes.
	Controllers []kube.Controller
	// Baseline is what runs of the scenario without faults have in common, such as the objects at
	// the end. If it is nil, the checks same-end-state and no-extra-effects are not exercised.
	Baseline *baseline.Baseline
	// LastOperation is the index of the last step of the workload that has an operation, such as
	// create. Later steps only await a condition, such as that all pods are ready. If a later step
	// fails, the run can still be compared with the Baseline.
	LastOperation int
}

// idleAfter returns the time without a request after which a process counts as idle. The checks
// assume that an idle process has no sync in progress.
//
// The result is the longest pause between two requests of a busy process. It is lag (1 s) plus the
// time for which the client-side rate limit may delay two requests.
func (s Settings) idleAfter() time.Duration {
	if s.QPS <= 0 {
		return lag
	}
	return lag + time.Duration(2/s.QPS*float64(time.Second))
}

// hasContract reports whether a controller under test has a contract.
func (s Settings) hasContract() bool {
	return slices.ContainsFunc(s.Controllers, func(c kube.Controller) bool { return c.Contract })
}

// batchTime returns the maximum time from a controller's decision in a sync to the sync's last
// request.
//
// One sync creates or deletes at most burstLimit (500) pods. The result is lag (1 s) plus the
// time that the client-side rate limit needs to admit 500 requests.
func (s Settings) batchTime() time.Duration {
	if s.QPS <= 0 {
		return lag
	}
	return lag + time.Duration(burstLimit/s.QPS*float64(time.Second))
}

// All lists all checks, in the order in which reports show them.
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
	eventsCheck,
	backOffCheck,
	terminatingNamespaceCheck,
	convergedCheck,
	rolloutCompleteCheck,
	addressesCheck,
	endpointsExactCheck,
	orphanEndpointsCheck,
	lateSyncCheck,
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

// Find returns the check with the given ID, and true. If there is no such check, it returns
// false.
func Find(id string) (Check, bool) {
	for _, c := range All {
		if c.ID == id {
			return c, true
		}
	}
	return Check{}, false
}

// Run runs all checks on a history. It returns one result for each check, in the order of All.
// It also returns counts of what happened in the run, such as fired faults.
//
// A check that applies to none of the controllers under test does not run. Its verdict is
// not-exercised.
//
// A history is incomplete if it is truncated or ends before the last phase (PhaseEnd). A gap
// record, which says that events are missing, makes it incomplete too. So does an impossible
// record, such as a response without its request. On an incomplete history, a check fails only
// if it found a safety violation. Otherwise its verdict is unknown.
//
// Run returns an error and no results if reading or decoding a record fails. A truncated history is
// no error.
func Run(setting Settings, records iter.Seq2[*history.Record, error]) ([]Result, Activity, error) {
	return run(All, setting, records)
}
