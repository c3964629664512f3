package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// scaleDownOrderCheck demands that a scale-down deletes the pods in the ReplicaSet order, such as
// not ready pods first. It examines each complete scale-down of a ReplicaSet or
// ReplicationController. A scale-down consists of the pod deletes that one sync sends.
//
// The check skips a scale-down during which the process ended. It also skips a scale-down with
// fewer deletes than necessary, because more deletes may follow.
var scaleDownOrderCheck = Check{
	ID:               "scale-down-order",
	Guarantee:        "Scale-down deletes pods in this order: unassigned, not running, not ready, lower pod-deletion-cost, more pods of the same Deployment on the node, ready for a shorter time, more restarts, newer. For pods of a Deployment, the check does not compare the criteria after the number of pods on the node.",
	Contract:         "ReplicaSet 10",
	Property:         Safety,
	Scope:            contractOf(kube.RanksVictims),
	ExercisedWhen:    "A scale-down of a ReplicaSet or ReplicationController deletes some of the pods that it may choose from, and leaves others.",
	AllowedBehaviors: []string{"coarse-ranking", "whole-second-timestamps", "writes-from-one-snapshot", "paused-process"},
	New:              newScaleDownOrderChecker,
}

// scaleDownOrderChecker reports a scale-down that deletes one pod but leaves another pod that it
// had to delete first.
//
// The process may have acted on any of several cached versions of the two pods. The checker reports
// a violation only if the remaining pod comes first in every combination of these versions.
//
// The checker treats a scale-down as complete in two cases:
//
//   - The process is idle: it has sent nothing for a while and awaits no response.
//   - The process begins another scale-down of the owner. It has observed all its earlier deletes,
//     got a response to a create or a status write for the owner, and then sends a delete.
//
// The checker ignores a scale-down that deleted fewer pods than necessary. More deletes may follow,
// because the process may have got no CPU time for a while.
type scaleDownOrderChecker struct {
	findings
	scaleDowns perOwnerState[scaleDownState]
	pending    map[*ownerState]bool // owners with a scale-down that the checker has not examined yet
}

// scaleDownState contains the latest scale-down of one owner. It also contains the times and
// pods that the checker needs to find where the next scale-down begins.
type scaleDownState struct {
	// lastAnswered is when the process last got a response to a create or a status write for the
	// owner. A worker awaits these responses before it syncs the owner again. If a scale-down
	// begins later, the process therefore decided on it after this time, with what its cache
	// contained then.
	lastAnswered time.Duration
	// created contains the UIDs of the pods that the process created for the owner. The process
	// decides on deletes only after all these pods are in its cache. The controller can therefore
	// choose them even if they arrived in the cache just before the scale-down.
	created map[types.UID]bool
	current *scaleDown // the scale-down that is not examined yet, or nil
}

// scaleDown is one scale-down of an owner, with the pods among which the controller chose.
type scaleDown struct {
	firstRecord, lastRecord int64                    // sequence numbers of the first and the latest delete request
	lastSentAt              time.Duration            // when the latest delete was sent, on the clock of the process (Model.processTime)
	now                     time.Time                // wall-clock time of the first delete
	candidates              map[types.UID]*candidate // by UID of the pod
	allPodsKnown            bool                     // every pod of the owner is a candidate
	controlled              bool                     // the owner was controlled by a Deployment when the scale-down began
	// onNode contains how many active pods of the Deployment each node has. It is nil if the owner has
	// no Deployment, or if the numbers are not certain.
	onNode map[string]int
	// excess is the highest number of pods that the process may have needed to delete. The keys of
	// scaleDown.sent are the UIDs of the pods for which the process sent a delete.
	excess int
	sent   map[types.UID]bool
}

// candidate is a pod that the controller could certainly choose to delete. The owner controlled the
// pod during the whole period in which the process may have decided on the scale-down.
type candidate struct {
	states  []cachedVersion[*objects.Pod] // versions that the process may have acted on, oldest first
	deleted bool                          // the scale-down deleted the pod
}

func newScaleDownOrderChecker(Settings) Checker {
	return &scaleDownOrderChecker{pending: map[*ownerState]bool{}}
}

