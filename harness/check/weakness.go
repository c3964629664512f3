package check

import (
	"fmt"
	"iter"
	"maps"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// KnownIssue is a way in which upstream's controllers of Kubernetes v1.36 break a
// promise, as is known of them. TRAPS.md lists all that are known; here are those
// that leave something undone for good and can be told with certainty by what they
// leave behind. suites/regression has a scenario of each.
type KnownIssue struct {
	// Name is that of its scenario.
	Name string
	// Trap is its number in TRAPS.md.
	Trap int
	// Description says what happens.
	Description string
	// Issue is where upstream has it on record; empty if that is not known.
	Issue string
	// Check is the ID of the check that it breaks in that scenario.
	Check string
	// Slow says that the scenario takes minutes.
	Slow bool
}

// The weaknesses that are recognised.
var (
	stuckScaling = &KnownIssue{
		Name:        "stuck-scaling",
		Trap:        1,
		Description: "a scaling never ends when the only ReplicaSet with pods has the new size already",
		Issue:       "kubernetes/kubernetes#102551",
		Check:       "rollout-complete",
	}
	recreateScaling = &KnownIssue{
		Name:        "recreate-scaling",
		Trap:        45,
		Description: "a scaling never ends when the strategy has become Recreate while two ReplicaSets have pods",
		Check:       "rollout-complete",
	}
	swallowedError = &KnownIssue{
		Name:        "swallowed-error",
		Trap:        3,
		Description: "a write that failed while old ReplicaSets were scaled down is not tried again before something else happens",
		Check:       "rollout-complete",
	}
	lostEndpoints = &KnownIssue{
		Name:        "lost-endpoints",
		Trap:        44,
		Description: "Endpoints whose last write was made, and its answer lost, stay as they are when by then the cache, which lags, has what is wanted again",
		Check:       "endpoints-exact",
	}
	namesakeStatus = &KnownIssue{
		Name:        "namesake-status",
		Trap:        43,
		Description: "a status whose write conflicts is written onto what bears the name by then, be it another owner",
		Check:       "status",
	}
	earlyLeftovers = &KnownIssue{
		Name:        "early-leftovers",
		Trap:        8,
		Description: "at the start, Endpoints are deleted whose Service is there and not in the cache yet",
		Issue:       "kubernetes/kubernetes#104062",
		Check:       "orphan-endpoints",
	}
	unnoticedEnd = &KnownIssue{
		Name:        "unnoticed-end",
		Trap:        7,
		Description: "a pod that ends, and is said to be as ready as before and to have its address, stays in Endpoints until something else happens",
		Check:       "endpoints-exact",
	}
	longBackOff = &KnownIssue{
		Name:        "long-back-off",
		Trap:        5,
		Description: "what has failed for long for a ReplicaSet or ReplicationController is tried again after up to 1000 s only",
		Issue:       "kubernetes/kubernetes#98656",
		Check:       "converged",
		Slow:        true,
	}
	latePods = &KnownIssue{
		Name:        "late-pods",
		Trap:        9,
		Description: "a ReplicationController that has not been shown for 5 minutes the pods that it made makes them again",
		Issue:       "kubernetes/kubernetes#129795",
		Check:       "not-above-desired",
		Slow:        true,
	}
	droppedKey = &KnownIssue{
		Name:        "dropped-key",
		Trap:        4,
		Description: "a Deployment or Service whose syncs have failed 16 times in a row is left as it is until something else happens",
		Check:       "endpoints-exact",
		Slow:        true,
	}
)

// KnownIssues are all that are recognised.
var KnownIssues = []*KnownIssue{stuckScaling, recreateScaling, swallowedError, unnoticedEnd, lostEndpoints, namesakeStatus, earlyLeftovers, longBackOff, latePods, droppedKey}

func (w *KnownIssue) String() string {
	text := fmt.Sprintf("known weakness %d of upstream: %s", w.Trap, w.Description)
	if w.Issue != "" {
		text += " (" + w.Issue + ")"
	}
	return text
}

// rolloutWeakness is what explains all that is pending about a Deployment; nil if
// nothing that is known does.
func (w *world) rolloutWeakness(d *deployment, abandoned, dropped bool) *KnownIssue {
	if d.paused || d.terminating {
		return nil
	}
	var active []*owner
	for _, set := range w.setsOf(d) {
		if set.replicas > 0 {
			active = append(active, set)
		}
	}
	switch {
	case len(active) == 1 && active[0].replicas == d.replicas && active[0].desired != d.replicas:
		return stuckScaling
	case len(active) > 1 && d.recreate && d.beingScaled(active):
		return recreateScaling
	case abandoned && !d.recreate:
		return swallowedError
	case dropped:
		return droppedKey
	}
	return nil
}

// begins reports whether a process begins, which looks at everything anew.
func begins(r *history.Record) bool {
	return r.Process != nil && r.Process.Event == history.ProcessStarted
}

// forgetEnded drops what is kept of processes that have ended.
func forgetEnded[V any](of map[item]V) {
	maps.DeleteFunc(of, func(i item, _ V) bool { return i.process.ended })
}

// keys are those of an item in the work queues of the processes that may work.
func (m *Model) keys(i item) iter.Seq[item] {
	return func(yield func(item) bool) {
		for _, p := range m.processes {
			i.process = p
			if m.mayWork(p) && !yield(i) {
				return
			}
		}
	}
}

// hasKey reports whether something is kept of an item by one of its keys.
func hasKey(m *Model, of map[item]bool, i item) bool {
	for key := range m.keys(i) {
		if of[key] {
			return true
		}
	}
	return false
}

// abandonment is the Deployments of which the last that was written of any of their
// ReplicaSets failed to scale one down.
type abandonment map[item]bool

func (a abandonment) observe(m *Model, r *history.Record) {
	switch {
	case begins(r):
		forgetEnded(a)
	case m.sent != nil && m.sent.rollout != nil && r.Request.Resource == setResource:
		maps.DeleteFunc(a, func(i item, _ bool) bool { return i.uid == m.sent.rollout.uid })
	case m.answered != nil && m.answered.scaling != nil && isFailure(m.answered):
		s := m.answered.scaling
		if down := all(s.states, func(sets []*owner) bool { return s.to < s.before(sets) }); down && !s.creates {
			a[m.answered.item] = true
		}
	}
}

// lostWrites is the Services of whose Endpoints a write was made that the process
// was not told of, and none since that it was told of.
type lostWrites map[item]bool

func (l lostWrites) observe(m *Model, r *history.Record) {
	if begins(r) {
		forgetEnded(l)
		return
	}
	a := m.answered
	if a == nil || a.publication == nil {
		return
	}
	switch name := a.publication.name; {
	case a.response.OK():
		maps.DeleteFunc(l, func(i item, _ bool) bool { return i.service == name })
	case a.response.Reached && (a.response.ServerCode == 0 || a.response.ServerCode < 300):
		l[a.item] = true
	}
}
