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

// Lesson is what gauntlet learns about the subject (the controllers under test) from a run without
// faults. It has the subject's writes and the watch events that the subject received, from the
// beginning of the chaos phase.
type Lesson struct {
	Writes []LearntWrite
	Events []LearntEvent
	// Observer is an observer that has read the whole history. It knows which objects existed at
	// the end, and whether a step failed.
	Observer *baseline.Observer

	commits []history.Version  // the resourceVersions of all commits in order, except those of leases and Events
	created map[string][]int64 // by key of an object: the positions of its creations in the history, ascending
}

// LateStep describes the last step that was late in the run. It is empty if there was none, or if the lesson
// is nil because the history could not be read.
func (l *Lesson) LateStep() string {
	if l == nil {
		return ""
	}
	return l.Observer.LateStep
}

// LearntWrite is a write of the controllers under test, with the watch events on which the write
// may depend.
type LearntWrite struct {
	Write
	// Refused is true if the API server refused the write, so that nothing was committed.
	Refused bool
	// Changed is true if the write changed the object. It is false for a refused write, and for an
	// update that writes what the object already contained.
	Changed bool
	// View has the watch events on which the write may depend, as indexes of Lesson.Events. For
	// each object in Related, it has the last event that the writing replica had received. It has
	// no event for an object that the replica received only in a list.
	View []int
	// Related has the keys of the objects on which the write may depend. A key is the object's
	// resource, namespace and name. Besides the written object, these are objects that the replica
	// had received before the write, and that satisfy one of two conditions:
	//
	//   - The object refers to the written object or to an owner of the written object. An example
	//     is a pod of a written ReplicaSet.
	//   - The written object or an owner of it refers to the object.
	//
	// See [knownObjects.roots].
	Related []string

	object  string          // the key of the written object
	version history.Version // the resourceVersion that the write committed; 0 if it is not known
	order   int64           // the position of the write in the history
}

// LearntEvent is a watch event that the controllers under test received, with the writes that may
// depend on the event.
type LearntEvent struct {
	Event
	// Writes has the writes that may depend on the event, as indexes of Lesson.Writes. The field
	// View of each of these writes contains the event.
	Writes []int
	// Related is true if at least one write of the controllers under test may depend on the event's
	// object. The write may depend on another version of the object than the one in this event.
	Related bool
	// Repeats is true if the event shows the controller nothing new. The object then has the same
	// content as in the previous event that the same replica received for the object.
	Repeats bool
	// Late is true if the event arrived after the end of the workload.
	Late bool
	// Next is the index in Lesson.Events of the next event of the same object, or -1.
	Next int

	object   string         // the key of the event's object
	content  history.Object // the object in the version that the event contains
	order    int64          // the position of the event in the history
	previous int            // the index of the previous event of the same object, or -1
}

// learner reads a history record by record and builds a [Lesson]: what the run shows about the
// controllers under test.
type learner struct {
	lesson    Lesson
	known     *knownObjects
	begun     bool                      // true after the chaos phase of the run began
	late      bool                      // true after the workload of the run ended
	pending   map[uint64]sentWrite      // the writes without a response, by request ID
	delivered map[string]map[string]int // by replica and key of an object: the index of the last event, or -1 after a list
	lastEvent map[string]int            // by key of an object: the index of the last event that any replica received
	related   map[string]bool           // the keys of the objects on which a write may depend
	requests  []*history.Request        // the writes so far; needed to compute Write.Nth
	committed []*history.Request        // the writes that the API server committed; needed to compute Write.Committed
	events    []*history.Delivery       // the events so far; needed to compute Event.Nth
}

// sentWrite is a write of the controllers under test for which no response has been read yet.
type sentWrite struct {
	index   int // the index of the write in Lesson.Writes
	request *history.Request
}

