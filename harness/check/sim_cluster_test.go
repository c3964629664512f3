package check

import (
	"container/heap"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// A small model of a cluster, in virtual time: an API server that keeps
// versions, watches that lag, nodes that run pods, users and faults. A model of
// a controller (sim_controller_test.go) runs against it, and what an observer
// and a proxy would have written down is the history.

// conditions are what goes wrong in a simulated run, while there is chaos.
type conditions struct {
	seed     uint64
	podLag   time.Duration // at most, of pod events
	ownerLag time.Duration
	refused  float64 // share of writes refused
	lost     float64 // share of writes whose answer is lost
	restarts int
	codes    []int         // with which writes are refused
	resource string        // of the owners
	replicas int           // at most
	unrest   int           // number of things that users and nodes do
	grace    time.Duration // at most, that a deleted pod takes to go
}

// thing is one version of an object. It never changes.
type thing struct {
	history.Object
	failed, ready bool
	replicas      int
	status        ownerStatus
	failing       bool // of an owner: its status has the condition ReplicaFailure
}

func (t *thing) active() bool { return !t.failed && !t.Terminating() }

func (t *thing) controller() types.UID {
	if ref := t.ControllerRef(); ref != nil {
		return ref.UID
	}
	return ""
}

func (t *thing) app() string { return t.Labels["app"] }

type cluster struct {
	conditions
	random  *rand.Rand
	now     time.Duration
	events  events
	order   int
	seq     int64
	records []*history.Record
	ids     uint64
	version history.Version
	things  map[types.UID]*thing
	names   int
	chaos   bool
	truth   *feedline
	subject *controller
}

func newCluster(c conditions) *cluster {
	s := &cluster{conditions: c, random: rand.New(rand.NewPCG(c.seed, 1)), things: map[types.UID]*thing{}, version: 1000, chaos: true}
	s.truth = &feedline{}
	s.append(history.Record{Start: &history.Start{Format: history.Format, Namespace: namespace, Time: time.Unix(1e9, 0)}})
	return s
}

func (s *cluster) append(r history.Record) {
	s.seq++
	r.Seq, r.At = s.seq, s.now
	s.records = append(s.records, &r)
}

// up to d, at random.
func (s *cluster) upTo(d time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(d) + 1))
}

func (s *cluster) chance(p float64) bool { return s.chaos && s.random.Float64() < p }

// after lets something happen later.
func (s *cluster) after(d time.Duration, do func()) {
	s.order++
	heap.Push(&s.events, event{at: s.now + d, order: s.order, do: do})
}

// run lets time pass.
func (s *cluster) run(until time.Duration) {
	for len(s.events) > 0 && s.events[0].at <= until {
		next := heap.Pop(&s.events).(event)
		s.now = next.at
		next.do()
	}
	s.now = until
}

