package check

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// terminatingNamespaceCheck examines each create that is rejected because the namespace is
// terminating.
//
// For pods, the limit is the number of pods that the owner wants. For other objects, the
// limit is 3 further creates, and one for each new event.
//
// The check is of a contract, because other correct controllers retry with back-off. For
// example, the StatefulSet controller does so.
var terminatingNamespaceCheck = Check{
	ID:               "terminating-namespace",
	Guarantee:        "After the API server refuses a create because the namespace is terminating, the controller does not retry with back-off. For each refused ReplicaSet or Endpoints it sends at most three further creates, plus one for each new event.",
	Contract:         "ReplicaSet 16, Deployment 6, Endpoints 12",
	Property:         Safety,
	Scope:            contractOf(kube.OwnsPods, kube.RollsOut, kube.PublishesAddresses),
	AllowedBehaviors: []string{"lost-response", "client-retries", "terminating-namespace-creates"},
	New:              newTerminatingNamespaceChecker,
}

// lateRetriesMax is the number of further creates without an event that are allowed for an
// object other than a pod. A controller may sync the object again because of a deadline or
// a stale cache.
const lateRetriesMax = 3

// terminatingNamespaceChecker reports repeated creates in a terminating namespace.
//
// For pods, the limit is the number of pods that the owner wants, because the controller
// waits for rejected pods as if they existed (contract ReplicaSet 16). For a ReplicaSet or
// Endpoints, the controller may try the create again at each new event.
type terminatingNamespaceChecker struct {
	findings
	byKey map[workQueueKey]*rejections
}

// rejections counts the creates for one key that were rejected because the namespace is
// terminating.
type rejections struct {
	since   time.Duration // the time of the first rejection
	count   int
	allowed int
	pods    bool
	records []int64 // the latest few rejections
}

func newTerminatingNamespaceChecker(Settings) Checker {
	return &terminatingNamespaceChecker{byKey: map[workQueueKey]*rejections{}}
}

func (checker *terminatingNamespaceChecker) Observe(m *Model, r *history.Record) {
	if r.Process != nil {
		maps.DeleteFunc(checker.byKey, func(key workQueueKey, _ *rejections) bool { return key.process.ended })
	}
	for _, event := range m.events {
		if s := checker.byKey[event.workQueueKey]; s != nil && !s.pods {
			s.allowed++
		}
	}
	answered := m.answered
	if answered == nil || answered.queueKey.process == nil || answered.generic != nil || answered.response.Cause != string(corev1.NamespaceTerminatingCause) {
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
		s.allowed += 1 + lateRetriesMax
	}
	if s.count <= s.allowed {
		return
	}
	checker.addViolation(func() Evidence {
		return Evidence{
			Summary: fmt.Sprintf("%s: %d creates of %s rejected because the namespace is terminating; the latest was %s",
				answered.queueKey, s.count, answered.process.name, callName(answered.call)),
			Expected: fmt.Sprintf("at most %d rejected creates", s.allowed),
			Object:   answered.queueKey.ref(),
			At:       m.now,
			Records:  append([]int64(nil), s.records...),
		}
	})
}

// of returns the rejections of a work queue key. It first removes entries that are older
// than the expectations timeout.
func (checker *terminatingNamespaceChecker) of(key workQueueKey, at time.Duration) *rejections {
	if s := checker.byKey[key]; s != nil && at-s.since < expectationsTimeout {
		return s
	}
	maps.DeleteFunc(checker.byKey, func(_ workQueueKey, s *rejections) bool { return at-s.since >= expectationsTimeout })
	checker.byKey[key] = &rejections{since: at}
	return checker.byKey[key]
}
