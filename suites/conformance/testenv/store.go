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

// store contains the objects in the namespace of one Ginkgo spec, and the spec's invariants. The
// watches of this package fill the store.
type store struct {
	mu      sync.Mutex
	objects map[Ref]Object
	// firstSeen numbers the objects in the order in which a watch first delivered them. Creation
	// timestamps cannot order objects, because they have a resolution of one second.
	firstSeen map[types.UID]int
	synced    map[string]bool // kinds whose initial list is in the store
	// seen maps a kind to the resourceVersion up to which the store contains all changes of this
	// kind.
	seen       map[string]history.Version
	changed    chan struct{} // closed and replaced after every change, which wakes all waits
	invariants []invariant
	// violation describes the first violation of an invariant. The field reported is true after a
	// wait has returned this violation as an error.
	violation string
	reported  bool
}

// invariant is a condition of a Ginkgo spec that must hold after every change in the namespace.
type invariant struct {
	// text describes the condition in failure messages.
	text string
	// holds returns an error if the invariant is violated.
	holds func(*View) error
}

func newStore() *store {
	return &store{objects: map[Ref]Object{}, firstSeen: map[types.UID]int{}, synced: map[string]bool{}, seen: map[string]history.Version{}, changed: make(chan struct{})}
}

// watch starts a client-go reflector for each kind. The reflectors fill the store until ctx is
// canceled. The reflectors' goroutines run in group.
func (s *store) watch(ctx context.Context, client kubernetes.Interface, namespace string, group *sync.WaitGroup) {
	for _, k := range kinds {
		source := cache.NewListWatchFromClient(k.client(client), k.resource, namespace, fields.Everything())
		reflector := cache.NewReflectorWithOptions(source, k.example, feed{s, k.name}, cache.ReflectorOptions{Name: namespace + "/" + k.name})
		group.Go(func() { reflector.RunWithContext(ctx) })
	}
}

// set adds or replaces an object of the store. The caller must hold s.mu.
func (s *store) set(kind string, object Object) {
	s.objects[Ref{kind, object.GetName()}] = object
	if _, known := s.firstSeen[object.GetUID()]; !known {
		s.firstSeen[object.GetUID()] = len(s.firstSeen)
	}
	s.advance(kind, object.GetResourceVersion())
}

// advance records that the store contains all changes of a kind up to a resourceVersion. The
// caller must hold s.mu.
func (s *store) advance(kind, version string) {
	if parsed, err := history.ParseVersion(version); err == nil {
		s.seen[kind] = max(s.seen[kind], parsed)
	}
}

// change calls its argument edit, which modifies the store. It then checks the invariants, and
// wakes all waits.
func (s *store) change(edit func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	edit()
	s.check()
	close(s.changed)
	s.changed = make(chan struct{})
}

// notify checks the invariants and wakes all waits after a change that is not in the store. For
// example, the fault proxy has recorded a request of the program under test.
func (s *store) notify() { s.change(func() {}) }

// check evaluates the invariants. It stores the first violation that it finds, and does nothing
// after that. The caller must hold s.mu.
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

// evaluate returns an error if the invariant is violated or panics. Without the recover, a panic
// would end the test process.
func (i invariant) evaluate(view *View) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the invariant panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return i.holds(view)
}

// feed writes the objects of one kind to the store. A client-go reflector calls its methods.
type feed struct {
	*store
	kind string
}

var _ cache.ReflectorStore = feed{}

// put adds or replaces an object in the store.
func (f feed) put(o any) error {
	object, ok := o.(Object)
	if !ok {
		return fmt.Errorf("the watch of %s delivered a %T; expected an API object", f.kind, o)
	}
	f.change(func() { f.set(f.kind, object) })
	return nil
}

// Add, Update, Resync, Delete and Replace implement cache.ReflectorStore.
func (f feed) Add(o any) error    { return f.put(o) }
func (f feed) Update(o any) error { return f.put(o) }
func (f feed) Resync() error      { return nil }

func (f feed) Delete(o any) error {
	object, ok := o.(Object)
	if !ok {
		return fmt.Errorf("the watch of %s delivered a %T; expected an API object", f.kind, o)
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