func (checker *scaleDownOrderChecker) Observe(m *Model, _ *history.Record) {
	if m.endedIdle != nil {
		checker.checkAll(m, func(state *ownerState) bool { return state.process == m.endedIdle })
	}
	if m.phase == history.PhaseEnd {
		checker.checkAll(m, func(state *ownerState) bool {
			p := state.process
			return p.callsInFlight == 0 && m.clockOf(p.name)-p.lastActivity >= p.idleAfter && !p.clientMayRetry(m.processTime)
		})
	}
	if c := m.sent; c != nil && c.verb == callDeletePod && c.ownerState != nil && c.deletesActivePod() {
		checker.recordDelete(m, c)
	}
	if answered := m.answered; answered != nil && answered.ownerState != nil && (answered.verb == callCreatePod || answered.verb == callStatus) {
		checker.scaleDowns.of(answered.ownerState).recordAnswer(m.processTime, answered)
	}
}

// recordAnswer records the time of a response to a create or a status write. If the response
// contains a created pod, recordAnswer also records this pod.
func (ownerScaleDowns *scaleDownState) recordAnswer(at time.Duration, answered *answeredCall) {
	ownerScaleDowns.lastAnswered = at
	if answered.verb != callCreatePod || !answered.response.OK() || answered.response.Object == nil {
		return
	}
	if ownerScaleDowns.created == nil {
		ownerScaleDowns.created = map[types.UID]bool{}
	}
	ownerScaleDowns.created[answered.response.Object.UID] = true
}

// recordDelete records that the process sent a delete of a pod. The delete either begins a new
// scale-down of the owner or belongs to the current scale-down.
func (checker *scaleDownOrderChecker) recordDelete(m *Model, c *call) {
	ownerScaleDowns := checker.scaleDowns.of(c.ownerState)
	switch observedAll := c.ownerState.deletes.inFlightExcept(c) == 0 && len(c.ownerState.deletes.unobserved) == 0; {
	case ownerScaleDowns.current == nil || observedAll && ownerScaleDowns.lastAnswered > ownerScaleDowns.current.lastSentAt:
		checker.checkScaleDown(m, c.ownerState)
		ownerScaleDowns.current = newScaleDown(m, c, ownerScaleDowns)
		checker.pending[c.ownerState] = true
	case observedAll: // this delete may begin a new scale-down, based on newer versions of the pods
		ownerScaleDowns.current.addStates(c.process.view)
	}
	ownerScaleDowns.current.lastRecord, ownerScaleDowns.current.lastSentAt = c.seq, m.processTime
	ownerScaleDowns.current.sent[c.pod.UID] = true
	if deletedCandidate := ownerScaleDowns.current.candidates[c.pod.UID]; deletedCandidate != nil {
		deletedCandidate.deleted = true
	}
}

// newScaleDown returns a scale-down that begins with the given delete. It has no candidates if the
// owner is not in the cache, or if its selector has changed.
//
// The candidates are the pods that the owner controlled during the whole period in which the
// controller may have decided. This period ends with the delete. The period begins at the later of
// two times:
//
//   - batchTime before the delete, because the client-side rate limit delays a request for at most
//     that long
//   - lag (1 s) before the last response to a create or a status write for the owner
//
// Pods that the process itself created are candidates even if they reached the cache later.
func newScaleDown(m *Model, c *call, ownerScaleDowns *scaleDownState) *scaleDown {
	state := c.ownerState
	begun := &scaleDown{firstRecord: c.seq, now: m.start.Time.Add(m.now), candidates: map[types.UID]*candidate{}, allPodsKnown: true,
		excess: min(state.podCounts.controlledOrAdoptable()-state.deleteBound.recent.bounds(m.processTime).low, burstLimit), sent: map[types.UID]bool{},
	}
	o := state.owner()
	if o == nil || state.selectorChanged {
		return begun
	}
	begun.controlled = o.Controller.UID != ""
	from := max(m.processTime-state.process.batchTime, ownerScaleDowns.lastAnswered-lag)
	if begun.controlled && state.podCounts.orphans == 0 { // an orphan counts as soon as the process adopts it
		begun.onNode = state.process.view.relatedPods(o.Controller.UID, from)
	}
	maps.DeleteFunc(ownerScaleDowns.created, func(uid types.UID, _ bool) bool { return state.process.view.pods[uid] == nil })
	for uid, p := range state.process.view.controlled[state.uid] {
		states := keepSince(state.process.view.podVersionsSince[uid], from)
		covered := states[0].since <= from || ownerScaleDowns.created[uid] && state.extraObserved == 0
		if !covered || !every(states, func(s cachedVersion[*objects.Pod]) bool { return countsPod(o, s.value) }) {
			begun.allPodsKnown = begun.allPodsKnown && !p.Active
			continue
		}
		begun.candidates[p.UID] = &candidate{states: states}
	}
	return begun
}

