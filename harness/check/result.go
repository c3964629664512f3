package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Verdict says whether a history shows that the subject kept a guarantee.
type Verdict string

// The verdicts, worst first.
const (
	// Fail means that the subject violated the guarantee. The evidence shows where.
	Fail Verdict = "fail"
	// Unknown means that the history does not allow a conclusion. This happens if records are
	// missing, or if the run did not exercise a check that its scenario must exercise.
	Unknown Verdict = "unknown"
	// KnownUpstream means that the subject violated the guarantee, and that a known upstream issue
	// (KnownIssues) explains every violation. Only kube-controller-manager, and subjects that are
	// built from its source, get this verdict.
	KnownUpstream Verdict = "known-upstream"
	// Pass means that the run exercised the guarantee, and that the subject kept it. A run
	// exercises a guarantee if something happens that could violate it.
	Pass Verdict = "pass"
	// NotExercised means that nothing in this history could have violated the guarantee. The
	// scenario does not list the check in exercises; otherwise the verdict would be unknown.
	// The verdict says nothing about the subject.
	NotExercised Verdict = "not-exercised"
)

// severity gives each verdict a rank; the verdict with the highest rank is the worst. The
// verdict of a run is the worst verdict of its checks.
var severity = map[Verdict]int{NotExercised: 0, Pass: 1, KnownUpstream: 2, Unknown: 3, Fail: 4}

// Worst returns the worse of two verdicts.
func Worst(a, b Verdict) Verdict {
	if severity[b] > severity[a] {
		return b
	}
	return a
}

// Result is the verdict of one check on one history.
type Result struct {
	// Check is the ID of the check.
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	// Reason is one sentence that explains the verdict.
	Reason string `json:"reason"`
	// Exercised is how often the run exercised the guarantee: the number of calls or objects
	// that could have violated it.
	Exercised int `json:"exercised"`
	// Violations is the number of violations that the check found.
	Violations int `json:"violations,omitempty"`
	// Evidence describes the first few violations.
	Evidence []Evidence `json:"evidence,omitempty"`
}

// Evidence describes one violation of a safety guarantee, or one difference of an object from
// its converged state.
type Evidence struct {
	// Summary says in one line, with names and numbers, what the check found.
	Summary string `json:"summary"`
	// Expected is a noun phrase that says what the check expected instead.
	Expected string `json:"expected,omitempty"`
	// Object is the object that the violation is about, or nil if it is about no single
	// object.
	Object *history.Ref `json:"object,omitempty"`
	// At is the time of the violation, in nanoseconds since the start of the history.
	At time.Duration `json:"at"`
	// Records lists the Seq of the records that show the violation, oldest first.
	Records []int64 `json:"records,omitempty"`
	// Cached says which pods of the owner were in the cache of the process, with their phases. It
	// is empty if the violation is not about the pods of an owner.
	Cached string `json:"cached,omitempty"`
	// Stalled is for how long gauntlet or the process got no CPU time in the 2 seconds before the
	// violation, in nanoseconds. The check has extended its windows by this time.
	Stalled time.Duration `json:"stalled,omitempty"`
	// KnownIssue is the slug of the known upstream issue that explains this violation. It is
	// empty if no known issue explains it.
	KnownIssue string `json:"knownIssue,omitempty"`
}
