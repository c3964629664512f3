package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// scaleDownOrderCheck is the row of scale-down-order in All.
var scaleDownOrderCheck = Check{
	ID:               "scale-down-order",
	Guarantee:        "Of an owner's pods, one that it deletes is not worth more than one that it leaves: on a node, running, ready, dear to delete, old.",
	Contract:         "ReplicaSet 10",
	Property:         Safety,
	AllowedBehaviors: []string{"coarse-ranking", "whole-second-timestamps", "writes-from-one-snapshot", "paused-process"},
	New:              newScaleDownOrderChecker,
}

// scaleDownOrderChecker: of an owner's pods, those that a scale-down leaves do not come
// before one that it deletes, in any way that the process may have had the two
// in mind when it chose.
//
// A choice is judged when it is surely over: at the first delete after a status
// of the owner, or once the process is idle. One that the process did not live to
// carry out is not judged, nor one of which fewer pods were deleted than were too
// many: the machine may stand still in the middle of it.
type scaleDownOrderChecker struct {
	findings
	scaleDowns perOwnerState[scaleDownState]
	pending    map[*ownerState]bool // those with a choice that is yet to be judged
}

// scaleDownState is what is kept of an owner.
type scaleDownState struct {
	// lastAnswered is when a call was last answered that ends a round, or stands in
	// no round that deletes: whatever is chosen later is chosen after it.
	lastAnswered time.Duration
	// created is the pods that the process was told it made: it deletes none before
	// it has been shown them all.
	created map[types.UID]bool
	current *scaleDown
}

// scaleDown is one scale-down.
type scaleDown struct {
	firstRecord, lastRecord int64         // the records of the first and of the latest delete
	lastSentAt              time.Duration // when the latest was sent
	now                     time.Time     // when the first was, by the clock on the wall
	candidates              map[types.UID]*candidate
	allPodsKnown            bool // every pod of the owner is a candidate
	// excess is how many pods were too many at the most, sent which were deleted.
	excess int
	sent   map[types.UID]bool
}

// candidate is a pod that the owner controlled all the while.
type candidate struct {
	states  []cachedVersion[*pod] // how it may have been in mind, oldest first
	deleted bool
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
			return p.callsInFlight == 0 && m.now-m.clockOffset(p.name)-p.lastActivity >= p.idleAfter && !p.clientMayRetry(m.processTime)
		})
	}
	if c := m.sent; c != nil && c.verb == callDeletePod && c.ownerState != nil && c.deletesActivePod() {
		checker.recordDelete(m, c)
	}
	if answered := m.answered; answered != nil && answered.ownerState != nil && (answered.verb == callCreatePod || answered.verb == callStatus) {
		checker.scaleDowns.of(answered.ownerState).recordAnswer(m.processTime, answered)
	}
}

// recordAnswer takes in the answer to a call that is no delete.
func (kept *scaleDownState) recordAnswer(at time.Duration, answered *answeredCall) {
	kept.lastAnswered = at
	if answered.verb != callCreatePod || !answered.response.OK() || answered.response.Object == nil {
		return
	}
	if kept.created == nil {
		kept.created = map[types.UID]bool{}
	}
	kept.created[answered.response.Object.UID] = true
}

// recordDelete takes in a delete: the first of a choice, or one more.
func (checker *scaleDownOrderChecker) recordDelete(m *Model, c *call) {
	kept := checker.scaleDowns.of(c.ownerState)
	switch again := c.ownerState.deletes.inFlightExcept(c) == 0 && len(c.ownerState.deletes.unobserved) == 0; {
	case kept.current == nil || again && kept.lastAnswered > kept.current.lastSentAt:
		checker.checkScaleDown(m, c.ownerState)
		kept.current = newScaleDown(m, c, kept)
		checker.pending[c.ownerState] = true
	case again: // more of the same choice, or another one
		kept.current.addStates(c.process.view)
	}
	kept.current.lastRecord, kept.current.lastSentAt = c.seq, m.processTime
	kept.current.sent[c.pod.UID] = true
	if picked := kept.current.candidates[c.pod.UID]; picked != nil {
		picked.deleted = true
	}
}

