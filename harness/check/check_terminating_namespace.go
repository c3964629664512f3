package check

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// terminatingNamespaceCheck demands that a controller does not retry creates in a terminating
// namespace with back-off. It examines each create that the API server rejects because the
// namespace is terminating.
//
// The check limits the number of these creates for each work queue key. For pods, the limit is the
// number of pods that the owner wants. For other objects, the limit is 3 creates after the first
// one, and one more after each new event.
//
// Only the controllers in controllers/CONTRACT.md must obey this rule. Other correct controllers,
// such as the StatefulSet controller, retry with back-off.
var terminatingNamespaceCheck = Check{
	ID:               "terminating-namespace",
	Guarantee:        "After the API server refuses a create because the namespace is terminating, the controller does not retry with back-off. For each refused ReplicaSet or Endpoints it sends at most three further creates, plus one for each new event.",
	Contract:         "ReplicaSet 16, Deployment 6, Endpoints 12",
	Property:         Safety,
	Scope:            contractOf(kube.OwnsPods, kube.RollsOut, kube.PublishesAddresses),
	ExercisedWhen:    "The API server rejects a create of a controller with a contract because the namespace is terminating.",
	AllowedBehaviors: []string{"lost-response", "client-retries", "terminating-namespace-creates"},
	New:              newTerminatingNamespaceChecker,
}

// lateRetriesMax is how many creates a controller may send in a terminating namespace without any
// event. It counts the creates of one ReplicaSet or Endpoints object after the first that was
// rejected. The sync at a Deployment's progress deadline or a stale cache may cause them.
const lateRetriesMax = 3

// terminatingNamespaceChecker reports too many creates in a terminating namespace.
//
// For pods, the limit is the number of pods that the owner wants. The controller treats each
// rejected create as successful, and waits for its pod (contract ReplicaSet 16). For a ReplicaSet
// or Endpoints, the controller may send the create again after each new event.
type terminatingNamespaceChecker struct {
	findings
	byKey map[workQueueKey]*rejections // the rejected creates for each key
}

// rejections contains the creates for one work queue key that the API server rejected
// because the namespace is terminating.
type rejections struct {
	since   time.Duration // when the first create was rejected, on the clock of the process (Model.processTime)
	count   int           // number of rejected creates
	allowed int           // maximum value of count; a higher one is a violation
	pods    bool          // true if the rejected creates are creates of pods
	records []int64       // sequence numbers of the latest 5 rejected requests
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
		s.allowed = max(s.allowed, min(answered.ownerState.createBound.sinceIdle.high, burstLimit)+answered.ownerState.extraObserved)
	} else if s.count == 1 {
		s.allowed += 1 + lateRetriesMax
	}
	if s.count <= s.allowed {
		return
	}
	checker.addViolation(func() Evidence {
		return Evidence{
			Summary: fmt.Sprintf("%s: the API server rejected %d creates of %s because the namespace is terminating; the latest request was %s",
				answered.queueKey, s.count, answered.process.name, callName(answered.call)),
			Expected: fmt.Sprintf("at most %d rejected creates", s.allowed),
			Object:   answered.queueKey.ref(),
			At:       m.now,
			Records:  append([]int64(nil), s.records...),
		}
	})
}

// of returns the stored rejected creates for a work queue key, so that the caller can count another
// one. If nothing is stored for the key, it stores empty counts. Counts that are older than the
// expectations timeout (5 minutes) are replaced, because a controller may then create again. The
// method then also removes such old counts of all other keys.
func (checker *terminatingNamespaceChecker) of(key workQueueKey, at time.Duration) *rejections {
	if s := checker.byKey[key]; s != nil && at-s.since < expectationsTimeout {
		return s
	}
	maps.DeleteFunc(checker.byKey, func(_ workQueueKey, s *rejections) bool { return at-s.since >= expectationsTimeout })
	checker.byKey[key] = &rejections{since: at}
	return checker.byKey[key]
}
