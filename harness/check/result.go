package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Verdict is what a check concludes from a history.
type Verdict string

// The verdicts, worst first.
const (
	// Fail: the history shows the guarantee broken; the evidence says where.
	Fail Verdict = "fail"
	// Unknown: the history does not allow a conclusion that the scenario demands,
	// because a witness missed something or too little happened.
	Unknown Verdict = "unknown"
	// KnownUpstream: upstream's own controllers broke the guarantee, in ways only in which
	// they are known to (Weaknesses).
	KnownUpstream Verdict = "known-upstream"
	// Pass: the guarantee was put to the test and held.
	Pass Verdict = "pass"
	// NotExercised: nothing in this history could have broken the guarantee, and the
	// scenario does not claim that something would. It says nothing for the subject.
	NotExercised Verdict = "not-exercised"
)

// severity orders verdicts: the verdict of many is their worst.
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
	// Reason is one sentence: why this verdict.
	Reason string `json:"reason"`
	// Exercised is how often the history put the guarantee to the test.
	Exercised int `json:"tested"`
	// Violations is how often it was broken; Evidence shows the first few.
	Violations int        `json:"violations,omitempty"`
	Evidence   []Evidence `json:"evidence,omitempty"`
}

// Evidence is one violation, or what is pending in a liveness check.
type Evidence struct {
	// Summary says in one line what happened, with numbers and names.
	Summary string `json:"summary"`
	// Expected says what should have happened instead.
	Expected string        `json:"expected,omitempty"`
	Object   *history.Ref  `json:"object,omitempty"`
	At       time.Duration `json:"at"` // when, since the start of the history, in nanoseconds
	// Records are the places in the history that show it, by Seq, oldest first.
	Records []int64 `json:"records,omitempty"`
	// KnownIssue is the number of the weakness of upstream that this is, or that
	// looks just like it; 0 if it is none.
	KnownIssue int `json:"weakness,omitempty"`
}
