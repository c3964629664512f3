package explore

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Plan has the places at which a search injects faults, in order. It also has the number of places
// that the search does not try (prunes), because a fault there cannot matter.
type Plan struct {
	// Baseline is what the runs without faults have in common. A run with faults fails if it
	// differs from the baseline. A user may edit the baseline in plan.json.
	Baseline *baseline.Baseline `json:"baseline"`
	Places   []Place            `json:"places"`
	Pruned   []Pruned           `json:"pruned,omitempty"`
}

// Pruned is a number of places at which the search injects no fault. All these places have the
// same action and the same reason.
type Pruned struct {
	Action Action `json:"action"`
	Reason string `json:"reason"`
	Places int    `json:"places"`
}

// validate returns an error if a plan from plan.json has a missing or invalid field. Users may edit
// this file.
func (p *Plan) validate() error {
	if p.Baseline == nil {
		return errors.New("field baseline: found no value; expected what the runs without faults have in common")
	}
	if err := p.Baseline.Validate(); err != nil {
		return fmt.Errorf("field baseline: %w", err)
	}
	first := map[string]int{}
	for i := range p.Places {
		if err := p.Places[i].validate(); err != nil {
			return fmt.Errorf("field places[%d]%w", i, err)
		}
		key, err := json.Marshal(p.Places[i])
		if err != nil {
			return err
		}
		if at, exists := first[string(key)]; exists {
			return fmt.Errorf("field places[%d]: found the same place as in places[%d]; expected each place once", i, at)
		}
		first[string(key)] = i
	}
	return nil
}

// planner decides for each possible place of a fault whether the search tries the place.
type planner struct {
	resources []string  // the resources that a fault of the scenario may name
	lesson    *Lesson   // the lesson of the first run without faults
	others    []*Lesson // the lessons of the other runs without faults
	kept      []Place
	pruned    map[Pruned]int // the number of pruned places; the key has the action and the reason, and its Places is 0
}

// These are the reasons for which the search injects no fault at a place (a write or a watch
// event). The plan prints them.
const (
	notRepeated  = "the place is not in every run without faults"
	unnameable   = "no fault can name %s; add its kind to operator.kinds of the scenario"
	refusedWrite = "the API server refused the write, so that it committed nothing"
	unchanged    = "the write changed nothing"
	sameState    = "the crash after the previous write leaves the same committed state"
	repeats      = "the event shows the subject nothing new"
	afterwards   = "the event arrives after the workload"
	unrelated    = "no write of the subject refers to the object, and the object refers to no written one"
	superseded   = "the subject sends no write between the event and the next event of the same object"
	last         = "the event is the last one of the object, so that the subject must receive it"
	ownAnswer    = "the next version of the object is the subject's own write in answer to the event"
	current      = "the object does not change before a later write, so that the subject would restart with current objects"
	withoutLater = "the subject does not write the same object again, and nobody creates the object again that the subject deletes"
)

// NewPlan returns the plan of a search. The plan has the places that the search tries, and the
// numbers of places that it prunes. The lessons are what runs without faults show about the
// controllers under test. The argument resources has the resources that a fault of the scenario may
// name.
func NewPlan(resources []string, actions []Action, lessons []*Lesson) *Plan {
	p := &planner{resources: resources, lesson: lessons[0], others: lessons[1:], pruned: map[Pruned]int{}}
	for _, action := range actions {
		switch action {
		case CrashBefore, Crash, Lost, Refused, Late:
			p.addWrites(action)
		case Held, Skipped:
			p.addEvents(action)
		case Stale:
			p.addStale()
		}
	}
	plan := &Plan{Baseline: baselineOf(lessons), Places: roundRobin(p.kept, actions)}
	for key, n := range p.pruned {
		key.Places = n
		plan.Pruned = append(plan.Pruned, key)
	}
	sortPruned(plan.Pruned)
	return plan
}

// baselineOf returns what the runs without faults have in common. Each lesson is that of one run.
func baselineOf(lessons []*Lesson) *baseline.Baseline {
	var observers []*baseline.Observer
	for _, l := range lessons {
		observers = append(observers, l.Observer)
	}
	return baseline.Combine(observers)
}

