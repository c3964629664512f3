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
	m := Mark{Seq: r.Seq, From: r.At, To: r.At, Kind: Read, What: q.Verb, Note: "no answer is recorded"}
	if q.Subresource != "" {
		m.What += " " + q.Subresource
	}
	ref := history.Ref{Resource: q.Resource, Namespace: q.Namespace, Name: q.Name}
	if q.Name == "" && q.Object != nil {
		ref.Name = q.Object.Name
	}
	m.Object = b.title(ref)
	switch {
	case q.Resource == "":
		m.Lane, m.Object = b.lane(Subject, q.Subject+": other requests"), q.Path
	case q.Resource == leases:
		m.Lane = b.lane(Subject, q.Subject+": leases")
	case q.Resource == eventsOld || q.Resource == eventsNew:
		m.Lane = b.lane(Subject, q.Subject+": events")
	case !q.IsWrite():
		m.Lane = b.lane(Subject, q.Subject+": reads and watches")
	case q.Object != nil:
		object := *q.Object
		object.Ref = ref
		if ref.Name == "" {
			m.Object = b.title(history.Ref{Resource: ref.Resource, Namespace: ref.Namespace, Name: object.GenerateName})
		}
		m.Lane = b.objectLane(&object)
	default:
		m.Lane = b.refLane(ref)
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
	m := b.end(q.mark, r)
	m.Note, m.Fault = answer(r.Response), r.Response.Fault
	if !r.Response.OK() {
		m.Kind = Refused
	}
	if o := r.Response.Object; o != nil && r.Response.OK() {
		m.Version = o.Version
		if o.Name != "" && isChange(m.What) && o.Resource != eventsOld && o.Resource != eventsNew {
			m.Object = b.title(o.Ref) // a create has its name from the server
		}
	}
	if b.drawn.holds(m.Seq) {
		b.pace.answered(m)
	}
	if m.What != "watch" && m.What != "list" { // nothing more is to come
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
	m := Mark{Seq: r.Seq, From: r.At, To: r.At, Kind: Delivery, What: string(d.Type), Note: "to " + d.Subject, Version: d.Object.Version}
	if d.Type == history.Error {
		m.Lane, m.Object = b.lane(Subject, d.Subject+": reads and watches"), d.Resource
		b.mark(m)
		return
	}
	m.Object = b.title(d.Object.Ref)
	m.Lane = b.objectLane(&d.Object)
	if q, ok := b.requests[d.ID]; ok {
		m.From = q.opened // the version may have been committed since
	}
	if d.Held > 0 {
		m.Note += fmt.Sprintf(", held for %s by a fault", d.Held.Round(100*time.Microsecond))
	}
	place := b.mark(m)
	if _, ok := b.seen[d.Object.Version]; ok {
		b.tellLag(place)
		return
	}
	b.late = append(b.late, place) // the truth may be recorded a moment later
}

// tellLag says of a delivery since when its version was true.
func (b *builder) tellLag(place int) {
	m := &b.t.Marks[place]
	committed, ok := b.seen[m.Version]
	if !ok {
		committed = m.To // nobody else saw it: nothing is known of its lag
	}
	m.From = min(max(m.From, committed), m.To)
	if resource, _, _ := strings.Cut(m.Object, " "); b.drawn.holds(m.Seq) {
		b.pace.delivered(m.To, resource, m.To-m.From)
	}
}

// closed marks the end of a watch.
func (b *builder) closed(r *history.Record) {
	c := r.WatchClosed
	b.mark(Mark{
		Seq: r.Seq, From: r.At, To: r.At, Lane: b.lane(Subject, c.Subject+": reads and watches"), Kind: Read,
		What: "watch ended", Object: c.Resource, Note: c.Reason,
	})
}
