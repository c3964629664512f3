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

// store holds the invariants of a spec and the objects of its namespace, as the watches
// delivered them.
type store struct {
	mu      sync.Mutex
	objects map[Ref]Object
	// firstSeen is the order in which the watches delivered the objects. Creation
	// timestamps are too coarse: they have whole seconds.
	firstSeen map[types.UID]int
	synced    map[string]bool // kinds whose initial list is complete
	// seen has, for each kind, the resourceVersion up to which the store has all changes.
	seen       map[string]history.Version
	changed    chan struct{} // closed and replaced at every change
	invariants []invariant
	// violation describes the first violation of an invariant. The spec reports it only
	// once.
	violation string
	reported  bool
}

// invariant is a condition that must hold after every change.
type invariant struct {
	text string
	// holds returns an error that describes the violation, or nil.
	holds func(*View) error
}

func newStore() *store {
	return &store{objects: map[Ref]Object{}, firstSeen: map[types.UID]int{}, synced: map[string]bool{}, seen: map[string]history.Version{}, changed: make(chan struct{})}
}

// watch starts a reflector for each kind. The reflectors fill the store until ctx ends.
func (s *store) watch(ctx context.Context, client kubernetes.Interface, namespace string, group *sync.WaitGroup) {
	for _, k := range kinds {
		source := cache.NewListWatchFromClient(k.client(client), k.resource, namespace, fields.Everything())
		reflector := cache.NewReflectorWithOptions(source, k.example, feed{s, k.name}, cache.ReflectorOptions{Name: namespace + "/" + k.name})
		group.Go(func() { reflector.RunWithContext(ctx) })
	}
}

// set adds or replaces an object. The caller holds s.mu.
func (s *store) set(kind string, object Object) {
	s.objects[Ref{kind, object.GetName()}] = object
	if _, known := s.firstSeen[object.GetUID()]; !known {
		s.firstSeen[object.GetUID()] = len(s.firstSeen)
	}
	s.advance(kind, object.GetResourceVersion())
}

// advance records that the store has all changes up to a version. The caller holds
// s.mu.
func (s *store) advance(kind, version string) {
	if parsed, err := history.ParseVersion(version); err == nil {
		s.seen[kind] = max(s.seen[kind], parsed)
	}
}

// change applies an edit, checks the invariants and notifies waiting queries.
func (s *store) change(edit func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	edit()
	s.check()
	close(s.changed)
	s.changed = make(chan struct{})
}

// notify makes waiting specs evaluate their queries again. Callers use it after a
// change outside the store, such as a record of the subject.
func (s *store) notify() { s.change(func() {}) }

// check records the first violation of an invariant. The caller holds s.mu.
func (s *store) check() {
	view := &View{s}
	for _, i := range s.invariants {
		if s.violation != "" {
			return
		}
		if err := i.evaluate(view); err != nil {
			s.violation = fmt.Sprintf("invariant violated: %s\nfound: %v", i.text, err)
		}
	}
}

// evaluate returns the violation of the invariant, or nil. It recovers from a panic. If
// it did not recover, a panic in the goroutine of a reflector would end all specs.
func (i invariant) evaluate(view *View) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the invariant panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return i.holds(view)
}

// feed puts the objects of one kind into the store. It is the store of the kind's
// reflector.
type feed struct {
	*store
	kind string
}

var _ cache.ReflectorStore = feed{}

func (f feed) put(o any) error {
	object, ok := o.(Object)
	if !ok {
		return fmt.Errorf("the watch of %s delivered a %T", f.kind, o)
	}
	f.change(func() { f.set(f.kind, object) })
	return nil
}

// Add, Update, Delete, Replace and Resync implement cache.ReflectorStore.
func (f feed) Add(o any) error    { return f.put(o) }
func (f feed) Update(o any) error { return f.put(o) }
func (f feed) Resync() error      { return nil }

func (f feed) Delete(o any) error {
	object, ok := o.(Object)
	if !ok {
		return fmt.Errorf("the watch of %s delivered a %T", f.kind, o)
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