// Learn reads the history of a run without faults, and returns the [Lesson] of this run. The lesson
// has the writes that the controllers under test sent, and the watch events that they received. It
// also says which writes may depend on which events. Learn ignores writes of leases, Events and
// access reviews; see [history.Request.IsWrite]. It returns an error only if the history cannot be
// read.
func Learn(records iter.Seq2[*history.Record, error]) (*Lesson, error) {
	l := &learner{lesson: Lesson{Observer: baseline.NewObserver(), created: map[string][]int64{}}, known: newKnownObjects(), pending: map[uint64]sentWrite{}, delivered: map[string]map[string]int{}, lastEvent: map[string]int{}, related: map[string]bool{}}
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

// observe reads the next record of the history, and adds what happened in this record to the
// lesson. The lesson gets the writes of the controllers under test, and the watch events that they
// received.
func (l *learner) observe(r *history.Record) {
	l.lesson.Observer.Observe(r)
	switch {
	case r.Phase != nil:
		l.begun = true
		l.late = r.Phase.Name != history.PhaseChaos
	case r.Commit != nil:
		if r.Commit.Type == history.Added {
			key := r.Commit.Object.Ref.String()
			l.lesson.created[key] = append(l.lesson.created[key], r.Seq)
		}
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

// commit stores the committed version of an object in l.known. From these versions, the learner
// finds out which objects refer to each other. commit also adds the resourceVersion to the commits
// of the lesson.
//
// The response to a delete may lack the resourceVersion of the deletion. If the object is
// terminating or deleted, commit therefore gives its resourceVersion to the last such delete of the
// object.
func (l *learner) commit(c *history.Commit) {
	if !history.IsBookkeeping(c.Object.Resource) {
		l.lesson.commits = append(l.lesson.commits, c.Object.Version)
	}
	l.known.set(&c.Object)
	if c.Type != history.Deleted && !c.Object.Terminating() {
		return
	}
	// The response to a delete may have no resourceVersion. The write then gets the
	// resourceVersion of this commit.
	for i := range slices.Backward(l.lesson.Writes) {
		if w := &l.lesson.Writes[i]; w.Verb == "delete" && w.object == c.Object.Ref.String() && w.version == 0 {
			w.version = c.Object.Version
			return
		}
	}
}

// deliveredTo returns the last watch event that a replica of the controllers under test has
// received for each object. The map's keys identify objects, and the values are indexes of
// Lesson.Events. The value is -1 if no event in the lesson delivered the object, for example
// because a list did.
func (l *learner) deliveredTo(replica string) map[string]int {
	if l.delivered[replica] == nil {
		l.delivered[replica] = map[string]int{}
	}
	return l.delivered[replica]
}

// deliver adds a watch event that the controllers under test received to the lesson. It does not
// add events from before the chaos phase, or events of leases, Events and access reviews.
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

// send adds a write of a controller under test to the lesson. It also adds the watch events on
// which the write may depend.
func (l *learner) send(r *history.Record) {
	request := r.Request
	object := l.known.target(request)
	w := LearntWrite{Write: Write{Verb: request.Verb, Resource: request.Resource, Subresource: request.Subresource, Name: requestName(request, object)}, order: r.Seq}
	l.requests = append(l.requests, request)
	w.Nth = w.count(l.requests)
	w.object = object.Ref.String()
	if request.Verb != "delete" {
		w.version = l.versionBefore(request, object) // until the response
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

// versionBefore returns the version of an object that a request replaces. This is the version in the
// request, or the newest known version if the request has none, as a server-side apply. The result is 0
// for an unknown object.
func (l *learner) versionBefore(request *history.Request, object *history.Object) history.Version {
	if request.Object != nil && request.Object.Version != 0 {
		return request.Object.Version
	}
	if known := l.known.byKey[object.Ref.String()]; known != nil {
		return known.Version
	}
	return 0
}

// answer adds the response of a write to the lesson. The response says whether the API server
// refused the write, and whether the write changed the object. answer ignores the responses to
// other requests.
func (l *learner) answer(r *history.Response) {
	sent, ok := l.pending[r.ID]
	if !ok {
		return
	}
	w := &l.lesson.Writes[sent.index]
	before := w.version
	if w.Verb != "delete" {
		w.version = 0
	}
	w.Refused = r.ServerCode < 200 || r.ServerCode > 299
	w.Changed = !w.Refused
	if !w.Refused {
		l.committed = append(l.committed, sent.request)
		w.Committed = w.count(l.committed)
	}
	if r.Object != nil && !w.Refused {
		if history.HasKindOfResource(w.Subresource) {
			l.known.set(r.Object)
		}
		if r.Object.Name != "" {
			w.object = r.Object.Ref.String()
		}
		if w.Verb != "delete" {
			w.version = r.Object.Version
			w.Changed = before == 0 || r.Object.Version != before
		}
	}
}

// sameContent reports whether two versions of an object differ at most in the resourceVersion. The
// second version then tells a controller nothing new.
func sameContent(a, b *history.Object) bool {
	left, right := *a, *b
	left.Version, right.Version = 0, 0
	same := bytes.Equal(left.Body, right.Body)
	left.Body, right.Body = nil, nil
	return same && reflect.DeepEqual(left, right)
}

// requestName returns a glob that matches the written object's name in every run of the scenario,
// such as "web-*".
func requestName(r *history.Request, object *history.Object) string {
	if name := r.ObjectName(); name != object.Name || !object.HasGeneratedName() {
		return name // for a create with generateName, this is the prefix
	}
	return object.StableName()
}