// add adds a place to the plan, unless a fault at the place cannot matter. The argument reason says
// why it cannot matter, or is "". If reason is "", the method add looks for such a reason itself.
// If there is a reason, add counts the place as pruned instead.
func (p *planner) add(place Place, reason string) {
	if reason == "" {
		switch resource := place.unnameable(p.resources); {
		case resource != "":
			reason = fmt.Sprintf(unnameable, resource)
		case slices.ContainsFunc(p.others, func(l *Lesson) bool { return !l.has(place) }):
			reason = notRepeated
		}
	}
	if reason != "" {
		p.pruned[Pruned{Action: place.Action, Reason: reason}]++
		return
	}
	p.kept = append(p.kept, place)
}

// unnameable returns the resource of the place's event or write that no fault can name. The argument has the
// resources that faults can name. The result is "" if it has both.
func (p *Place) unnameable(resources []string) string {
	if p.Event != nil && !slices.Contains(resources, p.Event.Resource) {
		return p.Event.Resource
	}
	if p.Write != nil && !slices.Contains(resources, p.Write.Resource) {
		return p.Write.Resource
	}
	return ""
}

// has reports whether a run without faults contains the write and the watch event of a place.
// Because of timing, another run may lack one of the two, and a fault at this place then never
// fires.
func (l *Lesson) has(p Place) bool {
	return (p.Write == nil || slices.ContainsFunc(l.Writes, func(w LearntWrite) bool { return w.Write == *p.Write })) &&
		(p.Event == nil || slices.ContainsFunc(l.Events, func(e LearntEvent) bool { return e.Event == *p.Event }))
}

// addWrites adds a place with the given action for each write of the controllers under test. It
// counts a place as pruned if a fault at the write cannot matter, for example because the API
// server refused the write.
func (p *planner) addWrites(action Action) {
	previous := history.Version(0) // the resourceVersion that the last changing write committed
	for i := range p.lesson.Writes {
		w := &p.lesson.Writes[i]
		reason := ""
		switch {
		case w.Refused:
			reason = refusedWrite
		case !w.Changed:
			reason = unchanged
		case action == CrashBefore && p.lesson.follows(previous, w.version):
			reason = sameState
		}
		p.add(Place{Action: action, Write: &w.Write, Object: w.object, Related: w.Related, Order: w.order}, reason)
		if w.Changed {
			previous = w.version
		}
	}
}

// follows reports whether etcd committed no other version between the two given versions. A crash
// before the later write then finds the same state as a crash after the earlier write. follows
// returns false if the argument version is 0 or no known version.
func (l *Lesson) follows(before, version history.Version) bool {
	i, ok := slices.BinarySearch(l.commits, version)
	return ok && i > 0 && l.commits[i-1] == before
}

// addEvents adds a place with the given action for each watch event that the controllers under test
// received. It counts a place as pruned if a fault at the event cannot matter, for example because
// no write depends on the event.
func (p *planner) addEvents(action Action) {
	for i := range p.lesson.Events {
		e := &p.lesson.Events[i]
		reason := e.cannotMatter()
		switch {
		case reason != "" || action != Skipped:
		case e.Next < 0:
			reason = last
		case p.lesson.causes(e, &p.lesson.Events[e.Next]):
			reason = ownAnswer
		}
		p.add(Place{Action: action, Event: &e.Event, Object: e.object, Related: []string{e.object}, Order: e.order}, reason)
	}
}

// causes reports whether the second event shows what the controllers under test wrote because of the
// first one. The second event never happens without the first.
func (l *Lesson) causes(first, second *LearntEvent) bool {
	return slices.ContainsFunc(first.Writes, func(i int) bool {
		return l.Writes[i].version != 0 && l.Writes[i].version == second.content.Version
	})
}

// cannotMatter returns the reason why no write of the controllers under test depends on the event.
// It returns "" if a write may depend on the event.
func (e *LearntEvent) cannotMatter() string {
	switch {
	case e.Late:
		return afterwards
	case e.Repeats:
		return repeats
	case !e.Related:
		return unrelated
	case len(e.Writes) == 0:
		return superseded
	}
	return ""
}

// addStale adds places with the action stale. At such a place, the controllers restart and list
// outdated objects, so that they may repeat a write.
//
// A place needs a watch event on which the repeated write depends, and a later write; see
// laterWrites. The restart follows the later write, and the list shows the objects as they were at
// the event.
func (p *planner) addStale() {
	for i := range p.lesson.Events {
		e := &p.lesson.Events[i]
		place := Place{Action: Stale, Event: &e.Event, Object: e.object, Related: []string{e.object}, Order: e.order}
		if reason := e.cannotMatter(); reason != "" {
			p.add(place, reason)
			continue
		}
		later := p.lesson.laterWrites(e)
		if len(later) == 0 {
			p.add(place, withoutLater)
		}
		for _, w := range later {
			with := place
			with.Write, with.Order = &w.Write, w.order
			reason := ""
			if e.Next < 0 || p.lesson.Events[e.Next].order > w.order {
				reason = current
			}
			p.add(with, reason)
		}
	}
}

