package check

import (
	"fmt"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Activity counts what happened in a run: writes of the controllers under test (the subject),
// faults and failed workload steps. It does not depend on the verdicts.
type Activity struct {
	// Incomplete says why the history does not show the whole run, such as "the end of the history
	// is missing". It is empty if the history is complete.
	Incomplete string
	// Writes is the number of write requests that the subject sent, without writes of leases,
	// events and access reviews.
	Writes int
	// Injected is the number of faults that were injected. Fired is how often a fault changed
	// something, such as refusing a request or killing a process. One fault may fire many times or
	// never.
	Injected, Fired int
	// Faults contains the counts of each fault, by the fault's position in the scenario.
	Faults map[int]FaultCount
	// Failures has one line for each fault that could not do what the scenario specifies. It also
	// has one line for each workload step that failed.
	Failures []string
}

// FaultCount says how often one fault of the scenario was injected, and how often it fired, that
// is, changed something.
type FaultCount struct {
	Name            string // the type of the fault, such as api-error
	Injected, Fired int
	// Summary says what the fault did, such as "refused 2 of 11 matching requests". It is empty
	// until the fault is healed.
	Summary string
	// MustFire is true if the scenario says that the run tests nothing unless this fault fires.
	MustFire bool
}

// Missed reports whether the fault never fired although the scenario says that it must
// (MustFire). The run then tested nothing.
func (c FaultCount) Missed() bool { return c.MustFire && c.Fired == 0 }

// observe reads the next record of the history. It counts write requests and fault events. It
// adds the error message of each failed fault or workload step to Failures.
func (a *Activity) observe(r *history.Record) {
	switch {
	case r.Request != nil && r.Request.IsWrite():
		a.Writes++
	case r.Fault != nil && r.Fault.Event == history.FaultInjected:
		a.Injected++
		a.count(r.Fault, func(c *FaultCount) { c.Injected++ })
	case r.Fault != nil && r.Fault.Event == history.FaultFired:
		a.Fired++
		a.count(r.Fault, func(c *FaultCount) { c.Fired++ })
	case r.Fault != nil && r.Fault.Event == history.FaultHealed:
		a.count(r.Fault, func(c *FaultCount) { c.Summary = clip(r.Fault.Detail) })
	case r.Fault != nil && r.Fault.Event == history.FaultFailed:
		a.Failures = append(a.Failures, clip(fmt.Sprintf("fault %d (%s) failed: %s", r.Fault.Index, r.Fault.Name, r.Fault.Detail)))
	case r.Step != nil && r.Step.Event == history.StepFailed:
		a.Failures = append(a.Failures, clip(fmt.Sprintf("step %d (%s) failed: %s", r.Step.Index, r.Step.Detail, r.Step.Error)))
	}
}

// textMax is the length of the longest text in results and activities, in bytes. A report repeats such a
// text for each check.
const textMax = 8 << 10

// clip cuts the middle out of a text that is longer than textMax. Such a text is, for example, the end of
// a log in a damaged history.
func clip(text string) string {
	if len(text) <= textMax {
		return text
	}
	start, end := text[:textMax/2], text[len(text)-textMax/2:]
	return fmt.Sprintf("%s…(%d bytes)…%s", strings.ToValidUTF8(start, ""), len(text)-textMax, strings.ToValidUTF8(end, ""))
}

// count changes the counts of one fault. The parameter change is a function that makes the change,
// such as adding 1 to Fired.
func (a *Activity) count(f *history.Fault, change func(*FaultCount)) {
	if a.Faults == nil {
		a.Faults = map[int]FaultCount{}
	}
	c := a.Faults[f.Index]
	c.Name = f.Name
	change(&c)
	a.Faults[f.Index] = c
}

// Overall derives the verdict on a run from the results of its checks. It also returns the
// reason.
//
//   - fail: at least one check failed.
//   - known-upstream: at least one check is known-upstream, no check is fail or unknown, and the
//     history is complete.
//   - pass: at least one check passed, and no check is fail, known-upstream or unknown. The
//     history is complete, a fault fired, the controllers under test wrote, and no fault or step
//     failed.
//   - unknown: all other cases.
func Overall(results []Result, activity Activity) (Verdict, string) {
	worst, of := NotExercised, map[Verdict][]Result{}
	for _, r := range results {
		worst = Worst(worst, r.Verdict)
		of[r.Verdict] = append(of[r.Verdict], r)
	}
	switch {
	case worst == Fail:
		return Fail, fmt.Sprintf("%d of %d checks failed; %s: %s", len(of[Fail]), len(results), of[Fail][0].Check, of[Fail][0].Reason)
	case worst == KnownUpstream && activity.Incomplete == "": // Failures do not matter: the known upstream issue may have made a workload step fail
		return KnownUpstream, fmt.Sprintf("%s: %s", of[KnownUpstream][0].Check, of[KnownUpstream][0].Reason)
	case len(activity.Failures) > 0:
		return Unknown, activity.Failures[0]
	case activity.Incomplete != "":
		return Unknown, activity.Incomplete
	case activity.Fired == 0 && activity.Injected == 0:
		return Unknown, "no fault was injected"
	case activity.Fired == 0:
		return Unknown, fmt.Sprintf("no fault fired (%d injected); an injected fault fires when it changes something", activity.Injected)
	case activity.Writes == 0:
		return Unknown, "the subject sent no write request"
	case worst == Unknown:
		return Unknown, fmt.Sprintf("%s: %s", of[Unknown][0].Check, of[Unknown][0].Reason)
	case worst == NotExercised:
		return Unknown, "this run exercised no check"
	}
	return Pass, fmt.Sprintf("%d checks passed, %d not exercised", len(of[Pass]), len(of[NotExercised]))
}
