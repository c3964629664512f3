package check

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
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

// rest is how long an instance must do nothing to count as idle: the lag, and
// what its own rate limit may hold back.
func (s Settings) rest() time.Duration {
	if s.QPS <= 0 {
		return lag
	}
	return lag + time.Duration(2/s.QPS*float64(time.Second))
}

// drain is in what time a whole batch of calls gets past the rate limit, the lag
// included.
func (s Settings) drain() time.Duration {
	if s.QPS <= 0 {
		return lag
	}
	return lag + time.Duration(burstLimit/s.QPS*float64(time.Second))
}

// All is every check, in the order of reports.
var All = []Check{
	{
		ID:               "ownership",
		Guarantee:        "An object has at most one controller, and a controller deletes, adopts and releases only pods that are its own or nobody's.",
		Contract:         "ReplicaSet 5",
		Property:         Safety,
		AllowedBehaviors: []int{21, 23, 25},
		New:              newOwnership,
	},
	{
		ID:               "adopt-and-release",
		Guarantee:        "Before a controller reports on an owner, it has adopted the active pods that match it and are nobody's, and released those of its own that do not match.",
		Contract:         "ReplicaSet 5, 6",
		Property:         Safety,
		AllowedBehaviors: []int{21, 25},
		New:              newClaims,
	},
	{
		ID:        "cache-synced",
		Guarantee: "Before a process has been told once of all owners, pods, ReplicaSets, Services and Endpoints that decide about an object, it writes nothing for it.",
		Contract:  "The binary",
		Property:  Safety,
		New:       newInformed,
	},
	{
		ID:               "burst-limit",
		Guarantee:        "For one owner, at most 500 creates and 500 deletes are ever outstanding: sent, and neither refused nor observed.",
		Contract:         "ReplicaSet 8, 9",
		Property:         Safety,
		AllowedBehaviors: []int{12, 13, 17},
		New:              newBurstLimit,
	},
	{
		ID:               "slow-start",
		Guarantee:        "Creates of one owner go out in batches of 1, 2, 4, and so on, each only after the one before has succeeded, and from 1 again after a failure.",
		Contract:         "ReplicaSet 8",
		Property:         Safety,
		AllowedBehaviors: []int{13, 16},
		New:              newSlowStart,
	},
	{
		ID:               "expectations",
		Guarantee:        "Until it has observed what it created and deleted for an owner, a controller creates and deletes no more for it than it had decided to before.",
		Contract:         "ReplicaSet 2",
		Property:         Safety,
		AllowedBehaviors: []int{9, 10, 12, 13, 17, 23, 24},
		New:              newExpectations,
	},
	{
		ID:               "not-above-desired",
		Guarantee:        "By the controller's own hand an owner never has more active pods than it asks for, counting those that the controller knew of.",
		Contract:         "ReplicaSet 7, 8",
		Property:         Safety,
		AllowedBehaviors: []int{9, 10, 12, 13, 17, 24},
		New:              newNotAboveDesired,
	},
	{
		ID:               "not-below-desired",
		Guarantee:        "By the controller's own hand an owner never has fewer active pods than it asks for, counting those that the controller took to be active.",
		Contract:         "ReplicaSet 7, 9",
		Property:         Safety,
		AllowedBehaviors: []int{10, 11, 17, 23, 25},
		New:              newNotBelowDesired,
	},
	{
		ID:               "scale-down-order",
		Guarantee:        "Of an owner's pods, one that it deletes is not worth more than one that it leaves: on a node, running, ready, dear to delete, old.",
		Contract:         "ReplicaSet 10",
		Property:         Safety,
		AllowedBehaviors: []int{20, 22, 39, 41},
		New:              newChoice,
	},
	{
		ID:               "status",
		Guarantee:        "What a controller writes into the status of a ReplicaSet or ReplicationController was true of it by what the controller knew of its pods and its generation.",
		Contract:         "ReplicaSet 13, 14",
		Property:         Safety,
		AllowedBehaviors: []int{22, 25, 26, 27},
		New:              newStatus,
	},
	{
		ID:               "matches-template",
		Guarantee:        "A pod, or a ReplicaSet of a Deployment, is created as the template of its owner says, the ReplicaSet with the Deployment's annotations, and controlled by that owner alone.",
		Contract:         "ReplicaSet 11, Deployment 3, 19",
		Property:         Safety,
		AllowedBehaviors: []int{37},
		New:              newContent,
	},
	{
		ID:               "max-surge",
		Guarantee:        "By the controller's own hand the ReplicaSets of a rolling Deployment ask for no more than its replicas and maxSurge together, by what it knew of them.",
		Contract:         "Deployment 8, 9, 11",
		Property:         Safety,
		AllowedBehaviors: []int{6, 10, 12, 14, 37, 39},
		New:              newMaxSurge,
	},
	{
		ID:               "max-unavailable",
		Guarantee:        "A rolling update scales down only what leaves replicas less maxUnavailable pods available, by what the controller knew of them.",
		Contract:         "Deployment 8, 9",
		Property:         Safety,
		AllowedBehaviors: []int{11, 14, 38, 39},
		New:              newMaxUnavailable,
	},
	{
		ID:               "proportional-scaling",
		Guarantee:        "While a Deployment rolls, only its new ReplicaSet is scaled up, no further than its replicas, and old ones give up available pods the oldest first; while it is scaled or paused, each ReplicaSet gets just its share.",
		Contract:         "Deployment 9, 10, 11, 12, 13",
		Property:         Safety,
		AllowedBehaviors: []int{6, 14, 22, 39},
		New:              newSizes,
	},
	{
		ID:               "revisions",
		Guarantee:        "A ReplicaSet's revision and a Deployment's collisionCount never fall, the count rises only where a name is another's, and no template gets a second ReplicaSet while the controller knows of one.",
		Contract:         "Deployment 4, 5, 14",
		Property:         Safety,
		AllowedBehaviors: []int{12, 29, 37},
		New:              newRevisions,
	},
	{
		ID:               "deployment-status",
		Guarantee:        "What a controller writes into the status of a Deployment was true of it by what the controller knew of it and its ReplicaSets, and no deadline is said to be missed before it is; that a ReplicaSet fails it says with the progress.",
		Contract:         "Deployment 13, 16, 17",
		Property:         Safety,
		AllowedBehaviors: []int{3, 16, 27, 28, 38, 41},
		New:              newDeploymentStatus,
	},
	{
		ID:               "rollback",
		Guarantee:        "A Deployment's template is changed only by a rollback that was asked for, to the revision asked for, and the wish goes with that write, or where it cannot be fulfilled.",
		Contract:         "Deployment 18",
		Property:         Safety,
		AllowedBehaviors: []int{12},
		New:              newRollback,
	},
	{
		ID:               "revision-history-limit",
		Guarantee:        "The ReplicaSets that a Deployment's controller deletes are old, empty, above the history limit and of the lowest revisions, and the rollout is paused or at its end.",
		Contract:         "Deployment 15",
		Property:         Safety,
		AllowedBehaviors: []int{29},
		New:              newHistory,
	},
	{
		ID:               "recreate",
		Guarantee:        "The new ReplicaSet of a Deployment of strategy Recreate is neither made nor scaled up while the controller knows of an old pod that has not ended.",
		Contract:         "Deployment 10",
		Property:         Safety,
		AllowedBehaviors: []int{10, 14},
		New:              newRecreate,
	},
	{
		ID:               "back-off",
		Guarantee:        "A call that keeps failing is repeated at growing intervals, unless something new calls for it.",
		Contract:         "ReplicaSet 17, Deployment 20, Endpoints 13",
		Property:         Safety,
		AllowedBehaviors: []int{4, 13, 15, 36},
		New:              newBackOff,
	},
	{
		ID:               "terminating-namespace",
		Guarantee:        "What is refused because its namespace is being deleted is not tried again, but for a ReplicaSet or Endpoints at news.",
		Contract:         "ReplicaSet 16, Deployment 6, Endpoints 12",
		Property:         Safety,
		AllowedBehaviors: []int{12, 13, 18},
		New:              newShutOut,
	},
	{
		ID:               "converged",
		Guarantee:        "Once faults are healed, every owner has exactly the active pods that it asks for, and a status that says so, within the scenario's bound.",
		Contract:         "ReplicaSet 4, 5, 14",
		Property:         Liveness,
		AllowedBehaviors: []int{10, 22, 36},
		New:              newConverged,
	},
	{
		ID:               "rollout-complete",
		Guarantee:        "Once faults are healed, every Deployment has rolled out its template, to a ReplicaSet with its annotations, with a status that says so, and within its history limit; one that is paused gets no new ReplicaSet.",
		Contract:         "Deployment 4, 12, 13, 14, 15, 16, 17, 19",
		Property:         Liveness,
		AllowedBehaviors: []int{28, 29, 30},
		New:              newRolloutComplete,
	},
	{
		ID:               "addresses",
		Guarantee:        "What a controller writes into Endpoints is what their Service asks for of its pods, each as the controller knew it.",
		Contract:         "Endpoints 3 to 10",
		Property:         Safety,
		AllowedBehaviors: []int{32, 34, 35},
		New:              newAddresses,
	},
	{
		ID:               "endpoints-exact",
		Guarantee:        "Once faults are healed, the Endpoints of every Service with a selector list exactly its pods, ready or not, at the ports that they have.",
		Contract:         "Endpoints 2 to 10",
		Property:         Liveness,
		AllowedBehaviors: []int{32, 34, 35},
		New:              newEndpointsExact,
	},
	{
		ID:               "orphan-endpoints",
		Guarantee:        "Endpoints whose Service is gone are deleted; those of leader elections and of Services that select nothing are left alone.",
		Contract:         "Endpoints 2, 14",
		Property:         Liveness,
		AllowedBehaviors: []int{8, 33},
		New:              newOrphanEndpoints,
	},
	{
		ID:               "needless-writes",
		Guarantee:        "A controller does not write an object again and again as it is already.",
		Contract:         "ReplicaSet 14, Endpoints 8",
		Property:         Safety,
		AllowedBehaviors: []int{12, 32, 35},
		New:              newNeedless,
	},
	{
		ID:               "no-writes-when-settled",
		Guarantee:        "Once converged, the subject writes nothing but leases and events.",
		Contract:         "ReplicaSet 14",
		Property:         Liveness,
		AllowedBehaviors: []int{31, 32},
		New:              newQuiet,
	},
	{
		ID:               "lease-holder-writes",
		Guarantee:        "What a process writes for its work, it writes while the lease is its own, by what it was told and by its own clock.",
		Contract:         "The binary",
		Property:         Safety,
		AllowedBehaviors: []int{36, 41},
		New:              newLeadership,
	},
	{
		ID:               "process-alive",
		Guarantee:        "No process of the subject dies of itself, unless it could not renew its lease.",
		Contract:         "The binary",
		Property:         Safety,
		AllowedBehaviors: []int{36},
		New:              newAlive,
	},
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

func run(checks []Check, setting Settings, records iter.Seq2[*history.Record, error]) ([]Result, Activity, error) {
	model := newModel(setting)
	bench := make([]*seat, 0, len(checks))
	for _, c := range checks {
		bench = append(bench, &seat{check: c, judge: c.New(setting)})
	}
	activity := Activity{Incomplete: "the history ends before the run did"}
	for record, err := range records {
		if errors.Is(err, history.ErrTruncated) {
			activity.Incomplete = "the history is cut short"
			break
		}
		if err != nil {
			return nil, activity, err
		}
		if record.Gap != nil { // from here on, what is missing is no evidence
			detail, _, _ := strings.Cut(record.Gap.Detail, "\n") // the rest is the end of a log
			activity.Incomplete = fmt.Sprintf("%s: %s", record.Gap.Source, detail)
			break
		}
		activity.observe(record)
		if err := model.observe(record); err != nil {
			return nil, activity, fmt.Errorf("record %d: %w", record.Seq, err)
		}
		for _, s := range bench {
			s.observe(model, record)
		}
		if model.phase == history.PhaseEnd {
			activity.Incomplete = ""
			break
		}
	}
	results := make([]Result, 0, len(bench))
	for _, s := range bench {
		results = append(results, s.result(setting, activity.Incomplete))
	}
	excuse(bench, results)
	return results, activity, nil
}

// excuse makes idle what could not be judged because of what upstream is known for.
func excuse(bench []*seat, results []Result) {
	if !slices.ContainsFunc(results, func(r Result) bool { return r.Verdict == KnownUpstream }) {
		return
	}
	for i, s := range bench {
		waiting, ok := s.judge.(interface{ unsettled() bool })
		if ok && waiting.unsettled() && results[i].Verdict == Unknown {
			results[i].Verdict = NotExercised
		}
	}
}

// seat is a judge at work. A judge that panics judges no more.
type seat struct {
	check Check
	judge Checker
	panic string
}

func (s *seat) observe(m *Model, r *history.Record) {
	if s.panic != "" {
		return
	}
	defer s.recover(r.Seq)
	s.judge.Observe(m, r)
}

func (s *seat) recover(seq int64) {
	if p := recover(); p != nil {
		s.panic = fmt.Sprintf("the judge failed at record %d: %v\n%s", seq, p, debug.Stack())
	}
}

// result is the judge's, with a pass taken back where there is doubt.
func (s *seat) result(setting Settings, doubt string) (result Result) {
	if s.panic == "" {
		func() {
			defer s.recover(0)
			result = s.judge.Result()
		}()
	}
	result.Check = s.check.ID
	exercised := slices.Contains(setting.Exercises, s.check.ID)
	switch {
	case s.panic != "":
		return Result{Check: s.check.ID, Verdict: Unknown, Reason: s.panic}
	case result.Verdict == Fail && s.check.Property == Safety:
		// What has happened has happened, whatever is missing after it.
	case doubt != "":
		result.Verdict, result.Reason = Unknown, doubt
	case result.Verdict == NotExercised && exercised:
		result.Verdict = Unknown
		result.Reason += ", though the scenario says that it exercises this check"
	}
	return result
}

// findings is what a judge has found so far; judges embed it.
type findings struct {
	tested     int
	violations int
	evidence   []Evidence
	// known is how many of the violations look just like what upstream is known for,
	// weakness what the first of them looks like, and upstream, that it is.
	known    int
	weakness *KnownIssue
	upstream bool
}

// evidenceMax is how many violations are shown; all are counted.
const evidenceMax = 5

// violate notes a violation. To say what happened is costly, so it is said only
// of those that are shown.
func (f *findings) violate(say func() Evidence) {
	f.violations++
	if len(f.evidence) < evidenceMax {
		e := say()
		slices.Sort(e.Records)
		e.Records = slices.Compact(e.Records)
		f.evidence = append(f.evidence, e)
	}
}

// violateKnown notes a violation that is a weakness of upstream's, or looks like it.
func (f *findings) violateKnown(why *KnownIssue, say func() Evidence) {
	f.known++
	f.weakness = cmp.Or(f.weakness, why)
	f.violate(func() Evidence {
		e := say()
		e.KnownIssue = why.Trap
		return e
	})
}

// Result is the verdict that the findings amount to.
func (f *findings) Result() Result {
	result := Result{Exercised: f.tested, Violations: f.violations, Evidence: f.evidence}
	switch {
	case f.violations > 0:
		result.Verdict = Fail
		result.Reason = fmt.Sprintf("broken %s; first: %s", times(f.violations), f.evidence[0].Summary)
		if f.known == f.violations {
			result.Reason += "; " + f.weakness.String()
		}
		if f.known == f.violations && f.upstream {
			result.Verdict = KnownUpstream
		}
	case f.tested == 0:
		result.Verdict, result.Reason = NotExercised, "nothing put it to the test"
	default:
		result.Verdict, result.Reason = Pass, "held, tested "+times(f.tested)
	}
	return result
}

// times says how often, in words.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
