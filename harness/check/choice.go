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

// This file judges which pods a controller deletes when an owner has too many.

// choiceJudge: of an owner's pods, those that a scale-down leaves do not come
// before one that it deletes, in any way that the process may have had the two
// in mind when it chose.
//
// A choice is judged when it is surely over: at the first delete after a status
// of the owner, or once the process is idle. One that the process did not live to
// carry out is not judged, nor one of which fewer pods were deleted than were too
// many: the machine may stand still in the middle of it.
type choiceJudge struct {
	findings
	choices perLedger[choosing]
	pending map[*ledger]bool // those with a choice that is yet to be judged
}

// choosing is what is kept of an owner.
type choosing struct {
	// answered is when a call was last answered that ends a round, or stands in
	// no round that deletes: whatever is chosen later is chosen after it.
	answered time.Duration
	// made is the pods that the process was told it made: it deletes none before
	// it has been shown them all.
	made    map[types.UID]bool
	present *choice
}

// choice is one scale-down.
type choice struct {
	first, last int64         // the records of the first and of the latest delete
	lastAt      time.Duration // when the latest was sent
	now         time.Time     // when the first was, by the clock on the wall
	candidates  map[types.UID]*candidate
	whole       bool // every pod of the owner is a candidate
	// excess is how many pods were too many at the most, sent which were deleted.
	excess int
	sent   map[types.UID]bool
}

// candidate is a pod that the owner controlled all the while.
type candidate struct {
	states []shown[*pod] // how it may have been in mind, oldest first
	chosen bool
}

func newChoice(Settings) Checker { return &choiceJudge{pending: map[*ledger]bool{}} }

func (j *choiceJudge) Observe(m *Model, _ *history.Record) {
	if m.roused != nil {
		j.judgeAll(m, func(l *ledger) bool { return l.process == m.roused })
	}
	if m.phase == history.PhaseEnd {
		j.judgeAll(m, func(l *ledger) bool {
			p := l.process
			return p.working == 0 && m.now-m.behind(p.name)-p.lastAt >= p.rest && !p.napping(m.at)
		})
	}
	if c := m.sent; c != nil && c.verb == callDelete && c.ledger != nil && c.hitsActive() {
		j.deletes(m, c)
	}
	if a := m.answered; a != nil && a.ledger != nil && (a.verb == callCreate || a.verb == callStatus) {
		j.choices.of(a.ledger).note(m.at, a)
	}
}

// note takes in the answer to a call that is no delete.
func (k *choosing) note(at time.Duration, a *answer) {
	k.answered = at
	if a.verb != callCreate || !a.response.OK() || a.response.Object == nil {
		return
	}
	if k.made == nil {
		k.made = map[types.UID]bool{}
	}
	k.made[a.response.Object.UID] = true
}

// deletes takes in a delete: the first of a choice, or one more.
func (j *choiceJudge) deletes(m *Model, c *call) {
	kept := j.choices.of(c.ledger)
	switch again := c.ledger.deletes.awaits(c) == 0 && len(c.ledger.deletes.unseen) == 0; {
	case kept.present == nil || again && kept.answered > kept.present.lastAt:
		j.judge(m, c.ledger)
		kept.present = newChoiceOf(m, c, kept)
		j.pending[c.ledger] = true
	case again: // more of the same choice, or another one
		kept.present.renew(c.process.view)
	}
	kept.present.last, kept.present.lastAt = c.seq, m.at
	kept.present.sent[c.pod.UID] = true
	if picked := kept.present.candidates[c.pod.UID]; picked != nil {
		picked.chosen = true
	}
}

// newChoiceOf is a choice that begins with that delete. It may date from when the
// process last did something else for the owner, or, if that is long ago, from as
// long ago as its rate limit may hold back a call.
func newChoiceOf(m *Model, c *call, kept *choosing) *choice {
	l := c.ledger
	chosen := &choice{first: c.seq, now: m.start.Time.Add(m.now), candidates: map[types.UID]*candidate{}, whole: true,
		excess: min(l.tally.claimable()-l.floor.recent.bounds(m.at).low, burstLimit), sent: map[types.UID]bool{},
	}
	o := l.owner()
	if o == nil || l.reselected {
		return chosen
	}
	from := max(m.at-l.process.drain, kept.answered-lag)
	maps.DeleteFunc(kept.made, func(uid types.UID, _ bool) bool { return l.process.view.pods[uid] == nil })
	for uid, p := range l.process.view.controlled[l.uid] {
		states := recent(l.process.view.standings[uid], from)
		known := states[0].since <= from || kept.made[uid] && l.credit == 0
		if !known || !all(states, func(s shown[*pod]) bool { return o.manages(s.value) }) {
			chosen.whole = chosen.whole && !p.active
			continue
		}
		chosen.candidates[p.UID] = &candidate{states: states}
	}
	return chosen
}

