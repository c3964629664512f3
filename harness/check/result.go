package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Verdict is the conclusion that a check draws from a history.
type Verdict string

// The verdicts, worst first.
const (
	// Fail means that the subject violated the guarantee. The evidence shows where.
	Fail Verdict = "fail"
	// Unknown means that the history does not allow a conclusion. Either records are missing,
	// or the run did not exercise a check that its scenario must exercise.
	Unknown Verdict = "unknown"
	// KnownUpstream means that the controllers of Kubernetes itself violated the guarantee,
	// and a known upstream issue (KnownIssues) explains every violation.
	KnownUpstream Verdict = "known-upstream"
	// Pass means that the run exercised the guarantee, and the subject did not violate it.
	Pass Verdict = "pass"
	// NotExercised means that nothing in this history could have violated the guarantee, and
	// the scenario need not exercise the check. The verdict is no evidence for or against the
	// subject.
	NotExercised Verdict = "not-exercised"
)

// severity orders the verdicts, because the verdict of a run is the worst verdict of its
// checks.
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
	Check   string  `json:"check"` // the check's ID
	Verdict Verdict `json:"verdict"`
	// Reason is one sentence that explains the verdict.
	Reason string `json:"reason"`
	// Exercised is the number of calls or objects that could have violated the guarantee.
	Exercised int `json:"exercised"`
	// Violations is the number of violations. Evidence shows the first few of them.
	Violations int        `json:"violations,omitempty"`
	Evidence   []Evidence `json:"evidence,omitempty"`
}

// Evidence is one violation, or one pending item of a liveness check.
type Evidence struct {
	// Summary describes in one line the behavior that the check found, with names and numbers.
	Summary string `json:"summary"`
	// Expected is a noun phrase for the expected behavior.
	Expected string        `json:"expected,omitempty"`
	Object   *history.Ref  `json:"object,omitempty"`
	At       time.Duration `json:"at"` // nanoseconds since the start of the history
	// Records lists the Seq of the records that show the violation, oldest first.
	Records []int64 `json:"records,omitempty"`
	// KnownIssue is the slug of the known upstream issue that this violation matches;
	// empty if it matches none.
	KnownIssue string `json:"knownIssue,omitempty"`
}
