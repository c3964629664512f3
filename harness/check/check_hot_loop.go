package check

import (
	"fmt"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// hotLoopCheck demands that a controller does not repeat the same request quickly while nothing
// changes.
//
// Two requests of a process are the same request if verb, resource, subresource, namespace, name
// and query are equal. For a create, the name is the name of the new object.
//
// These records count as a change: a commit, a watch event, the end of a watch, a fault, a workload
// step, and a phase. So do the start or end of a process and a stall, which is a time without CPU.
// Bookmarks do not count. Commits and watch events of leases and events do not count either,
// because a waiting controller writes these objects, too.
var hotLoopCheck = Check{
	ID:            "hot-loop",
	Guarantee:     "While nothing changes for more than 2 seconds, a controller sends the same request at most 50 times within 5 seconds.",
	Contract:      "Kubernetes documentation, Controllers",
	Property:      Safety,
	Scope:         general,
	ExercisedWhen: "The subject sends a get, a list or a write more than 2 seconds after the last change.",
	Ignores:       "The first 2 seconds after each change, in which exponential back-off retries often. Loops whose writes change an object each time; no-writes-when-settled reports them in the quiet phase. Creates with generateName, because many objects share such a request. Watches, and requests for leases, events and access reviews.",
	New:           newHotLoopChecker,
}

const (
	// hotLoopAfter is the time without a change after which the check begins to count requests.
	// Exponential back-off that starts at 5 ms then waits longer than a second between two
	// attempts.
	hotLoopAfter = 2 * time.Second
	// hotLoopSpan is the length of the sliding window in which the check counts equal requests.
	hotLoopSpan = 5 * time.Second
	// hotLoopMax is the maximum number of equal requests within hotLoopSpan. A controller that
	// polls each second sends 5 requests in that time. RetryOnConflict of client-go sends each
	// of them up to 5 times. The limit is twice the product.
	hotLoopMax = 50
)

// hotLoopChecker reports requests that a process repeats too often while nothing changes. An
// example is a list of pods every 10 ms.
type hotLoopChecker struct {
	findings
	changedAt time.Duration // when something last changed
	// sent contains, for each request, the times at which the process sent it since the last
	// change. It contains at most the latest hotLoopMax (50) times.
	sent map[sameRequest][]recordTime
}

// sameRequest identifies a request of a process. All repetitions of the request have equal
// values of this type.
type sameRequest struct{ process, verb, resource, subresource, namespace, name, query string }

func newHotLoopChecker(Settings) Checker {
	return &hotLoopChecker{sent: map[sameRequest][]recordTime{}}
}

func (checker *hotLoopChecker) Observe(m *Model, r *history.Record) {
	switch {
	case r.Request != nil:
		if m.now-checker.changedAt > hotLoopAfter && repeatable(r.Request) {
			checker.count(m, r.Request)
		}
	case isChange(r):
		checker.changedAt = m.now
		clear(checker.sent)
	}
}

// isChange reports whether a record counts as a change, that is, may be a reason for new requests.
// The caller must not pass a record of a request.
func isChange(r *history.Record) bool {
	switch {
	case r.Commit != nil:
		return !history.IsBookkeeping(r.Commit.Object.Resource)
	case r.Delivery != nil:
		return r.Delivery.Type != history.Bookmark && !history.IsBookkeeping(r.Delivery.Resource)
	}
	return r.Response == nil && r.List == nil
}

// repeatable reports whether hotLoopCheck counts the repetitions of a request. The check does not
// count watches, creates with generateName, and requests for leases, events or access reviews. It
// also ignores reads of paths that are no API resource, such as /healthz.
func repeatable(r *history.Request) bool {
	switch r.Verb {
	case "get", "list":
		return r.Resource != "" && !history.IsBookkeeping(r.Resource)
	case "create":
		return (r.IsWrite() || r.IsDryRun()) && r.ObjectName() != "" && (r.Object == nil || r.Object.GenerateName == "")
	}
	return r.IsWrite() || r.IsDryRun()
}

// count counts a request. It reports a violation if the process has sent this request more than
// hotLoopMax (50) times within hotLoopSpan (5 s).
func (checker *hotLoopChecker) count(m *Model, r *history.Request) {
	same := sameRequest{r.Subject, r.Verb, r.Resource, r.Subresource, r.Namespace, r.ObjectName(), r.Query}
	checker.exercised++
	sent := checker.sent[same]
	if len(sent) < hotLoopMax || m.now-sent[0].at > hotLoopSpan {
		sent = append(sent, recordTime{at: m.now, seq: m.seq})
		checker.sent[same] = sent[max(0, len(sent)-hotLoopMax):]
		return
	}
	delete(checker.sent, same) // start to count again, so that each repetition is reported once
	checker.addViolation(func() Evidence {
		object := requestRef(r)
		return Evidence{
			Summary: fmt.Sprintf("%s sent %s %s %d times in %s; nothing had changed for %s",
				r.Subject, r.Verb, object, len(sent)+1, seconds(m.now-sent[0].at), seconds(sent[0].at-checker.changedAt)),
			Expected: fmt.Sprintf("at most %d times within %s", hotLoopMax, seconds(hotLoopSpan)),
			Object:   object,
			At:       m.now,
			Records:  []int64{sent[0].seq, m.seq},
		}
	})
}