// relatedPods returns how many active pods of a Deployment each node has, by the node's name. The
// argument deployment is the Deployment's UID. The result is nil if one of these pods changed, appeared
// or vanished in the cache since the time from.
func (v *view) relatedPods(deployment types.UID, from time.Duration) map[string]int {
	for _, states := range v.formerPods {
		for _, s := range states {
			if s.until > from && v.replicaSets[deployment][s.pod.Controller.UID] != nil {
				return nil
			}
		}
	}
	numbers := map[string]int{}
	for set := range v.replicaSets[deployment] {
		for uid, p := range v.controlled[set] {
			if states := keepSince(v.podVersionsSince[uid], from); len(states) != 1 || states[0].since > from {
				return nil
			}
			if p.Active {
				numbers[p.Node]++
			}
		}
	}
	return numbers
}

// addStates adds the versions of the candidates that arrived in the cache since the previous
// delete. The controller may have acted on these versions too.
func (c *scaleDown) addStates(v *view) {
	for uid, each := range c.candidates {
		for _, s := range v.podVersionsSince[uid] {
			if s.since > each.states[len(each.states)-1].since {
				each.states = append(each.states[:len(each.states):len(each.states)], s)
			}
		}
	}
}

// checkAll examines the unchecked scale-downs of all owners for which the given function returns
// true. It forgets the scale-downs of ended processes.
func (checker *scaleDownOrderChecker) checkAll(m *Model, selected func(*ownerState) bool) {
	for state := range checker.pending {
		switch {
		case state.process.ended:
			delete(checker.pending, state)
		case selected(state):
			checker.checkScaleDown(m, state)
		}
	}
}

// checkScaleDown reports a violation if the current scale-down of an owner deleted pods in the
// wrong order. The owner then has no current scale-down any more.
func (checker *scaleDownOrderChecker) checkScaleDown(m *Model, state *ownerState) {
	delete(checker.pending, state)
	ownerScaleDowns := checker.scaleDowns.of(state)
	current := ownerScaleDowns.current
	ownerScaleDowns.current = nil
	if current == nil || len(current.sent) < current.excess {
		return // more deletes may follow, or may not have reached the proxy yet
	}
	victim, left, reason := current.findMistake(state.owner())
	if current.hasAlternatives() {
		checker.exercised++
	}
	if victim == nil {
		return
	}
	checker.addViolation(func() Evidence {
		return Evidence{
			Summary:  fmt.Sprintf("%s: %s deleted %s but not %s, which %s", state.name(), state.process.name, podName(victim), podName(left), reason),
			Expected: fmt.Sprintf("a delete of %s first", podName(left)),
			Object:   podRef(victim),
			At:       m.now,
			Records:  []int64{current.firstRecord, current.lastRecord},
		}
	})
}

// hasAlternatives reports whether the scale-down deleted at least one candidate and left at
// least one. Only then can the order be wrong.
func (c *scaleDown) hasAlternatives() bool {
	deleted, left := 0, 0
	for _, each := range c.candidates {
		if each.deleted {
			deleted++
		} else {
			left++
		}
	}
	return deleted > 0 && left > 0
}

// findMistake finds a remaining pod that the controller had to delete before a deleted pod. It
// returns the deleted pod, the remaining pod, and the reason. If the order was right, it returns
// nil, nil and "".
//
// findMistake does not compare all pairs of pods. It compares one pair by class, and one pair by
// each age (see ageOrder) within each class. Each pair consists of the deleted pod that the order
// puts last and the remaining pod that the order puts first.
func (c *scaleDown) findMistake(o *objects.Owner) (victim, left *objects.Pod, reason string) {
	ages := c.decidingAges(o)
	orders := ages.orders()
	type group struct {
		class class
		order int
	}
	byRank, byAge := &extremes{}, map[group]*extremes{}
	for _, uid := range slices.Sorted(maps.Keys(c.candidates)) { // sorted, so that ties give the same result each time
		each := c.candidates[uid]
		byRank.include(each, compareClass)
		if compareClass(each.leastValued(), each.mostValued()) != 0 {
			continue // the class of the pod at the decision is not certain
		}
		for i, by := range orders {
			key := group{classOf(each.latest()), i}
			if byAge[key] == nil {
				byAge[key] = &extremes{}
			}
			byAge[key].include(each, by)
		}
	}
	for _, pair := range append(slices.Collect(maps.Values(byAge)), byRank) {
		if pair.victim == nil || pair.left == nil {
			continue
		}
		if reason := c.precedes(pair.left, pair.victim, ages); reason != "" {
			return pair.victim.latest(), pair.left.latest(), reason
		}
	}
	return nil, nil, ""
}