// newScaleDown is a choice that begins with that delete. It may date from when the
// process last did something else for the owner, or, if that is long ago, from as
// long ago as its rate limit may hold back a call.
func newScaleDown(m *Model, c *call, kept *scaleDownState) *scaleDown {
	state := c.ownerState
	chosen := &scaleDown{firstRecord: c.seq, now: m.start.Time.Add(m.now), candidates: map[types.UID]*candidate{}, allPodsKnown: true,
		excess: min(state.podCounts.controlledOrAdoptable()-state.deleteBound.recent.bounds(m.processTime).low, burstLimit), sent: map[types.UID]bool{},
	}
	o := state.owner()
	if o == nil || state.selectorChanged {
		return chosen
	}
	from := max(m.processTime-state.process.batchTime, kept.lastAnswered-lag)
	maps.DeleteFunc(kept.created, func(uid types.UID, _ bool) bool { return state.process.view.pods[uid] == nil })
	for uid, p := range state.process.view.controlled[state.uid] {
		states := keepSince(state.process.view.podVersionsSince[uid], from)
		known := states[0].since <= from || kept.created[uid] && state.excessObserved == 0
		if !known || !every(states, func(s cachedVersion[*pod]) bool { return o.countsPod(s.value) }) {
			chosen.allPodsKnown = chosen.allPodsKnown && !p.active
			continue
		}
		chosen.candidates[p.UID] = &candidate{states: states}
	}
	return chosen
}

// addStates adds how the candidates stand by now to how they may be in mind.
func (c *scaleDown) addStates(v *view) {
	for uid, each := range c.candidates {
		for _, s := range v.podVersionsSince[uid] {
			if s.since > each.states[len(each.states)-1].since {
				each.states = append(each.states[:len(each.states):len(each.states)], s)
			}
		}
	}
}

func (checker *scaleDownOrderChecker) checkAll(m *Model, such func(*ownerState) bool) {
	for state := range checker.pending {
		switch {
		case state.process.ended:
			delete(checker.pending, state)
		case such(state):
			checker.checkScaleDown(m, state)
		}
	}
}

// checkScaleDown judges the choice that was last made for an owner.
func (checker *scaleDownOrderChecker) checkScaleDown(m *Model, state *ownerState) {
	delete(checker.pending, state)
	kept := checker.scaleDowns.of(state)
	chosen := kept.current
	kept.current = nil
	if chosen == nil || len(chosen.sent) < chosen.excess {
		return // the rest may yet be deleted, or never have come as far as the proxy
	}
	victim, left, why := chosen.findMistake(state.owner())
	if chosen.hasAlternatives() {
		checker.exercised++
	}
	if victim == nil {
		return
	}
	checker.addViolation(func() Evidence {
		return Evidence{
			Summary:  fmt.Sprintf("%s: %s deleted pod %s and left %s, which %s", state.name(), state.process.name, victim.Name, left.Name, why),
			Expected: "the pod that is worth less to go first",
			Object:   podRef(victim),
			At:       m.now,
			Records:  []int64{chosen.firstRecord, chosen.lastRecord},
		}
	})
}

// hasAlternatives reports whether there was anything to choose.
func (c *scaleDown) hasAlternatives() bool {
	chosen, left := 0, 0
	for _, each := range c.candidates {
		if each.deleted {
			chosen++
		} else {
			left++
		}
	}
	return chosen > 0 && left > 0
}

// findMistake finds a pod that was chosen and one that was left though it comes
// first, and says why it does. It compares only the ends of each order: the one
// that was left and comes first of those, with the one that was chosen and comes
// last.
func (c *scaleDown) findMistake(o *owner) (victim, left *pod, why string) {
	ages := c.decidingAges(o)
	orders := ages.orders()
	type group struct {
		class class
		order int
	}
	byRank, within := &extremes{}, map[group]*extremes{}
	for _, each := range c.candidates {
		byRank.include(each, (*pod).compareClass)
		if len(each.states) > 1 {
			continue // of which class it was taken to be is not to be told
		}
		for i, by := range orders {
			of := group{each.latest().class(), i}
			if within[of] == nil {
				within[of] = &extremes{}
			}
			within[of].include(each, by)
		}
	}
	for _, of := range append(slices.Collect(maps.Values(within)), byRank) {
		if of.victim == nil || of.left == nil {
			continue
		}
		if why := c.precedes(of.left, of.victim, ages); why != "" {
			return of.victim.latest(), of.left.latest(), why
		}
	}
	return nil, nil, ""
}

// extremes are, of the pods that were chosen, the last by some order, and of those
// that were left the first.
type extremes struct{ victim, left *candidate }

// include takes in a candidate, as it is best for the subject that it was in mind.
func (e *extremes) include(each *candidate, by func(a, b *pod) int) {
	switch {
	case each.deleted && (e.victim == nil || by(each.leastValued(), e.victim.leastValued()) > 0):
		e.victim = each
	case !each.deleted && (e.left == nil || by(each.mostValued(), e.left.mostValued()) < 0):
		e.left = each
	}
}

