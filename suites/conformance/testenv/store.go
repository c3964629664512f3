package testenv

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// store is what is in a namespace, by the watches' word, and what must always
// hold of it.
type store struct {
	mu      sync.Mutex
	objects map[Ref]Object
	// firstSeen is the order in which objects were first seen: their creation times
	// have whole seconds only.
	firstSeen map[types.UID]int
	synced  map[string]bool // the kinds whose list has come
	// seen is up to which version of a kind everything has come.
	seen    map[string]history.Version
	changed chan struct{} // closed, and replaced, whenever anything changes
	invariants  []invariant
	// violation is the first invariant that did not hold; empty as long as all do.
	// A spec fails of it once.
	violation string
	reported      bool
}

// invariant is a thing that is never otherwise.
type invariant struct {
	text string
	// holds is nil, or what is otherwise.
	holds func(*View) error
}

func newStore() *store {
	return &store{objects: map[Ref]Object{}, firstSeen: map[types.UID]int{}, synced: map[string]bool{}, seen: map[string]history.Version{}, changed: make(chan struct{})}
}

// watch fills the store, kind by kind, until ctx ends.
func (s *store) watch(ctx context.Context, client kubernetes.Interface, namespace string, group *sync.WaitGroup) {
	for _, k := range kinds {
		source := cache.NewListWatchFromClient(k.client(client), k.resource, namespace, fields.Everything())
		reflector := cache.NewReflectorWithOptions(source, k.example, feed{s, k.name}, cache.ReflectorOptions{Name: namespace + "/" + k.name})
		group.Go(func() { reflector.RunWithContext(ctx) })
	}
}

// set puts an object in the place of an older one. The caller holds s.mu.
func (s *store) set(kind string, object Object) {
	s.objects[Ref{kind, object.GetName()}] = object
	if _, known := s.firstSeen[object.GetUID()]; !known {
		s.firstSeen[object.GetUID()] = len(s.firstSeen)
	}
	s.advance(kind, object.GetResourceVersion())
}

// advance notes up to which version everything has come. The caller holds s.mu.
func (s *store) advance(kind, version string) {
	if parsed, err := history.ParseVersion(version); err == nil {
		s.seen[kind] = max(s.seen[kind], parsed)
	}
}

// change makes a change, looks whether what must always hold does, and wakes
// whoever waits.
func (s *store) change(edit func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	edit()
	s.check()
	close(s.changed)
	s.changed = make(chan struct{})
}

// notify wakes whoever waits: something that is no object has changed.
func (s *store) notify() { s.change(func() {}) }

// check keeps the first violation of an invariant. The caller holds s.mu.
func (s *store) check() {
	view := &View{s}
	for _, i := range s.invariants {
		if s.violation != "" {
			return
		}
		if err := i.evaluate(view); err != nil {
			s.violation = fmt.Sprintf("always: %s\notherwise: %v", i.text, err)
		}
	}
}

// evaluate is nil if it holds. A look that panics does so in a goroutine of the watches,
// where it would take every spec with it: it says so instead.
func (i invariant) evaluate(view *View) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("looking at it failed: %v\n%s", p, debug.Stack())
		}
	}()
	return i.holds(view)
}

// feed is the store as the reflector of one kind fills it.
type feed struct {
	*store
	kind string
}

var _ cache.ReflectorStore = feed{}

func (f feed) put(o any) error {
	object, ok := o.(Object)
	if !ok {
		return fmt.Errorf("the watch of %s brought a %T", f.kind, o)
	}
	f.change(func() { f.set(f.kind, object) })
	return nil
}

// Add, Update, Delete, Replace and Resync are for the reflector.
func (f feed) Add(o any) error    { return f.put(o) }
func (f feed) Update(o any) error { return f.put(o) }
func (f feed) Resync() error      { return nil }

func (f feed) Delete(o any) error {
	object, ok := o.(Object)
	if !ok {
		return fmt.Errorf("the watch of %s brought a %T", f.kind, o)
	}
	f.change(func() {
		delete(f.objects, Ref{f.kind, object.GetName()})
		f.advance(f.kind, object.GetResourceVersion())
	})
	return nil
}

func (f feed) Replace(all []any, version string) error {
	f.change(func() {
		for ref := range f.objects {
			if ref.Kind == f.kind {
				delete(f.objects, ref)
			}
		}
		for _, o := range all {
			if object, ok := o.(Object); ok {
				f.set(f.kind, object)
			}
		}
		f.synced[f.kind] = true
		f.advance(f.kind, version)
	})
	return nil
}