// extremes contains two pods that show whether a scale-down respected one criterion of the deletion
// order, such as the class. extremes.victim is the deleted pod that the order puts last.
// extremes.left is the remaining pod that the order puts first. If extremes.left comes before
// extremes.victim, the order was wrong.
type extremes struct{ victim, left *candidate }

// include stores the given pod in e.victim or e.left if this pod is more likely to reveal a wrong
// order. A deleted pod replaces e.victim if the deletion order puts it later. A remaining pod
// replaces e.left if the order puts it earlier. The parameter compare is a function that compares
// two pods by one criterion.
//
// If the cache had several versions of a pod, include uses the version that makes a wrong order
// least likely.
func (e *extremes) include(each *candidate, compare func(a, b *objects.Pod) int) {
	switch {
	case each.deleted && (e.victim == nil || compare(each.leastValued(), e.victim.leastValued()) > 0):
		e.victim = each
	case !each.deleted && (e.left == nil || compare(each.mostValued(), e.left.mostValued()) < 0):
		e.left = each
	}
}

// leastValued returns, of the pod's recent cached versions, the one that comes first in the
// deletion order. It compares the class: node assignment, phase, readiness and pod-deletion-cost.
func (c *candidate) leastValued() *objects.Pod {
	return slices.MinFunc(c.states, byClass).value
}

// byClass compares two cached versions of a pod by class: node assignment, phase, readiness and
// pod-deletion-cost. The result is negative if scale-down deletes version a first.
func byClass(a, b cachedVersion[*objects.Pod]) int { return compareClass(a.value, b.value) }

// mostValued returns, of the pod's recent cached versions, the one that comes last in the deletion
// order. It compares the class: node assignment, phase, readiness and pod-deletion-cost.
func (c *candidate) mostValued() *objects.Pod { return slices.MaxFunc(c.states, byClass).value }

// latest returns the latest cached version of the pod that the controller may have acted on.
func (c *candidate) latest() *objects.Pod { return c.states[len(c.states)-1].value }

// ageOrder says which times the checker compares for two pods of one class, such as the time of
// readiness. If both fields are false, the checker compares none.
//
// For the ReplicaSet of a Deployment, the checker compares no times. The controller first compares how
// many pods of the whole Deployment each node has. The checker compares these numbers if they are
// certain (allowed behavior coarse-ranking).
type ageOrder struct {
	onNode  map[string]int // compare the number of related pods on the node of each pod; nil if it is not certain
	ready   bool           // compare the time since the pods became ready
	created bool           // compare the container restarts, then the time since the creation of the pods
}

// decidingAges returns which ages the checker may use to compare the candidates of this scale-down.
//
// If the pods became ready at different times, the checker compares only these times. Otherwise it
// compares the container restarts, and then the creation times, as the controller does. It does so
// only if every pod of the owner is a candidate with a single cached version. If not, the
// controller may have sorted pods or versions that the checker does not know.
//
// The checker compares no ages for a ReplicaSet that a Deployment controls, or controlled when the
// scale-down began.
func (c *scaleDown) decidingAges(o *objects.Owner) ageOrder {
	if o == nil || c.controlled || o.Controller.UID != "" {
		return ageOrder{onNode: c.onNode}
	}
	var first *objects.Pod
	single := c.allPodsKnown
	for _, each := range c.candidates {
		p := each.latest()
		if first == nil {
			first = p
		}
		if !p.ReadySince.Equal(first.ReadySince) {
			return ageOrder{ready: true}
		}
		single = single && len(each.states) == 1
	}
	return ageOrder{created: single}
}

// orders returns one comparison function for each age that the checker compares. A negative
// result means that scale-down deletes pod a before pod b.
func (a ageOrder) orders() []func(a, b *objects.Pod) int {
	switch {
	case a.onNode != nil:
		return []func(a, b *objects.Pod) int{func(p, other *objects.Pod) int { return cmp.Compare(a.onNode[other.Node], a.onNode[p.Node]) }}
	case a.ready:
		return []func(a, b *objects.Pod) int{func(a, b *objects.Pod) int { return b.ReadySince.Compare(a.ReadySince) }}
	case a.created:
		return []func(a, b *objects.Pod) int{
			func(a, b *objects.Pod) int { return cmp.Compare(b.Restarts, a.Restarts) },
			func(a, b *objects.Pod) int { return b.Created.Compare(a.Created) },
		}
	}
	return nil
}