// laterWrites returns the writes after which a restarted controller may repeat an earlier write. The
// earlier write depends on the event e, and the controller lists the objects as they were at that
// event. The result contains:
//
//   - each later write that changes the same object again
//   - if somebody creates an object again that the controller deleted: the last write before that,
//     which may cause the creation, and the first write after it. An example is the
//     PersistentVolumeClaim of a StatefulSet that was deleted and created again.
func (l *Lesson) laterWrites(e *LearntEvent) []*LearntWrite {
	objects, beside := map[string]bool{}, l.besideCreations(e)
	var later []*LearntWrite
	for i := e.Writes[0]; i < len(l.Writes); i++ {
		w := &l.Writes[i]
		if !w.Changed {
			continue
		}
		if objects[w.object] || beside[i] {
			later = append(later, w)
		}
		if slices.Contains(e.Writes, i) {
			objects[w.object] = true
		}
	}
	return later
}

// besideCreations returns writes next to the creation of an object that the controller had deleted.
// The controller had deleted the object because of the event e. For each such object, the result has
// the last write before the creation and the first one after it, as indexes of l.Writes. A creation
// by the controller itself does not count.
func (l *Lesson) besideCreations(e *LearntEvent) map[int]bool {
	beside := map[int]bool{}
	for _, i := range e.Writes {
		deletion := &l.Writes[i]
		at := slices.IndexFunc(l.created[deletion.object], func(at int64) bool { return at > deletion.order })
		if deletion.Verb != "delete" || !deletion.Changed || at < 0 {
			continue
		}
		before, after := l.changesAround(i, l.created[deletion.object][at])
		for _, n := range []int{before, after} {
			if n >= 0 && (n == after || l.Writes[n].Verb != "create" || l.Writes[n].object != deletion.object) {
				beside[n] = true
			}
		}
	}
	return beside
}

// changesAround returns the last write before a position in the history, and the first one after it.
// It considers only writes after the given one that changed an object. Both results are indexes of
// l.Writes, or -1.
func (l *Lesson) changesAround(write int, at int64) (before, after int) {
	before, after = -1, -1
	for n := write + 1; n < len(l.Writes); n++ {
		switch w := &l.Writes[n]; {
		case !w.Changed:
		case w.order < at:
			before = n
		default:
			return before, n
		}
	}
	return before, after
}

// roundRobin orders the places so that even a small budget tries places of every action. It takes one
// place of each action in turn, in the order of the argument actions. Among the places of one action,
// the order is that of breadthFirst. The actions must include those of all places.
func roundRobin(places []Place, actions []Action) []Place {
	byAction := map[Action][]Place{}
	for _, p := range places {
		byAction[p.Action] = append(byAction[p.Action], p)
	}
	for _, own := range byAction {
		breadthFirst(own)
	}
	order := make([]Place, 0, len(places))
	for round := 0; len(order) < len(places); round++ {
		for _, action := range actions {
			if own := byAction[action]; round < len(own) {
				order = append(order, own[round])
			}
		}
	}
	return order
}

// breadthFirst sorts places of one action. The first place of each sort comes first, then the
// second place of each sort, and so on. Two places are of the same sort if they have the same
// resource, and the same verb or event type.
func breadthFirst(places []Place) {
	counts, rank := map[string]int{}, map[string]int{}
	for _, p := range places {
		rank[p.String()] = counts[p.sort()]
		counts[p.sort()]++
	}
	slices.SortStableFunc(places, func(a, b Place) int { return cmp.Compare(rank[a.String()], rank[b.String()]) })
}

// sort returns a text that is equal for all places of the same action and sort. It contains the
// resource, and the verb or event type; see [breadthFirst].
func (p *Place) sort() string {
	sort := ""
	if p.Event != nil {
		sort += fmt.Sprintf(" %s %s", p.Event.Type, p.Event.Resource)
	}
	if p.Write != nil {
		sort += fmt.Sprintf(" %s %s %s", p.Write.Verb, p.Write.Resource, p.Write.Subresource)
	}
	return sort
}

// singles returns one trial (run with faults) for each place. The trial injects only the faults of
// this place.
func singles(places []Place) []trial {
	var all []trial
	for _, p := range places {
		all = append(all, trial{p})
	}
	return all
}