// leastValued is how the pod was in mind when it was worth least by its class, most
// when it was worth most.
func (c *candidate) leastValued() *pod {
	return slices.MinFunc(c.states, byClass).value
}

func byClass(a, b cachedVersion[*pod]) int { return a.value.compareClass(b.value) }

func (c *candidate) mostValued() *pod { return slices.MaxFunc(c.states, byClass).value }

func (c *candidate) latest() *pod { return c.states[len(c.states)-1].value }

// ageOrder says which ages decide about pods that are equal otherwise. Before them
// comes, for an owner that is a Deployment's, on which nodes the pods of all its
// ReplicaSets are: ages are not asked then (trap 20).
type ageOrder struct {
	ready   bool // for how long they are ready
	created bool // restarts, and for how long they exist
}

// decidingAges finds out. Pods that became ready at different times are compared by
// that alone; with a tie among others, a sort may come to either end, also over
// pods that are no candidates.
func (c *scaleDown) decidingAges(o *owner) ageOrder {
	if o == nil || o.controller.UID != "" {
		return ageOrder{}
	}
	var first *pod
	single := c.allPodsKnown
	for _, each := range c.candidates {
		p := each.latest()
		if first == nil {
			first = p
		}
		if !p.readySince.Equal(first.readySince) {
			return ageOrder{ready: true}
		}
		single = single && len(each.states) == 1
	}
	return ageOrder{created: single}
}

// orders are those by which pods of one class are compared.
func (a ageOrder) orders() []func(a, b *pod) int {
	switch {
	case a.ready:
		return []func(a, b *pod) int{func(a, b *pod) int { return b.readySince.Compare(a.readySince) }}
	case a.created:
		return []func(a, b *pod) int{
			func(a, b *pod) int { return cmp.Compare(b.restarts, a.restarts) },
			func(a, b *pod) int { return b.created.Compare(a.created) },
		}
	}
	return nil
}

// precedes says why one pod goes before another, however the two were in mind; ""
// if it need not.
func (c *scaleDown) precedes(one, other *candidate, ages ageOrder) string {
	why := ""
	for _, a := range one.states {
		for _, b := range other.states {
			if why = c.before(a.value, b.value, ages); why == "" {
				return ""
			}
		}
	}
	return why
}

// before says why a goes before b; "" if it need not.
func (c *scaleDown) before(a, b *pod, ages ageOrder) string {
	if order := a.compareClass(b); order != 0 {
		return a.classBefore(b, order)
	}
	switch {
	case ages.ready && a.ready:
		return c.younger(a.readySince, b.readySince, "has been ready")
	case ages.created && a.restarts != b.restarts:
		if a.restarts > b.restarts {
			return fmt.Sprintf("has restarted %d times, the other %d", a.restarts, b.restarts)
		}
	case ages.created:
		return c.younger(a.created, b.created, "has been there")
	}
	return ""
}

// class is what is asked of a pod before its ages.
type class struct {
	assigned bool
	phase    int
	ready    bool
	cost     int
}

func (p *pod) class() class { return class{p.assigned, p.phase, p.ready, p.cost} }

// compareClass orders two pods by class.
func (p *pod) compareClass(other *pod) int {
	return cmp.Or(
		compareBool(p.assigned, other.assigned),
		cmp.Compare(p.phase, other.phase),
		compareBool(p.ready, other.ready),
		cmp.Compare(p.cost, other.cost),
	)
}

// classBefore says why a pod is of a class that goes first; "" if it is not.
func (p *pod) classBefore(other *pod, order int) string {
	switch {
	case order > 0:
		return ""
	case p.assigned != other.assigned:
		return "is on no node yet"
	case p.phase != other.phase:
		return "is " + phases[p.phase]
	case p.ready != other.ready:
		return "is not ready"
	}
	return fmt.Sprintf("costs %d to delete, the other %d", p.cost, other.cost)
}

// ageRatio is how many times older one pod must be than another to be certainly
// of another class: classes are powers of two, and clocks differ a little.
const ageRatio = 2.5

// younger says so if a is of a younger class than b.
func (c *scaleDown) younger(a, b time.Time, has string) string {
	if a.IsZero() || b.IsZero() {
		return ""
	}
	young, old := c.now.Sub(a), c.now.Sub(b)
	if young < time.Second || float64(old) < ageRatio*float64(young) {
		return ""
	}
	return fmt.Sprintf("%s for %v, the other for %v", has, young.Round(time.Second), old.Round(time.Second))
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
