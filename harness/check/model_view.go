package check

import (
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// sighting is a pod as the process had it for a time.
type sighting struct {
	pod   *pod
	since int64         // the record that told it so
	until time.Duration // when something else was told; 0 while it holds
}

// feed is what a list or watch covers.
type feed struct {
	resource  string
	namespace string // "" is all
	// selective: it leaves out objects, so absence from it says nothing.
	selective bool
	// initial: it is a watch that begins with all there is.
	initial bool
}

// feedOf reads what a list or watch request asks for.
func feedOf(r *history.Request) feed {
	f := feed{resource: r.Resource, namespace: r.Namespace}
	query, err := url.ParseQuery(r.Query)
	if err != nil {
		f.selective = true
		return f
	}
	f.selective = r.Name != "" || query.Has("fieldSelector") || query.Has("labelSelector")
	f.initial = query.Get("sendInitialEvents") == "true"
	return f
}

func newView(facts *decoder) *view {
	return &view{
		world:   newWorld(),
		facts:   facts,
		reached: map[string]history.Version{},
		asked:   map[string]bool{},
		pages:   map[feed][]history.Object{},
		claims:  map[types.UID]int64{},
		former:  map[types.UID][]sighting{},

		standings: map[types.UID][]shown[*pod]{},

		shown: map[types.UID]time.Duration{},
		faces: newFaces(),
	}
}

// stream is a watch of a process.
type stream struct {
	process *process
	feed    feed
	// initial holds the initial events until all have come: a cache that lists
	// by watching shows nothing of them before. Nil once they have.
	initial map[types.UID]history.Object
}

func newStream(p *process, f feed) *stream {
	s := &stream{process: p, feed: f}
	if f.initial {
		s.initial = map[types.UID]history.Object{}
	}
	return s
}

// deliver applies a watch event. It reports whether the view now is as complete
// as the event's version says.
func (v *view) deliver(s *stream, d *history.Delivery, seq int64, at time.Duration) (complete bool, err error) {
	switch {
	case d.Type == history.Error:
		return false, nil
	case d.InitialEventsEnd && s.initial != nil:
		objects := make([]history.Object, 0, len(s.initial))
		for _, o := range s.initial {
			objects = append(objects, o)
		}
		s.initial = nil
		return true, v.replace(s.feed, objects, d.Object.Version, seq, at)
	case s.initial != nil && d.Type == history.Deleted:
		delete(s.initial, d.Object.UID)
		return false, nil
	case s.initial != nil && d.Type != history.Bookmark:
		s.initial[d.Object.UID] = d.Object
		return false, nil
	case s.initial != nil:
		return false, nil
	}
	v.reach(s.feed.resource, d.Object.Version)
	switch d.Type {
	case history.Bookmark:
		return true, nil
	case history.Deleted:
		v.drop(d.Resource, d.Object.UID, at)
		return false, nil
	default:
		return false, v.put(&d.Object, seq, at)
	}
}

// list applies a page of a list answer. It reports whether the list is complete.
func (v *view) list(f feed, l *history.List, seq int64, at time.Duration) (complete bool, err error) {
	items := l.Items
	if l.Continued {
		items = append(v.pages[f], items...)
	}
	delete(v.pages, f)
	if l.More {
		v.pages[f] = items
		return false, nil
	}
	return true, v.replace(f, items, l.Version, seq, at)
}

// replace makes the view what a complete list says, older or newer. What the
// list lacks is gone, unless the list was of some objects only.
func (v *view) replace(f feed, objects []history.Object, at history.Version, seq int64, now time.Duration) error {
	v.replaced = true
	listed := make(map[types.UID]bool, len(objects))
	for i := range objects {
		listed[objects[i].UID] = true
		if err := v.put(&objects[i], seq, now); err != nil {
			return err
		}
	}
	if f.selective {
		return nil
	}
	for uid, ref := range v.refs(f.resource) {
		if f.covers(ref) && !listed[uid] {
			v.drop(f.resource, uid, now)
		}
	}
	v.reach(f.resource, at)
	return nil
}

func (f feed) covers(r history.Ref) bool { return f.namespace == "" || f.namespace == r.Namespace }

func (v *view) reach(resource string, at history.Version) {
	v.reached[resource] = max(v.reached[resource], at)
}

// put shows the process a version of an object. One without a body (of a watch
// on metadata only) shows too little to count by; of Endpoints, that lists nothing.
func (v *view) put(o *history.Object, seq int64, at time.Duration) error {
	if len(o.Body) == 0 && o.Resource != endpointsResource {
		return nil
	}
	decoded, err := v.facts.decode(o)
	if err != nil {
		return err
	}
	p, ok := decoded.(*pod)
	if !ok {
		v.enter(decoded)
		return nil
	}
	if v.pods[p.UID] == nil {
		v.shown[p.UID] = at
	}
	v.faces.show(p, o.Body, at)
	if n := len(v.standings[p.UID]); n == 0 || !v.standings[p.UID][n-1].value.stands(p) {
		v.standings[p.UID] = append(recent(v.standings[p.UID], at-memory), shown[*pod]{at, p})
	}
	if old := v.pods[p.UID]; old == nil || !old.sameClaim(p) {
		v.retire(p.UID, at)
		v.claims[p.UID] = seq
	}
	v.setPod(p)
	return nil
}

// drop shows the process that an object is gone.
func (v *view) drop(resource string, uid types.UID, at time.Duration) {
	if resource != podResource {
		v.remove(resource, uid)
		return
	}
	v.retire(uid, at)
	v.faces.drop(uid, at)
	delete(v.claims, uid)
	delete(v.shown, uid)
	delete(v.standings, uid)
	v.removePod(uid)
}

// retire keeps how a pod stands as how it stood until now.
func (v *view) retire(uid types.UID, at time.Duration) {
	if p := v.pods[uid]; p != nil {
		v.former[uid] = append(v.former[uid], sighting{pod: p, since: v.claims[uid], until: at})
	}
}

// sightings returns how the process may have a pod in mind.
func (v *view) sightings(uid types.UID) []sighting {
	seen := v.former[uid]
	if p := v.pods[uid]; p != nil {
		seen = append(seen[:len(seen):len(seen)], sighting{pod: p, since: v.claims[uid]})
	}
	return seen
}

// oneManager is whether the process has had the pod, of late, with one owner at most.
// Otherwise a delete cannot be laid at one owner's door.
func (v *view) oneManager(uid types.UID) bool {
	managers := map[types.UID]bool{}
	for _, seen := range v.sightings(uid) {
		if seen.pod.managed() {
			managers[seen.pod.controller.UID] = true
		}
	}
	return len(managers) <= 1
}

// lookup finds the pod that a request names, be it gone by now.
func (v *view) lookup(namespace, name string, uid types.UID) *pod {
	if uid == "" {
		if p := v.podNamed(namespace, name); p != nil {
			return p
		}
	} else if p := v.pods[uid]; p != nil {
		return p
	}
	for id, seen := range v.former {
		p := seen[len(seen)-1].pod
		if id == uid || (uid == "" && p.Namespace == namespace && p.Name == name) {
			return p
		}
	}
	return nil
}

// forget drops the sightings that ended before the given time.
func (v *view) forget(before time.Duration) {
	for uid, seen := range v.former {
		kept := seen[:0:0]
		for _, s := range seen {
			if s.until >= before {
				kept = append(kept, s)
			}
		}
		if len(kept) == 0 {
			delete(v.former, uid)
		} else {
			v.former[uid] = kept
		}
	}
}