// renew adds how the candidates stand by now to how they may be in mind.
func (c *choice) renew(v *view) {
	for uid, each := range c.candidates {
		for _, s := range v.standings[uid] {
			if s.since > each.states[len(each.states)-1].since {
				each.states = append(each.states[:len(each.states):len(each.states)], s)
			}
		}
	}
}

// manages reports whether a pod counts for the owner.
func (o *owner) manages(p *pod) bool {
	return p.active && p.controller.UID == o.UID && o.selector.Matches(p.labels)
}

func (j *choiceJudge) judgeAll(m *Model, such func(*ledger) bool) {
	for l := range j.pending {
		switch {
		case l.process.ended:
			delete(j.pending, l)
		case such(l):
			j.judge(m, l)
		}
	}
}

// judge judges the choice that was last made for an owner.
func (j *choiceJudge) judge(m *Model, l *ledger) {
	delete(j.pending, l)
	kept := j.choices.of(l)
	chosen := kept.present
	kept.present = nil
	if chosen == nil || len(chosen.sent) < chosen.excess {
		return // the rest may yet be deleted, or never have come as far as the proxy
	}
	victim, left, why := chosen.mistake(l.owner())
	if chosen.open() {
		j.tested++
	}
	if victim == nil {
		return
	}
	j.violate(func() Evidence {
		return Evidence{
			Summary:  fmt.Sprintf("%s: %s deleted pod %s and left %s, which %s", l.name(), l.process.name, victim.Name, left.Name, why),
			Expected: "the pod that is worth less to go first",
			Object:   podIn(victim),
			At:       m.now,
			Records:  []int64{chosen.first, chosen.last},
		}
	})
}

// open reports whether there was anything to choose.
func (c *choice) open() bool {
	chosen, left := 0, 0
	for _, each := range c.candidates {
		if each.chosen {
			chosen++
		} else {
			left++
		}
	}
	return chosen > 0 && left > 0
}

// mistake finds a pod that was chosen and one that was left though it comes
// first, and says why it does. It compares only the ends of each order: the one
// that was left and comes first of those, with the one that was chosen and comes
// last.
func (c *choice) mistake(o *owner) (victim, left *pod, why string) {
	ages := c.byAge(o)
	orders := ages.orders()
	type group struct {
		class class
		order int
	}
	byRank, within := &ends{}, map[group]*ends{}
	for _, each := range c.candidates {
		byRank.take(each, (*pod).compareClass)
		if len(each.states) > 1 {
			continue // of which class it was taken to be is not to be told
		}
		for i, by := range orders {
			of := group{each.latest().class(), i}
			if within[of] == nil {
				within[of] = &ends{}
			}
			within[of].take(each, by)
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

// ends are, of the pods that were chosen, the last by some order, and of those
// that were left the first.
type ends struct{ victim, left *candidate }

// take takes in a candidate, as it is best for the subject that it was in mind.
func (e *ends) take(each *candidate, by func(a, b *pod) int) {
	switch {
	case each.chosen && (e.victim == nil || by(each.least(), e.victim.least()) > 0):
		e.victim = each
	case !each.chosen && (e.left == nil || by(each.most(), e.left.most()) < 0):
		e.left = each
	}
}

// least is how the pod was in mind when it was worth least by its class, most
// when it was worth most.
func (c *candidate) least() *pod {
	return slices.MinFunc(c.states, byClass).value
}

func byClass(a, b shown[*pod]) int { return a.value.compareClass(b.value) }

func (c *candidate) most() *pod { return slices.MaxFunc(c.states, byClass).value }

func (c *candidate) latest() *pod { return c.states[len(c.states)-1].value }

// byAge says which ages decide about pods that are equal otherwise. Before them
// comes, for an owner that is a Deployment's, on which nodes the pods of all its
// ReplicaSets are: ages are not asked then (trap 20).
type byAge struct {
	ready   bool // for how long they are ready
	created bool // restarts, and for how long they exist
}

// byAge finds out. Pods that became ready at different times are compared by
// that alone; with a tie among others, a sort may come to either end, also over
// pods that are no candidates.
func (c *choice) byAge(o *owner) byAge {
	if o == nil || o.controller.UID != "" {
		return byAge{}
	}
	var first *pod
	single := c.whole
	for _, each := range c.candidates {
		p := each.latest()
		if first == nil {
			first = p
		}
		if !p.readySince.Equal(first.readySince) {
			return byAge{ready: true}
		}
		single = single && len(each.states) == 1
	}
	return byAge{created: single}
}

// orders are those by which pods of one class are compared.
func (a byAge) orders() []func(a, b *pod) int {
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
func (c *choice) precedes(one, other *candidate, ages byAge) string {
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
func (c *choice) before(a, b *pod, ages byAge) string {
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
func (c *choice) younger(a, b time.Time, has string) string {
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
