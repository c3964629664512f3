package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Verdict is the conclusion of a check, or of all checks of a run: fail, unknown,
// known-upstream, pass or not-exercised.
type Verdict string

// These are the verdicts of a check or of all checks of a run, worst first.
const (
	// Fail means that the subject violated the guarantee. Result.Evidence describes the violations.
	Fail Verdict = "fail"
	// Unknown means that the history does not allow a conclusion. Records may be missing, or the
	// run did not exercise a check that its scenario lists in exercises.
	Unknown Verdict = "unknown"
	// KnownUpstream means that the subject violated the guarantee, and that known upstream issues
	// (KnownIssues) explain every violation. Only kube-controller-manager, and subjects that are
	// built from its source, get this verdict.
	KnownUpstream Verdict = "known-upstream"
	// Pass means that the run exercised the guarantee, and that the subject kept the guarantee. A
	// run exercises a guarantee if something happens that could violate it.
	Pass Verdict = "pass"
	// NotExercised means that nothing in this history could have violated the guarantee. The
	// verdict says nothing about the subject. If the scenario lists the check in exercises, the
	// verdict is unknown instead.
	NotExercised Verdict = "not-exercised"
)

// severity ranks the verdicts from NotExercised (0) to Fail (4). The verdict with the highest
// rank among the checks is the verdict on all checks together.
var severity = map[Verdict]int{NotExercised: 0, Pass: 1, KnownUpstream: 2, Unknown: 3, Fail: 4}

// Worst returns the worse of two verdicts. From best to worst, the order is NotExercised, Pass,
// KnownUpstream, Unknown, Fail.
func Worst(a, b Verdict) Verdict {
	if severity[b] > severity[a] {
		return b
	}
	return a
}

// Result is what one check concluded from one history: the verdict, the reason and the evidence.
type Result struct {
	// Check is the ID of the check, such as max-surge.
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	// Reason is one sentence that explains the verdict. For a failed check, it describes the
	// first violation.
	Reason string `json:"reason"`
	// Exercised is how many events of the run could have violated the guarantee, such as requests
	// or objects. If it is 0, the verdict is not pass.
	Exercised int `json:"exercised"`
	// Violations is the number of violations that the check found, including those without
	// evidence.
	Violations int `json:"violations,omitempty"`
	// Evidence describes the first violations, at most evidenceMax (5).
	Evidence []Evidence `json:"evidence,omitempty"`
}

// Evidence describes one violation of a guarantee: what the check found, what it expected, and
// where.
type Evidence struct {
	// Summary says in one line, with names and numbers, what the check found. An example is
	// "ReplicaSet default/web: subject-0 has 3 creates in flight after 1 successful creates of
	// pods".
	Summary string `json:"summary"`
	// Expected is a noun phrase that says what the check expected instead, such as "at most 3
	// pods". It may be empty.
	Expected string `json:"expected,omitempty"`
	// Object is the object that violates the guarantee, or nil if the violation is about no single
	// object.
	Object *history.Ref `json:"object,omitempty"`
	// At is the time of the violation, in nanoseconds since the start of the history.
	At time.Duration `json:"at"`
	// Records lists the sequence numbers (Seq) of the records that show the violation, oldest
	// first.
	Records []int64 `json:"records,omitempty"`
	// Cached lists the pods of the ReplicaSet or ReplicationController that were in the cache of
	// the process, by state. An example is "2 Running and ready (web-a, web-b)". It is empty if the
	// violation is not about such pods.
	Cached string `json:"cached,omitempty"`
	// Stalled is how long gauntlet or the process got no CPU time shortly before the violation, in
	// nanoseconds. It counts the 2 seconds before the violation. The check has already extended its
	// time limits by Stalled.
	Stalled time.Duration `json:"stalled,omitempty"`
	// KnownIssue is the slug of the known upstream issue that explains this violation. It is empty
	// if no known upstream issue explains the violation.
	KnownIssue string `json:"knownIssue,omitempty"`
}
