package check

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// This file judges what a controller does in a namespace that is being deleted.

// delayedMax is how many more tries without news are let pass of what is no pod: a
// controller that comes back to look at a deadline, or at what it read too early,
// cannot know.
const delayedMax = 3

// shutOutJudge: a creation that is refused because the namespace is being deleted is
// not tried again. Of an owner's pods, a process is refused no more than the owner
// asked for: it waits for them, as if they had been made (contract ReplicaSet 16). A
// ReplicaSet or Endpoints may be tried once more at each news.
type shutOutJudge struct {
	findings
	states map[item]*refusals
}

// refusals are those of creations for one object, for that reason.
type refusals struct {
	since   time.Duration // of the first
	count   int
	allowed int
	pods    bool
	records []int64 // the latest few
}

func newShutOut(Settings) Checker { return &shutOutJudge{states: map[item]*refusals{}} }

func (j *shutOutJudge) Observe(m *Model, r *history.Record) {
	if r.Process != nil {
		maps.DeleteFunc(j.states, func(i item, _ *refusals) bool { return i.process.ended })
	}
	for _, w := range m.wakes {
		if s := j.states[w.item]; s != nil && !s.pods {
			s.allowed++
		}
	}
	a := m.answered
	if a == nil || a.item.process == nil || a.response.Cause != string(corev1.NamespaceTerminatingCause) {
		return
	}
	j.tested++
	s := j.of(a.item, m.at)
	s.count++
	s.records = append(s.records[max(0, len(s.records)-4):], a.seq)
	if a.verb == callCreate {
		s.pods = true
		s.allowed = max(s.allowed, min(a.ledger.ceiling.whole.high, burstLimit)+a.ledger.credit)
	} else if s.count == 1 {
		s.allowed += 1 + delayedMax
	}
	if s.count <= s.allowed {
		return
	}
	j.violate(func() Evidence {
		return Evidence{
			Summary: fmt.Sprintf("%s: %s was refused %s because the namespace is being deleted, the latest by %s",
				a.item, a.process.name, times(s.count), a.key),
			Expected: fmt.Sprintf("at most %d tries", s.allowed),
			Object:   a.item.ref(),
			At:       m.now,
			Records:  append([]int64(nil), s.records...),
		}
	})
}

// of is what is kept of an item. What is too old to be waited for by anybody is
// forgotten when there is another.
func (j *shutOutJudge) of(i item, at time.Duration) *refusals {
	if s := j.states[i]; s != nil && at-s.since < expectationsTimeout {
		return s
	}
	maps.DeleteFunc(j.states, func(_ item, s *refusals) bool { return at-s.since >= expectationsTimeout })
	j.states[i] = &refusals{since: at}
	return j.states[i]
}
