package check

import (
	"k8s.io/apimachinery/pkg/types"
)

// world is a set of objects as someone has them: the truth, or the view of one
// process. It keeps count of each owner's pods, so that no check has to.
type world struct {
	pods   map[types.UID]*pod
	owners map[types.UID]*owner
	names  map[objectName]types.UID

	controlled map[types.UID]map[types.UID]*pod // by the UID of the controller
	orphans    map[string]map[types.UID]*pod    // by namespace
	tallies    map[types.UID]*tally             // of each owner

	// touched is the owners whose own version, pods or matching orphans have
	// changed since it was last cleared, and how.
	touched map[types.UID]touch
	// departed is the pods that have ceased to be active in the same time.
	departed []types.UID
}

// objectName is what an object can be asked for by.
type objectName struct{ resource, namespace, name string }

// touch is how an owner was touched.
type touch struct {
	itself   bool        // by a version of its own, not only by pods
	arrivals []types.UID // pods it controls that were not there before
}

// tally counts the active pods that matter to an owner.
type tally struct {
	controlled int // it controls
	replicas   int // it controls, and its selector matches: what it manages
	labeled    int // of the replicas, those that carry every label of the template
	ready      int // of the replicas, those that are ready
	orphans    int // nobody controls, and its selector matches: what it may adopt
}

func newWorld() *world {
	return &world{
		pods:       map[types.UID]*pod{},
		owners:     map[types.UID]*owner{},
		names:      map[objectName]types.UID{},
		controlled: map[types.UID]map[types.UID]*pod{},
		orphans:    map[string]map[types.UID]*pod{},
		tallies:    map[types.UID]*tally{},
		touched:    map[types.UID]touch{},
	}
}

// tally returns the count of an owner's pods, all zero for one that is not there.
func (w *world) tally(uid types.UID) tally {
	if t := w.tallies[uid]; t != nil {
		return *t
	}
	return tally{}
}

func (w *world) podNamed(namespace, name string) *pod {
	return w.pods[w.names[objectName{podResource, namespace, name}]]
}

func (w *world) ownerNamed(resource, namespace, name string) *owner {
	return w.owners[w.names[objectName{resource, namespace, name}]]
}

// setPod adds a pod, or replaces the version there is.
func (w *world) setPod(p *pod) {
	old := w.pods[p.UID]
	if old != nil {
		w.count(old, -1)
		w.unindex(old)
	}
	w.pods[p.UID] = p
	w.names[objectName{podResource, p.Namespace, p.Name}] = p.UID
	if p.orphan() {
		insert(w.orphans, p.Namespace, p)
	} else {
		insert(w.controlled, p.controller.UID, p)
	}
	w.count(p, 1)
	switch {
	case old == nil && !p.orphan():
		t := w.touched[p.controller.UID]
		t.arrivals = append(t.arrivals, p.UID)
		w.touched[p.controller.UID] = t
	case old != nil && old.active && !p.active:
		w.departed = append(w.departed, p.UID)
	}
}

func (w *world) removePod(uid types.UID) {
	p := w.pods[uid]
	if p == nil {
		return
	}
	w.count(p, -1)
	w.unindex(p)
	delete(w.pods, uid)
	if p.active {
		w.departed = append(w.departed, uid)
	}
	if name := (objectName{podResource, p.Namespace, p.Name}); w.names[name] == uid {
		delete(w.names, name)
	}
}

func (w *world) unindex(p *pod) {
	if p.orphan() {
		remove(w.orphans, p.Namespace, p)
	} else {
		remove(w.controlled, p.controller.UID, p)
	}
}

// setOwner adds an owner, or replaces the version there is.
func (w *world) setOwner(o *owner) {
	old := w.owners[o.UID]
	w.owners[o.UID] = o
	w.names[objectName{o.kind.resource, o.Namespace, o.Name}] = o.UID
	w.touch(o.UID, true)
	if old != nil && old.selector.String() == o.selector.String() && old.template.String() == o.template.String() {
		return
	}
	t := &tally{}
	for _, p := range w.controlled[o.UID] {
		t.add(o, p, 1)
	}
	for _, p := range w.orphans[o.Namespace] {
		t.add(o, p, 1)
	}
	w.tallies[o.UID] = t
}

func (w *world) removeOwner(uid types.UID) {
	o := w.owners[uid]
	if o == nil {
		return
	}
	w.touch(uid, true)
	delete(w.owners, uid)
	delete(w.tallies, uid)
	if name := (objectName{o.kind.resource, o.Namespace, o.Name}); w.names[name] == uid {
		delete(w.names, name)
	}
}

// count adds or takes away a pod where it counts, and touches whom it concerns.
func (w *world) count(p *pod, sign int) {
	if !p.orphan() {
		w.touch(p.controller.UID, false)
		if o := w.owners[p.controller.UID]; o != nil {
			w.tallies[o.UID].add(o, p, sign)
		}
		return
	}
	for uid, o := range w.owners {
		if o.Namespace == p.Namespace && o.selector.Matches(p.labels) {
			w.touch(uid, false)
			w.tallies[uid].add(o, p, sign)
		}
	}
}

// settle begins anew with what is touched and departed.
func (w *world) settle() {
	clear(w.touched)
	w.departed = w.departed[:0]
}

func (w *world) touch(uid types.UID, itself bool) {
	t := w.touched[uid]
	t.itself = t.itself || itself
	w.touched[uid] = t
}

func (t *tally) add(o *owner, p *pod, sign int) {
	if !p.active {
		return
	}
	matches := o.selector.Matches(p.labels)
	if p.orphan() {
		if matches {
			t.orphans += sign
		}
		return
	}
	t.controlled += sign
	if !matches {
		return
	}
	t.replicas += sign
	if o.template.Matches(p.labels) {
		t.labeled += sign
	}
	if p.ready {
		t.ready += sign
	}
}

func insert[K comparable](index map[K]map[types.UID]*pod, key K, p *pod) {
	if index[key] == nil {
		index[key] = map[types.UID]*pod{}
	}
	index[key][p.UID] = p
}

func remove[K comparable](index map[K]map[types.UID]*pod, key K, p *pod) {
	delete(index[key], p.UID)
	if len(index[key]) == 0 {
		delete(index, key)
	}
}
