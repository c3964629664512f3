package check

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// terminatingNamespaceCheck is the row of terminating-namespace in All.
var terminatingNamespaceCheck = Check{
	ID:               "terminating-namespace",
	Guarantee:        "What is refused because its namespace is being deleted is not tried again, but for a ReplicaSet or Endpoints at news.",
	Contract:         "ReplicaSet 16, Deployment 6, Endpoints 12",
	Property:         Safety,
	AllowedBehaviors: []string{"lost-response", "client-retries", "terminating-namespace-creates"},
	New:              newTerminatingNamespaceChecker,
}

// lateTriesMax is how many more tries without news are let pass of what is no pod: a
// controller that comes back to look at a deadline, or at what it read too early,
// cannot know.
const lateTriesMax = 3

// terminatingNamespaceChecker: a creation that is refused because the namespace is being deleted is
// not tried again. Of an owner's pods, a process is refused no more than the owner
// asked for: it waits for them, as if they had been made (contract ReplicaSet 16). A
// ReplicaSet or Endpoints may be tried once more at each news.
type terminatingNamespaceChecker struct {
	findings
	byKey map[workQueueKey]*refusals
}

// refusals are those of creations for one object, for that reason.
type refusals struct {
	since   time.Duration // of the first
	count   int
	allowed int
	pods    bool
	records []int64 // the latest few
}

func newTerminatingNamespaceChecker(Settings) Checker {
	return &terminatingNamespaceChecker{byKey: map[workQueueKey]*refusals{}}
}

func (checker *terminatingNamespaceChecker) Observe(m *Model, r *history.Record) {
	if r.Process != nil {
		maps.DeleteFunc(checker.byKey, func(key workQueueKey, _ *refusals) bool { return key.process.ended })
	}
	for _, event := range m.events {
		if s := checker.byKey[event.workQueueKey]; s != nil && !s.pods {
			s.allowed++
		}
	}
	answered := m.answered
	if answered == nil || answered.queueKey.process == nil || answered.response.Cause != string(corev1.NamespaceTerminatingCause) {
		return
	}
	checker.exercised++
	s := checker.of(answered.queueKey, m.processTime)
	s.count++
	s.records = append(s.records[max(0, len(s.records)-4):], answered.seq)
	if answered.verb == callCreatePod {
		s.pods = true
		s.allowed = max(s.allowed, min(answered.ownerState.createBound.sinceIdle.high, burstLimit)+answered.ownerState.excessObserved)
	} else if s.count == 1 {
		s.allowed += 1 + lateTriesMax
	}
	if s.count <= s.allowed {
		return
	}
	checker.addViolation(func() Evidence {
		return Evidence{
			Summary: fmt.Sprintf("%s: %s was refused %s because the namespace is being deleted, the latest by %s",
				answered.queueKey, answered.process.name, times(s.count), answered.key),
			Expected: fmt.Sprintf("at most %d tries", s.allowed),
			Object:   answered.queueKey.ref(),
			At:       m.now,
			Records:  append([]int64(nil), s.records...),
		}
	})
}

// of is what is kept of an item. What is too old to be waited for by anybody is
// forgotten when there is another.
func (checker *terminatingNamespaceChecker) of(key workQueueKey, at time.Duration) *refusals {
	if s := checker.byKey[key]; s != nil && at-s.since < expectationsTimeout {
		return s
	}
	maps.DeleteFunc(checker.byKey, func(_ workQueueKey, s *refusals) bool { return at-s.since >= expectationsTimeout })
	checker.byKey[key] = &refusals{since: at}
	return checker.byKey[key]
}
