package explore

import (
	"bytes"
	"iter"
	"maps"
	"reflect"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Lesson is what gauntlet learns about the subject from the history of a run without faults. It has
// the writes of the subject and the watch events that the subject received, from the beginning of
// the chaos phase.
type Lesson struct {
	Writes []LearntWrite
	Events []LearntEvent
	// Observer has read the history. It knows the objects at the end, and whether a step failed.
	Observer *baseline.Observer

	commits []history.Version // versions of all commits, except leases and events
}

// LearntWrite is a write of the subject, with the watch events on which it may depend.
type LearntWrite struct {
	Write
	// Refused is true if the API server refused the write, and committed nothing.
	Refused bool
	// Changed is true if the write changed the object. It is false for a refused write, and for an
	// update with the content that the object already had.
	Changed bool
	// View has the watch events on which the write may depend, as indexes of Lesson.Events. For
	// each object that the written object refers to, or that refers to the written object, it has
	// the last event.
	View []int
	// Related are the keys of the objects whose last event is in View, and of the written object.
	Related []string

	object  string          // the key of the written object
	version history.Version // committed version; 0 if it is not known
	order   int64           // position in the history
}

// LearntEvent is a watch event that the subject received.
type LearntEvent struct {
	Event
	// Writes are the writes that may depend on the event, as indexes of Lesson.Writes: the event is
	// in their View.
	Writes []int
	// Related is true if the object of a write refers to the object of the event, or the other way
	// round.
	Related bool
	// Repeats is true if the event has the same content of the object as the version that the
	// subject had received before.
	Repeats bool
	// Late is true if the event arrived after the workload.
	Late bool
	// Next is the index of the next event of the same object, or -1.
	Next int

	object   string
	content  history.Object
	order    int64
	previous int // index of the event of the same object before this one, or -1
}

// learner reads a history. It is the state of [Learn].
type learner struct {
	lesson    Lesson
	known     *knownObjects
	begun     bool                      // the chaos phase has begun
	late      bool                      // the workload has ended
	pending   map[uint64]sentWrite      // by the ID of the request
	delivered map[string]map[string]int // by replica and key of the object: index of the last event, or -1 for a list
	lastEvent map[string]int            // by key of the object
	related   map[string]bool           // keys of objects to which a write refers
	requests  []*history.Request        // writes so far, for counting
	committed []*history.Request        // those of them that the API server committed
	events    []*history.Delivery       // events so far, for counting
}

// sentWrite is a write of the subject that has no response yet.
type sentWrite struct {
	index   int // in Lesson.Writes
	request *history.Request
}

// Learn reads the history of a run without faults. It leaves out leases, events and access
// reviews; see [history.Request.IsWrite].
func Learn(records iter.Seq2[*history.Record, error]) (*Lesson, error) {
	l := &learner{lesson: Lesson{Observer: baseline.NewObserver()}, known: newKnownObjects(), pending: map[uint64]sentWrite{}, delivered: map[string]map[string]int{}, lastEvent: map[string]int{}, related: map[string]bool{}}
	for record, err := range records {
		if err != nil {
			return nil, err
		}
		l.observe(record)
	}
	for i := range l.lesson.Writes {
		for _, event := range l.lesson.Writes[i].View {
			l.lesson.Events[event].Writes = append(l.lesson.Events[event].Writes, i)
		}
	}
	for i := range l.lesson.Events {
		l.lesson.Events[i].Related = l.related[l.lesson.Events[i].object]
	}
	slices.Sort(l.lesson.commits)
	return &l.lesson, nil
}

// observe reads the next record.
func (l *learner) observe(r *history.Record) {
	l.lesson.Observer.Observe(r)
	switch {
	case r.Phase != nil:
		l.begun = true
		l.late = r.Phase.Name != history.PhaseChaos
	case r.Commit != nil:
		l.commit(r.Commit)
	case r.List != nil:
		for i := range r.List.Items {
			l.known.set(&r.List.Items[i])
			l.deliveredTo(r.List.Subject)[r.List.Items[i].Ref.String()] = -1
		}
	case r.Delivery != nil && r.Delivery.Type.HasObject():
		l.deliver(r)
	case r.Request != nil && r.Request.IsWrite() && l.begun:
		l.send(r)
	case r.Response != nil:
		l.answer(r.Response)
	}
}

// commit records a committed version of an object.
func (l *learner) commit(c *history.Commit) {
	if !history.IsBookkeeping(c.Object.Resource) {
		l.lesson.commits = append(l.lesson.commits, c.Object.Version)
	}
	l.known.set(&c.Object)
	if c.Type != history.Deleted && !c.Object.Terminating() {
		return
	}
	// The response to a delete may have no version, so take that of the commit.
	for i := range slices.Backward(l.lesson.Writes) {
		if w := &l.lesson.Writes[i]; w.Verb == "delete" && w.object == c.Object.Ref.String() && w.version == 0 {
			w.version = c.Object.Version
			return
		}
	}
}

// deliveredTo returns the last event of each object that a replica has received. The keys are those
// of the objects, and the values are indexes of Lesson.Events, or -1 after a list.
func (l *learner) deliveredTo(replica string) map[string]int {
	if l.delivered[replica] == nil {
		l.delivered[replica] = map[string]int{}
	}
	return l.delivered[replica]
}

// deliver records a watch event that the subject received.
func (l *learner) deliver(r *history.Record) {
	d := r.Delivery
	key := d.Object.Ref.String()
	previous := l.known.content(key, d.Subject)
	l.known.set(&d.Object)
	l.known.received(key, d.Subject, &d.Object)
	if history.IsBookkeeping(d.Resource) || !l.begun {
		l.deliveredTo(d.Subject)[key] = -1
		return
	}
	event := Event{Resource: d.Resource, Type: d.Type, Name: d.Object.StableName()}
	l.events = append(l.events, d)
	for _, earlier := range l.events {
		if earlier.Resource == event.Resource && earlier.Type == event.Type && history.MatchGlob(event.Name, earlier.Object.Name) {
			event.Nth++
		}
	}
	index := len(l.lesson.Events)
	learnt := LearntEvent{Event: event, Next: -1, previous: -1, object: key, content: d.Object, Late: l.late, order: r.Seq}
	learnt.Repeats = d.Type != history.Deleted && previous != nil && sameContent(previous, &d.Object)
	if last, ok := l.lastEvent[key]; ok {
		l.lesson.Events[last].Next, learnt.previous = index, last
	}
	l.lastEvent[key] = index
	l.lesson.Events = append(l.lesson.Events, learnt)
	l.deliveredTo(d.Subject)[key] = index
}

// send records a write of the subject, and the events on which the write may depend.
func (l *learner) send(r *history.Record) {
	request := r.Request
	object := l.known.target(request)
	w := LearntWrite{Write: Write{Verb: request.Verb, Resource: request.Resource, Subresource: request.Subresource, Name: requestName(request, object)}, order: r.Seq}
	l.requests = append(l.requests, request)
	w.Nth = w.count(l.requests)
	w.object = object.Ref.String()
	if request.Object != nil {
		w.version = request.Object.Version // until the response
	}
	roots := l.known.roots(object)
	related := map[string]bool{w.object: true}
	delivered := l.deliveredTo(request.Subject)
	for _, key := range slices.Sorted(maps.Keys(delivered)) {
		if !l.known.refers(roots, key) {
			continue
		}
		related[key], l.related[key] = true, true
		if delivered[key] >= 0 {
			w.View = append(w.View, delivered[key])
		}
	}
	w.Related = slices.Sorted(maps.Keys(related))
	l.pending[request.ID] = sentWrite{len(l.lesson.Writes), request}
	l.lesson.Writes = append(l.lesson.Writes, w)
}

// answer records the response to a write: whether the write was refused, and whether it changed the
// object.
func (l *learner) answer(r *history.Response) {
	sent, ok := l.pending[r.ID]
	if !ok {
		return
	}
	w := &l.lesson.Writes[sent.index]
	before := w.version
	w.version = 0
	w.Refused = r.ServerCode < 200 || r.ServerCode > 299
	w.Changed = !w.Refused
	if !w.Refused {
		l.committed = append(l.committed, sent.request)
		w.Committed = w.count(l.committed)
	}
	if r.Object != nil && !w.Refused {
		l.known.set(r.Object)
		if r.Object.Name != "" {
			w.object = r.Object.Ref.String()
		}
		if w.Verb != "delete" {
			w.version = r.Object.Version
			w.Changed = before == 0 || r.Object.Version != before
		}
	}
}

// sameContent reports whether two versions of an object differ only in the version.
func sameContent(a, b *history.Object) bool {
	left, right := *a, *b
	left.Version, right.Version = 0, 0
	same := bytes.Equal(left.Body, right.Body)
	left.Body, right.Body = nil, nil
	return same && reflect.DeepEqual(left, right)
}

// requestName returns a glob that matches the name of the written object in every run of the
// scenario.
func requestName(r *history.Request, object *history.Object) string {
	if name := r.ObjectName(); name != object.Name || object.GenerateName == "" {
		return name // also the prefix of a create without a name
	}
	return object.StableName()
}