type event struct {
	at    time.Duration
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, k int) bool {
	return e[i].at < e[k].at || e[i].at == e[k].at && e[i].order < e[k].order
}
func (e events) Swap(i, k int) { e[i], e[k] = e[k], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// feedline delivers in order, late, until it is told to hold nothing back.
type feedline struct {
	last    time.Duration
	waiting []func()
}

func (f *feedline) send(s *cluster, lag time.Duration, do func()) {
	f.last = max(f.last, s.now+lag)
	f.waiting = append(f.waiting, do)
	s.after(f.last-s.now, func() {
		if len(f.waiting) > 0 {
			next := f.waiting[0]
			f.waiting = f.waiting[1:]
			next()
		}
	})
}

func (f *feedline) release(s *cluster) {
	f.last = s.now
	waiting := f.waiting
	f.waiting = nil
	for _, do := range waiting {
		do()
	}
}

// put commits a version of an object.
func (s *cluster) put(kind history.EventType, t thing) *thing {
	s.version++
	t.Version = s.version
	if t.Resource == podResource {
		phase := "Running"
		if t.failed {
			phase = "Failed"
		}
		t.Body = podBody(phase, t.ready)
	} else {
		t.Body = ownerBody(&t)
	}
	if kind == history.Deleted {
		delete(s.things, t.UID)
	} else {
		s.things[t.UID] = &t
	}
	s.truth.send(s, s.upTo(3*time.Millisecond), func() {
		s.append(history.Record{Commit: &history.Commit{Type: kind, Object: t.Object}})
	})
	if s.subject != nil {
		s.subject.tell(kind, &t)
	}
	return &t
}

func ownerBody(t *thing) []byte {
	selector := fmt.Sprintf(`{"app":%q}`, t.Name)
	if t.Resource == replicaSets {
		selector = `{"matchLabels":` + selector + `}`
	}
	return fmt.Appendf(nil, `{"spec":{"replicas":%d,"selector":%s,"template":{"metadata":{"labels":{"app":%q}}}},`+
		`"status":{"replicas":%d,"fullyLabeledReplicas":%d,"readyReplicas":%d,"availableReplicas":%d,"observedGeneration":%d,`+
		`"conditions":[{"type":"ReplicaFailure","status":"%s"}]}}`,
		t.replicas, selector, t.Name, t.status.Replicas, t.status.FullyLabeledReplicas,
		t.status.ReadyReplicas, t.status.AvailableReplicas, t.status.ObservedGeneration, conditionStatus(t.failing))
}

func conditionStatus(holds bool) string {
	if holds {
		return "True"
	}
	return "False"
}

// sent records a request of the subject and returns its ID.
func (s *cluster) sent(r history.Request) uint64 {
	s.ids++
	r.ID, r.Subject = s.ids, "subject-0"
	s.append(history.Record{Request: &r})
	return r.ID
}

// addPod makes a pod, which becomes ready soon, or, of some, only later.
func (s *cluster) addPod(app string, owners []history.Owner) *thing {
	s.names++
	name := fmt.Sprintf("%s-%d", app, s.names)
	t := s.put(history.Added, thing{Object: history.Object{
		Ref:    history.Ref{Resource: podResource, Namespace: namespace, Name: name, UID: types.UID(name + "-uid")},
		Labels: map[string]string{"app": app}, Owners: owners,
	}})
	start := 100 * time.Millisecond
	if s.chance(0.2) {
		start = 15 * time.Second
	}
	s.after(s.upTo(start), func() {
		if p := s.things[t.UID]; p != nil && p.active() {
			ready := *p
			ready.ready = true
			s.put(history.Modified, ready)
		}
	})
	return t
}

// kill deletes a pod gracefully.
func (s *cluster) kill(t *thing) {
	if t.Terminating() {
		return
	}
	dying := *t
	dying.Deleting = time.Unix(1e9, 0)
	s.put(history.Modified, dying)
	s.after(s.upTo(s.grace), func() {
		if p := s.things[t.UID]; p != nil {
			s.put(history.Deleted, *p)
		}
	})
}

func (s *cluster) addOwner(name string, replicas int) *thing {
	return s.put(history.Added, thing{
		Object: history.Object{
			Ref:        history.Ref{Resource: s.resource, Namespace: namespace, Name: name, UID: types.UID(name + "-uid")},
			Generation: 1, Labels: map[string]string{"app": name},
		},
		replicas: replicas,
	})
}

func (s *cluster) scale(uid types.UID, replicas int) {
	scaled := *s.things[uid]
	scaled.replicas = replicas
	scaled.Generation++
	s.put(history.Modified, scaled)
}

// live returns the objects of a resource in order of names.
func (s *cluster) live(resource string) []*thing {
	var all []*thing
	for _, uid := range slices.Sorted(maps.Keys(s.things)) {
		if t := s.things[uid]; t.Resource == resource {
			all = append(all, t)
		}
	}
	return all
}

// disturb does one thing that users, nodes or other controllers may do.
func (s *cluster) disturb() {
	owners, pods := s.live(s.resource), s.live(podResource)
	owner := owners[s.random.IntN(len(owners))]
	change := func(do func(p *thing)) {
		if len(pods) > 0 {
			p := *pods[s.random.IntN(len(pods))]
			do(&p)
		}
	}
	switch s.random.IntN(10) {
	case 0, 1, 2, 3:
		s.scale(owner.UID, s.random.IntN(s.replicas+1))
	case 4, 5:
		change(func(p *thing) { s.kill(p) })
	case 6:
		change(func(p *thing) {
			if !p.Terminating() {
				p.failed, p.ready = true, false
				s.put(history.Modified, *p)
			}
		})
	case 7:
		change(func(p *thing) {
			p.Owners = nil
			s.put(history.Modified, *p)
		})
	case 8:
		s.addPod(owner.Name, nil)
	case 9:
		s.addPod(owner.Name, controlledBy(foreign()))
	}
}

// simulate runs a controller with the given rules under the given conditions.
func simulate(c conditions, r rules) *cluster {
	s := newCluster(c)
	s.addOwner("web", 0)
	s.addOwner("db", s.random.IntN(c.replicas+1))
	s.run(10 * time.Millisecond)
	s.restart(r)
	s.append(history.Record{Phase: &history.Phase{Name: history.PhaseChaos}})
	const chaos = 8 * time.Second
	for range c.unrest {
		s.after(s.upTo(chaos), s.disturb)
	}
	s.after(s.upTo(chaos), func() { s.scale("web-uid", c.replicas) })
	for range c.restarts {
		s.after(s.upTo(chaos), func() { s.restart(r) })
	}
	s.run(chaos)
	s.chaos = false
	for _, resource := range []string{s.resource, podResource} {
		s.subject.feeds[resource].release(s)
	}
	s.append(history.Record{Phase: &history.Phase{Name: history.PhaseSettle}})
	s.settle(time.Minute)
	s.append(history.Record{Phase: &history.Phase{Name: history.PhaseQuiet}})
	s.run(s.now + setting.Quiet)
	s.append(history.Record{Phase: &history.Phase{Name: history.PhaseEnd}})
	return s
}

// settle lets time pass until all is as it should be, as a run does.
func (s *cluster) settle(within time.Duration) {
	settled := NewSettled()
	seen := 0
	for end := s.now + within; s.now < end; {
		s.run(s.now + 100*time.Millisecond)
		for ; seen < len(s.records); seen++ {
			settled.Observe(s.records[seen])
		}
		if len(settled.Pending()) == 0 {
			return
		}
	}
}

func (s *cluster) all() iter.Seq2[*history.Record, error] {
	return (&story{records: s.records}).all()
}
