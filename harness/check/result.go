package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Verdict is the conclusion of a check about a history.
type Verdict string

// The verdicts, worst first.
const (
	// Fail: the guarantee was violated; the evidence shows where.
	Fail Verdict = "fail"
	// Unknown: the history does not allow a conclusion, because records are missing or the
	// run did not exercise the guarantee.
	Unknown Verdict = "unknown"
	// KnownUpstream: upstream's controllers violated the guarantee, and a known upstream
	// issue (KnownIssues) explains every violation.
	KnownUpstream Verdict = "known-upstream"
	// Pass: the run exercised the guarantee, and it held.
	Pass Verdict = "pass"
	// NotExercised: nothing in this history could have violated the guarantee. The
	// scenario does not declare that it exercises the check. The verdict is no evidence
	// for the subject.
	NotExercised Verdict = "not-exercised"
)

// severity orders the verdicts. The verdict of a run is the worst of its checks.
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
	// Reason says in one sentence why the check has this verdict.
	Reason string `json:"reason"`
	// Exercised counts the calls or objects that could have violated the guarantee.
	Exercised int `json:"exercised"`
	// Violations counts the violations; Evidence shows the first few.
	Violations int        `json:"violations,omitempty"`
	Evidence   []Evidence `json:"evidence,omitempty"`
}

// Evidence is one violation, or one pending item of a liveness check.
type Evidence struct {
	// Summary says in one line what the check found, with names and numbers.
	Summary string `json:"summary"`
	// Expected is a noun phrase for the expected behavior.
	Expected string        `json:"expected,omitempty"`
	Object   *history.Ref  `json:"object,omitempty"`
	At       time.Duration `json:"at"` // nanoseconds since the start of the history
	// Records lists the Seq of the records that show it, oldest first.
	Records []int64 `json:"records,omitempty"`
	// KnownIssue is the slug of the known upstream issue that this violation matches;
	// empty if it matches none.
	KnownIssue string `json:"knownIssue,omitempty"`
}