// precedes returns the reason why scale-down must delete the first pod before the second, such as
// "is not ready". It returns "" if at least one combination of the pods' cached versions gives no
// reason.
func (c *scaleDown) precedes(first, second *candidate, ages ageOrder) string {
	reason := ""
	for _, a := range first.states {
		for _, b := range second.states {
			if reason = c.before(a.value, b.value, ages); reason == "" {
				return ""
			}
		}
	}
	return reason
}

// before returns the reason why scale-down must delete one pod before another pod. The parameter
// a is a cached version of the first pod, and b of the second. The result is "" if there is no
// reason.
func (c *scaleDown) before(a, b *objects.Pod, ages ageOrder) string {
	if order := compareClass(a, b); order != 0 {
		return classBefore(a, b, order)
	}
	switch {
	case ages.onNode[a.Node] > ages.onNode[b.Node]:
		return fmt.Sprintf("is on a node with %d pods of the Deployment; the node of the deleted pod has %d", ages.onNode[a.Node], ages.onNode[b.Node])
	case ages.ready && a.Ready:
		return c.younger(a.ReadySince, b.ReadySince, "has been ready")
	case ages.created && a.Restarts != b.Restarts:
		if a.Restarts > b.Restarts {
			return fmt.Sprintf("has %d container restarts; the deleted pod has %d", a.Restarts, b.Restarts)
		}
	case ages.created:
		return c.younger(a.Created, b.Created, "has existed")
	}
	return ""
}

// class contains the fields of a pod that scale-down compares first. These are assignment to a
// node, phase, readiness and pod-deletion-cost. Scale-down compares ages only among pods of the
// same class.
type class struct {
	assigned bool
	phase    int
	ready    bool
	cost     int
}

// classOf returns the class of a pod: node assignment, phase, readiness and pod-deletion-cost.
func classOf(p *objects.Pod) class { return class{p.Assigned(), p.PhaseIndex, p.Ready, p.DeletionCost} }

// compareClass compares two pods by class: node assignment, phase, readiness and
// pod-deletion-cost. The result is negative if scale-down deletes p first, and 0 if the classes
// are equal.
func compareClass(p, other *objects.Pod) int {
	return cmp.Or(
		compareBool(p.Assigned(), other.Assigned()),
		cmp.Compare(p.PhaseIndex, other.PhaseIndex),
		compareBool(p.Ready, other.Ready),
		cmp.Compare(p.DeletionCost, other.DeletionCost),
	)
}

// classBefore returns the reason why one pod (the parameter p) comes before the other in the
// deletion order. The reason names the first field in which the classes of the two pods differ.
//
// The parameter order is the result of compareClass for the two pods. If it is positive, p comes
// last, and classBefore returns "".
func classBefore(p, other *objects.Pod, order int) string {
	switch {
	case order > 0:
		return ""
	case p.Assigned() != other.Assigned():
		return "is not assigned to a node"
	case p.PhaseIndex != other.PhaseIndex:
		return "is " + objects.Phases[p.PhaseIndex]
	case p.Ready != other.Ready:
		return "is not ready"
	}
	return fmt.Sprintf("has pod-deletion-cost %d; the deleted pod has %d", p.DeletionCost, other.DeletionCost)
}

// ageRatio is the minimum ratio of the ages of two pods that are certainly in different age
// classes.
//
// Scale-down treats pods of one age class as equally old. The limits of the age classes are
// powers of two, so a ratio of 2 would be enough. The constant is higher because clocks differ a
// little.
const ageRatio = 2.5

// younger returns the reason why timestamp a is in a younger age class (see ageRatio) than
// timestamp b. It returns "" if this is not certain.
//
// The parameter verb is the beginning of the reason, such as "has been ready".
func (c *scaleDown) younger(a, b time.Time, verb string) string {
	if a.IsZero() || b.IsZero() {
		return ""
	}
	young, old := c.now.Sub(a), c.now.Sub(b)
	if young < time.Second || float64(old) < ageRatio*float64(young) {
		return ""
	}
	return fmt.Sprintf("%s for %v; the deleted pod %s for %v", verb, young.Round(time.Second), verb, old.Round(time.Second))
}

// compareBool compares two booleans; false comes before true. The result is negative, zero or
// positive, like that of cmp.Compare.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// countsPod reports whether a pod counts as a replica of the owner. Such a pod is active,
// controlled by the owner and matched by the owner's selector.
func countsPod(o *objects.Owner, p *objects.Pod) bool {
	return p.Active && p.Controller.UID == o.UID && o.Selector.Matches(p.Labels)
}