// pairPlan has the pairs of places at which a search injects two faults in one run. It also has the
// number of pairs that the search does not try. A place is a write or a watch event with a fault.
type pairPlan struct {
	trials []trial
	pruned []Pruned // the Action of each is empty, because a pair has two actions
}

// These are the reasons for which the search does not combine the faults at two places (writes or
// watch events).
const (
	oneFailed     = "the fault at one of the two places causes a failure without the other fault"
	oneNotReached = "the fault at one of the two places did not fire"
	hasStale      = "one of the two faults is stale, which is a combination of faults"
	samePoint     = "both faults are at the same write or event"
	independent   = "the later write or event does not depend on the object of the earlier one"
)

// newPairPlan returns the pairs of places at which one trial injects two faults. A place is a write
// or a watch event. The argument results has the results of trials with one fault.
//
// In each pair, the second place depends on the object of the first. For example, the controllers
// had received this object before the second write, and it is the owner of the written one.
func newPairPlan(places []Place, results map[string]result) *pairPlan {
	plan := &pairPlan{}
	counts := map[string]int{}
	for distance := 1; distance < len(places); distance++ {
		for i := range len(places) - distance {
			first, second := places[i], places[i+distance]
			if first.Order > second.Order {
				first, second = second, first
			}
			if reason := pruneReason(first, second, results); reason != "" {
				counts[reason]++
				continue
			}
			plan.trials = append(plan.trials, trial{first, second})
		}
	}
	for reason, n := range counts {
		plan.pruned = append(plan.pruned, Pruned{Reason: reason, Places: n})
	}
	sortPruned(plan.pruned)
	return plan
}

// pruneReason returns why no trial combines the faults at two places, or "" if one does. The
// argument results has the results of trials with one fault.
func pruneReason(first, second Place, results map[string]result) string {
	alone := []result{results[trial{first}.id()], results[trial{second}.id()]}
	switch {
	case first.Action == Stale || second.Action == Stale:
		return hasStale
	case slices.ContainsFunc(alone, result.failed):
		return oneFailed
	case slices.ContainsFunc(alone, func(r result) bool { return !r.Fired }):
		return oneNotReached
	case first.Order == second.Order:
		return samePoint
	case !slices.Contains(second.Related, first.Object):
		return independent
	}
	return ""
}

// String says how many pairs of places there are, how many of them the search does not try, and
// why. A place is a write or a watch event with a fault.
func (p *pairPlan) String() string {
	total := len(p.trials)
	var lines []string
	for _, pruned := range p.pruned {
		total += pruned.Places
		lines = append(lines, fmt.Sprintf("  pruned %4d  %s", pruned.Places, pruned.Reason))
	}
	head := fmt.Sprintf("found %d pairs of places; pruned %d; %d left to try", total, total-len(p.trials), len(p.trials))
	return strings.Join(append([]string{head}, lines...), "\n")
}

// sortPruned sorts the counts of places at which the search injects no fault: by action, and then
// largest first.
func sortPruned(pruned []Pruned) {
	slices.SortFunc(pruned, func(a, b Pruned) int {
		return cmp.Or(cmp.Compare(slices.Index(Actions, a.Action), slices.Index(Actions, b.Action)), cmp.Compare(b.Places, a.Places), cmp.Compare(a.Reason, b.Reason))
	})
}

// String says at how many places (writes and watch events) the search injects faults. It also says
// how many places it does not try, and for which reasons.
func (p *Plan) String() string {
	total, byAction := len(p.Places), map[Action]int{}
	for _, place := range p.Places {
		byAction[place.Action]++
	}
	var lines []string
	for _, pruned := range p.Pruned {
		total += pruned.Places
		lines = append(lines, fmt.Sprintf("  pruned %4d  %s: %s", pruned.Places, pruned.Action, pruned.Reason))
	}
	var kept []string
	for _, action := range slices.SortedFunc(maps.Keys(byAction), func(a, b Action) int {
		return cmp.Compare(slices.Index(Actions, a), slices.Index(Actions, b))
	}) {
		kept = append(kept, fmt.Sprintf("%d %s", byAction[action], action))
	}
	head := fmt.Sprintf("found %d places in %d runs without faults; pruned %d; %d left to try", total, p.Baseline.Runs, total-len(p.Places), len(p.Places))
	if len(kept) > 0 {
		head += " (" + strings.Join(kept, ", ") + ")"
	}
	return strings.Join(append([]string{head}, lines...), "\n")
}
