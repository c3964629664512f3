package timeline

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// request is one that the subject sent.
type request struct {
	drawn    bool
	mark     int // of one that is drawn
	answered bool
	// opened is when it was answered, which for a watch is when it stood.
	opened time.Duration
}

// request begins the mark of a request, which its response ends.
func (b *builder) request(r *history.Record) {
	q := r.Request
	m := Mark{Seq: r.Seq, From: r.At, To: r.At, Kind: Read, Action: q.Verb, Note: "no answer is recorded"}
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
	case q.Resource == eventsOld || q.Resource == eventsNew:
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

// isChange reports whether a verb changes something, leases and events included.
func isChange(verb string) bool { return verb != "get" && verb != "list" && verb != "watch" }

// response ends a request, or the opening of a watch.
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
		if o.Name != "" && isChange(m.Action) && o.Resource != eventsOld && o.Resource != eventsNew {
			m.Object = b.title(o.Ref) // a create has its name from the server
		}
	}
	if b.window.contains(m.Seq) {
		b.rates.answered(m)
	}
	if m.Action != "watch" && m.Action != "list" { // nothing more is to come
		delete(b.requests, r.Response.ID)
	}
}

// answer says in words how a request ended.
func answer(a *history.Response) string {
	var words []string
	if a.Code == 0 {
		words = append(words, "no answer")
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
		words = append(words, fmt.Sprintf("the API server answered %d", a.ServerCode))
	case a.ServerCode == 0:
		words = append(words, "the API server's answer is not known")
	}
	return strings.Join(words, ", ")
}

// delivery marks a watch event at the moment at which it was handed over. Of
// bookmarks nothing is drawn.
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
		m.From = q.opened // the version may have been committed since
	}
	if d.Held > 0 {
		m.Note += fmt.Sprintf(", held for %s by a fault", d.Held.Round(100*time.Microsecond))
	}
	place := b.mark(m)
	if _, ok := b.committedAt[d.Object.Version]; ok {
		b.setLag(place)
		return
	}
	b.withoutCommit = append(b.withoutCommit, place) // the truth may be recorded a moment later
}

// setLag says of a delivery since when its version was true.
func (b *builder) setLag(place int) {
	m := &b.t.Marks[place]
	committed, ok := b.committedAt[m.Version]
	if !ok {
		committed = m.To // nobody else saw it: nothing is known of its lag
	}
	m.From = min(max(m.From, committed), m.To)
	if resource, _, _ := strings.Cut(m.Object, " "); b.window.contains(m.Seq) {
		b.rates.delivered(m.To, resource, m.To-m.From)
	}
}

// watchClosed marks the end of a watch.
func (b *builder) watchClosed(r *history.Record) {
	c := r.WatchClosed
	b.mark(Mark{
		Seq: r.Seq, From: r.At, To: r.At, Track: b.track(Subject, c.Subject+": reads and watches"), Kind: Read,
		Action: "watch ended", Object: c.Resource, Note: c.Reason,
	})
}
