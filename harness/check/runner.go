package check

import (
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// run runs the given checks on a history. Run calls it with all checks, and tests call it with
// others. The results are those of Run.
func run(checks []Check, setting Settings, records iter.Seq2[*history.Record, error]) ([]Result, Activity, error) {
	model := newModel(setting)
	setting.Controllers = model.tested.rows
	entries := make([]*runnerEntry, 0, len(checks))
	for _, c := range checks {
		entries = append(entries, newRunnerEntry(c, setting))
	}
	integrity := newIntegrity()
	var end history.EarlyEnd
	activity := Activity{Incomplete: end.Reason()}
	for record, err := range records {
		if errors.Is(err, history.ErrTruncated) {
			activity.Incomplete = history.ErrTruncated.Error()
			break
		}
		if err != nil {
			return nil, activity, err
		}
		if wrong := integrity.observe(record); wrong != "" { // this record and later ones prove nothing
			activity.Incomplete = clip(wrong)
			break
		}
		aborted := record.Gap != nil && record.Gap.Source == history.SourceRun
		if model.phase == history.PhaseEnd && !aborted { // the checks do not need the records after the end of the observation
			continue
		}
		if record.Gap != nil { // records after a gap prove nothing, because some may be missing
			activity.Incomplete = clip(record.Gap.Summary())
			break
		}
		end.Observe(record)
		activity.Incomplete = end.Reason()
		activity.observe(record)
		if err := model.observe(record); err != nil {
			return nil, activity, fmt.Errorf("line %d: %w", record.Seq, err)
		}
		model.observeIssues(record)
		observeAll(entries, model, record)
		if model.phase == history.PhaseEnd {
			activity.Incomplete = ""
		}
	}
	results := make([]Result, 0, len(entries))
	for _, entry := range entries {
		results = append(results, entry.result(setting, activity.Incomplete))
	}
	excuseKnownUpstream(entries, results)
	return results, activity, nil
}

// excuseKnownUpstream changes verdicts from unknown to not-exercised if a known upstream issue kept
// the cluster from converging. It changes only verdicts of checks that need a converged cluster.
//
// If any check has the verdict known-upstream, excuseKnownUpstream assumes that this issue
// prevented convergence.
func excuseKnownUpstream(entries []*runnerEntry, results []Result) {
	known := slices.IndexFunc(results, func(r Result) bool { return r.Verdict == KnownUpstream })
	if known < 0 {
		return
	}
	for i, entry := range entries {
		waiting, ok := entry.checker.(interface{ neverConverged() bool })
		if ok && waiting.neverConverged() && results[i].Verdict == Unknown {
			results[i].Verdict = NotExercised
			results[i].Reason = fmt.Sprintf("a known upstream issue prevented convergence (see %s), so this run never exercised the guarantee", results[known].Check)
		}
	}
}

// runnerEntry runs one check on a history, and contains the checker of this check. If the checker
// panics, the runnerEntry no longer calls the checker, and the verdict is unknown.
type runnerEntry struct {
	check   Check
	checker Checker // nil if the check applies to none of the controllers under test
	// findings contains the violations of the checker. It is nil if the checker does not embed
	// findings.
	findings *findings
	panic    string // the message and stack of the checker's panic; empty if there was none
}

// newRunnerEntry returns a runnerEntry, which runs one check of a history. If the check applies to
// no controller under test, the runnerEntry has no checker.
func newRunnerEntry(c Check, setting Settings) *runnerEntry {
	if !c.Scope.AppliesTo(setting.Controllers) {
		return &runnerEntry{check: c}
	}
	entry := &runnerEntry{check: c, checker: c.New(setting)}
	if embeds, ok := entry.checker.(interface{ all() *findings }); ok {
		entry.findings = embeds.all()
	}
	return entry
}

// observeAll passes a record of the history to the checkers of all entries. If a checker panics,
// its entry stores the panic, and the other checkers still get the record.
func observeAll(entries []*runnerEntry, m *Model, r *history.Record) {
	for next := 0; next < len(entries); {
		next = observeFrom(entries, next, m, r)
	}
}

// observeFrom passes a record to the checkers of the entries from the index first on. It stops
// after a checker that panics. It returns the index of the next entry.
//
// One deferred call for all checkers is much faster than one for each checker.
func observeFrom(entries []*runnerEntry, first int, m *Model, r *history.Record) (next int) {
	defer func() {
		if p := recover(); p != nil {
			entries[next].storePanic(p, r.Seq)
			next++
		}
	}()
	for next = first; next < len(entries); next++ {
		entries[next].observe(m, r)
	}
	return next
}

// observe passes a record of the history to the checker. It does nothing after the checker has
// panicked, or if the runnerEntry has no checker.
func (entry *runnerEntry) observe(m *Model, r *history.Record) {
	if entry.panic != "" || entry.checker == nil {
		return
	}
	if entry.findings == nil {
		entry.checker.Observe(m, r)
		return
	}
	before := entry.findings.violations
	entry.checker.Observe(m, r)
	entry.findings.addContext(m, before)
}

// storePanic stores the message and the stack of a panic of the checker. The parameter seq is the
// sequence number of the record that the checker was reading. It is 0 if the checker was computing
// its result.
func (entry *runnerEntry) storePanic(p any, seq int64) {
	entry.panic = fmt.Sprintf("the checker panicked at record %d, which is a bug of gauntlet; open an issue and attach the run directory: %v\n%s", seq, p, debug.Stack())
}

// InapplicablePrefix is the beginning of the reason of each result whose check does not apply to the
// controllers under test. The name of the missing trait follows.
const InapplicablePrefix = "no controller under test has the trait "

// result returns the checker's result after the last record.
//
// The parameter incomplete says why the history is incomplete; it is "" for a complete history. On
// an incomplete history, the verdict is unknown unless the checker found a safety violation. It is
// also unknown, instead of not-exercised, if the scenario lists the check in exercises.
func (entry *runnerEntry) result(setting Settings, incomplete string) (result Result) {
	if entry.checker == nil {
		result = Result{Verdict: NotExercised, Reason: InapplicablePrefix + entry.check.Scope.traits()}
		incomplete = "" // the missing records could not change this verdict
	} else if entry.panic == "" {
		func() {
			defer func() {
				if p := recover(); p != nil {
					entry.storePanic(p, 0)
				}
			}()
			result = entry.checker.Result()
		}()
	}
	result.Check, result.Reason = entry.check.ID, clip(result.Reason)
	for i := range result.Evidence {
		result.Evidence[i].Summary = clip(result.Evidence[i].Summary)
	}
	exercised := slices.Contains(setting.Exercises, entry.check.ID)
	switch {
	case entry.panic != "":
		return Result{Check: entry.check.ID, Verdict: Unknown, Reason: entry.panic}
	case result.Verdict == Fail && entry.check.Property == Safety:
		// A violation remains a violation, even if later records are missing.
	case incomplete != "":
		result.Verdict, result.Reason = Unknown, incomplete
	case result.Verdict == NotExercised && exercised:
		result.Verdict = Unknown
		result.Reason += ", but the scenario lists this check in exercises"
	}
	return result
}
