package timeline

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// request is a request of the controllers under test to which later records may refer, such as the
// response.
type request struct {
	drawn    bool // true if the request has a mark
	mark     int  // the index of the request's mark in Timeline.Marks, if drawn is true
	answered bool // true after the response record was read
	// opened is the time of the response, or the time of the request while there is no response.
	// For a watch, the time of the response is the time at which the watch was established.
	opened time.Duration
}

// request adds the mark of a request to the timeline. The method response later ends the mark at
// the time of the response.
func (b *builder) request(r *history.Record) {
	q := r.Request
	m := Mark{Seq: r.Seq, From: r.At, To: r.At, Kind: Read, Action: q.Verb, Note: "no response recorded"}
	if q.Subresource != "" {
		m.Action += " " + q.Subresource
	}
	ref := history.Ref{Resource: q.Resource, Namespace: q.Namespace, Name: q.Name}
	if q.Name == "" && q.Object != nil {
		ref.Name = q.Object.Name
	}
	m.Object = b.title(ref)
	switch {
	case q.Resource == "":
		m.Track, m.Object = b.track(Subject, q.Subject+": other requests"), q.Path
	case q.Resource == leases:
		m.Track = b.track(Subject, q.Subject+": leases")
	case isEvent(q.Resource):
		m.Track = b.track(Subject, q.Subject+": events")
	case !q.IsWrite():
		m.Track = b.track(Subject, q.Subject+": reads and watches")
	case q.Object != nil:
		object := *q.Object
		object.Ref = ref
		if ref.Name == "" {
			m.Object = b.title(history.Ref{Resource: ref.Resource, Namespace: ref.Namespace, Name: object.GenerateName})
		}
		m.Track = b.objectTrack(&object)
	default:
		m.Track = b.refTrack(ref)
	}
	if isChange(q.Verb) {
		m.Kind = Write
	}
	b.requests[q.ID] = &request{drawn: true, mark: b.mark(m), opened: r.At}
}

// isChange reports whether a verb changes objects, such as create or patch. Unlike
// history.Request.IsWrite, it does not read the resource. It therefore returns true even for
// writes of leases and Events.
func isChange(verb string) bool { return verb != "get" && verb != "list" && verb != "watch" }

// response ends the mark of a request on the timeline, and describes the response in the mark's
// note. For a watch, it also records when the watch was established.
func (b *builder) response(r *history.Record) {
	q, ok := b.requests[r.Response.ID]
	if !ok || q.answered {
		return
	}
	q.answered, q.opened = true, r.At
	if !q.drawn {
		return
	}
	m := b.endMark(q.mark, r)
	m.Note, m.Fault = answer(r.Response), r.Response.Fault
	if !r.Response.OK() {
		m.Kind = Refused
	}
	if o := r.Response.Object; o != nil && r.Response.OK() {
		m.Version = o.Version
		if o.Name != "" && isChange(m.Action) && !isEvent(o.Resource) {
			m.Object = b.title(o.Ref) // the API server may have generated the name of the created object
		}
	}
	if b.window.contains(m.Seq) {
		b.rates.answered(m)
	}
	if m.Action != "watch" && m.Action != "list" { // no record about the request follows its response
		delete(b.requests, r.Response.ID)
	}
}

// answer returns a text about a response: the HTTP status code, the reason, and what the API
// server did. An example is "504, never reached the API server".
func answer(a *history.Response) string {
	var words []string
	if a.Code == 0 {
		words = append(words, "no response")
	} else {
		words = append(words, strconv.Itoa(a.Code))
	}
	if a.Reason != "" {
		words = append(words, a.Reason)
	}
	switch {
	case !a.Reached:
		words = append(words, "never reached the API server")
	case a.ServerCode != a.Code && a.ServerCode != 0:
		words = append(words, fmt.Sprintf("the API server responded with %d", a.ServerCode))
	case a.ServerCode == 0:
		words = append(words, "the response of the API server is not known")
	}
	return strings.Join(words, ", ")
}

// delivery adds the mark of a watch event that was delivered to the controllers under test. It
// ignores bookmarks, which contain only a resourceVersion.
func (b *builder) delivery(r *history.Record) {
	d := r.Delivery
	if d.Type == history.Bookmark {
		return
	}
	m := Mark{Seq: r.Seq, From: r.At, To: r.At, Kind: Delivery, Action: string(d.Type), Note: "to " + d.Subject, Version: d.Object.Version}
	if d.Type == history.Error {
		m.Track, m.Object = b.track(Subject, d.Subject+": reads and watches"), d.Resource
		b.mark(m)
		return
	}
	m.Object = b.title(d.Object.Ref)
	m.Track = b.objectTrack(&d.Object)
	if q, ok := b.requests[d.ID]; ok {
		m.From = q.opened // setLag sets a later time if the commit was later
	}
	if d.Held > 0 {
		m.Note += fmt.Sprintf(", a fault delayed the event by %s", d.Held.Round(100*time.Microsecond))
	}
	place := b.mark(m)
	if _, ok := b.committedAt[d.Object.Version]; ok {
		b.setLag(place)
		return
	}
	b.withoutCommit = append(b.withoutCommit, place) // the commit may be recorded shortly after the delivery
}

// setLag moves the start of a delivery's mark (an event on the timeline) to the time of the commit.
// The length of the mark then shows the lag of the delivery. The argument place is the mark's index
// in Timeline.Marks.
//
// A new watch may deliver versions that etcd committed long before. setLag therefore does not move
// the start before the time at which the watch was established.
func (b *builder) setLag(place int) {
	m := &b.t.Marks[place]
	committed, ok := b.committedAt[m.Version]
	if !ok {
		committed = m.To // the commit was not recorded, so the lag is not known
	}
	m.From = min(max(m.From, committed), m.To)
	if resource, _, _ := strings.Cut(m.Object, " "); b.window.contains(m.Seq) {
		b.rates.delivered(m.To, resource, m.To-m.From)
	}
}

// watchClosed adds a mark to the timeline at the time at which a watch of the controllers under
// test ended.
func (b *builder) watchClosed(r *history.Record) {
	c := r.WatchClosed
	b.mark(Mark{
		Seq: r.Seq, From: r.At, To: r.At, Track: b.track(Subject, c.Subject+": reads and watches"), Kind: Read,
		Action: "watch ended", Object: c.Resource, Note: c.Reason,
	})
}
