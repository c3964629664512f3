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
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// The files sim_*_test.go simulate a small cluster in virtual time: an API server with
// resource versions, late watches, nodes that run pods, users and faults. A simulated
// controller (sim_controller_test.go) sends requests to it. The simulation writes the
// history that a real run would record.

// conditions are the parameters of a simulated run. Faults occur only during the phase chaos.
type conditions struct {
	seed         uint64
	podLag       time.Duration // the maximum delay of watch events of pods
	ownerLag     time.Duration // the maximum delay of watch events of ReplicaSets or ReplicationControllers
	refused      float64       // the probability with which the API server refuses a request
	lost         float64       // the probability with which a response is lost
	restarts     int           // how often the controller is restarted
	codes        []int         // the status codes of refused requests
	resource     string        // the resource that owns the pods: ReplicaSets or ReplicationControllers
	replicas     int           // the maximum of spec.replicas
	disturbances int           // the number of operations by users and nodes
	grace        time.Duration // the maximum time from a pod's deletionTimestamp to the pod's removal
}

// simObject is one version of an object in the simulated cluster. It does not change after its
// creation.
type simObject struct {
	history.Object
	failed, ready bool                // the state of a pod
	replicas      int                 // the spec.replicas of an owner
	status        objects.OwnerStatus // the status of an owner
	failure       string              // reason of the condition ReplicaFailure=True of an owner; empty if it is False
}

// active reports whether a pod is active: it has not failed and has no deletionTimestamp.
func (object *simObject) active() bool { return !object.failed && !object.Terminating() }

// controller returns the UID in the object's controllerRef. It returns "" if the object has no
// controllerRef.
func (object *simObject) controller() types.UID {
	if ref := object.ControllerRef(); ref != nil {
		return ref.UID
	}
	return ""
}

// app returns the value of the object's label app, which the selectors of the simulation match.
func (object *simObject) app() string { return object.Labels["app"] }

// cluster is a simulated cluster with one simulated controller.
type cluster struct {
	conditions
	random      *rand.Rand
	now         time.Duration            // the virtual time since the start
	events      events                   // functions that run calls at a later time
	order       int                      // the number of events that were added so far
	seq         int64                    // the sequence number of the last record
	records     []*history.Record        // the history
	ids         uint64                   // the ID of the last request
	version     history.Version          // the last resourceVersion
	liveObjects map[types.UID]*simObject // the latest committed version of each object, by UID
	names       int                      // the number of pods that were created; part of the next pod's name
	chaos       bool                     // true during the chaos phase
	committed   *simStream               // the stream that appends commit records to the history
	subject     *controller              // the running controller
}

// newCluster returns a cluster without objects, in the phase chaos.
func newCluster(c conditions) *cluster {
	s := &cluster{conditions: c, random: rand.New(rand.NewPCG(c.seed, 1)), liveObjects: map[types.UID]*simObject{}, version: 1000, chaos: true}
	s.committed = &simStream{}
	s.append(history.Record{Start: &history.Start{Format: history.Format, Namespace: namespace, Time: time.Unix(1e9, 0)}})
	return s
}

// append adds a record to the history.
func (s *cluster) append(r history.Record) {
	s.seq++
	r.Seq, r.At = s.seq, s.now
	s.records = append(s.records, &r)
}

// upTo returns a random duration of at most d.
func (s *cluster) upTo(d time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(d) + 1))
}

// chance returns true with probability p during the phase chaos. In later phases, it returns
// false.
func (s *cluster) chance(p float64) bool { return s.chaos && s.random.Float64() < p }

// after makes run call the function do when the time d has passed.
func (s *cluster) after(d time.Duration, do func()) {
	s.order++
	heap.Push(&s.events, event{at: s.now + d, order: s.order, do: do})
}

// run advances the virtual time to until. It calls all functions that are scheduled for a time
// before that.
func (s *cluster) run(until time.Duration) {
	for len(s.events) > 0 && s.events[0].at <= until {
		next := heap.Pop(&s.events).(event)
		s.now = next.at
		next.do()
	}
	s.now = until
}

// event is a function that is scheduled for a time. Events with the same time happen in the
// order in which they were added.
type event struct {
	at    time.Duration
	order int
	do    func()
}

// events is a heap of scheduled events. The first element happens next.
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

// simStream delivers events in the order in which they were sent, each after its own delay.
type simStream struct {
	last    time.Duration // when the last of the waiting events is delivered
	waiting []func()      // functions that deliver the waiting events, in order
}

// send delivers an event, by a call of do, after the delay lag. It waits longer if an earlier
// event has not been delivered by then.
func (f *simStream) send(s *cluster, lag time.Duration, do func()) {
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

// release delivers all waiting events at once.
func (f *simStream) release(s *cluster) {
	f.last = s.now
	waiting := f.waiting
	f.waiting = nil
	for _, do := range waiting {
		do()
	}
}

// put commits a new version of an object, and sends the watch event to the controller. It
// returns the committed version.
func (s *cluster) put(kind history.EventType, object simObject) *simObject {
	s.version++
	object.Version = s.version
	if object.Resource == objects.PodResource {
		phase := "Running"
		if object.failed {
			phase = "Failed"
		}
		object.Body = podBody(phase, object.ready)
	} else {
		object.Body = ownerBody(&object)
	}
	if kind == history.Deleted {
		delete(s.liveObjects, object.UID)
	} else {
		s.liveObjects[object.UID] = &object
	}
	s.committed.send(s, s.upTo(3*time.Millisecond), func() {
		s.append(history.Record{Commit: &history.Commit{Type: kind, Object: object.Object}})
	})
	if s.subject != nil {
		s.subject.sendEvent(kind, &object)
	}
	return &object
}

// ownerBody returns the spec and status of an owner of pods.
func ownerBody(object *simObject) []byte {
	selector := fmt.Sprintf(`{"app":%q}`, object.Name)
	if object.Resource == replicaSets {
		selector = `{"matchLabels":` + selector + `}`
	}
	return fmt.Appendf(nil, `{"spec":{"replicas":%d,"selector":%s,"template":{"metadata":{"labels":{"app":%q}}}},`+
		`"status":{"replicas":%d,"fullyLabeledReplicas":%d,"readyReplicas":%d,"availableReplicas":%d,"observedGeneration":%d,`+
		`"conditions":[{"type":"ReplicaFailure","status":"%s","reason":%q,"lastTransitionTime":"2000-01-01T00:00:00Z"}]}}`,
		object.replicas, selector, object.Name, object.status.Replicas, object.status.FullyLabeledReplicas,
		object.status.ReadyReplicas, object.status.AvailableReplicas, object.status.ObservedGeneration, conditionStatus(object.failure != ""), object.failure)
}

// conditionStatus returns "True" if holds is true, and otherwise "False": the status of a
// condition.
func conditionStatus(holds bool) string {
	if holds {
		return "True"
	}
	return "False"
}

// sent records a request of the controller, and returns its ID.
func (s *cluster) sent(r history.Request) uint64 {
	s.ids++
	r.ID, r.Subject = s.ids, "subject-0"
	s.append(history.Record{Request: &r})
	return r.ID
}

// emitEvents records that the controller sends an event with each reason that the check events demands.
// A real controller sends such an event after each request.
func (s *cluster) emitEvents() {
	for _, r := range eventsOfAllReasons() {
		s.append(history.Record{Response: &history.Response{ID: s.sent(r), Code: 201, ServerCode: 201, Reached: true}})
	}
}

// addPod commits a new pod. The pod becomes ready within 100 ms. During the phase chaos, one pod
// in five may take up to 15 s.
func (s *cluster) addPod(app string, owners []history.Owner) *simObject {
	s.names++
	name := fmt.Sprintf("%s-%d", app, s.names)
	object := s.put(history.Added, simObject{Object: history.Object{
		Ref:    history.Ref{Resource: objects.PodResource, Namespace: namespace, Name: name, UID: types.UID(name + "-uid")},
		Labels: map[string]string{"app": app}, Owners: owners,
	}})
	start := 100 * time.Millisecond
	if s.chance(0.2) {
		start = 15 * time.Second
	}
	s.after(s.upTo(start), func() {
		if p := s.liveObjects[object.UID]; p != nil && p.active() {
			ready := *p
			ready.ready = true
			s.put(history.Modified, ready)
		}
	})
	return object
}

// kill commits a deletionTimestamp of a pod. It commits the pod's removal some time later.
func (s *cluster) kill(object *simObject) {
	if object.Terminating() {
		return
	}
	terminating := *object
	terminating.Deleting = time.Unix(1e9, 0)
	s.put(history.Modified, terminating)
	s.after(s.upTo(s.grace), func() {
		if p := s.liveObjects[object.UID]; p != nil {
			s.put(history.Deleted, *p)
		}
	})
}

// addOwner commits a new ReplicaSet or ReplicationController.
func (s *cluster) addOwner(name string, replicas int) *simObject {
	return s.put(history.Added, simObject{
		Object: history.Object{
			Ref:        history.Ref{Resource: s.resource, Namespace: namespace, Name: name, UID: types.UID(name + "-uid")},
			Generation: 1, Labels: map[string]string{"app": name},
		},
		replicas: replicas,
	})
}

// scale commits a new spec.replicas, as a user does.
func (s *cluster) scale(uid types.UID, replicas int) {
	scaled := *s.liveObjects[uid]
	scaled.replicas = replicas
	scaled.Generation++
	s.put(history.Modified, scaled)
}

// live returns the latest committed objects of a resource, sorted by UID.
func (s *cluster) live(resource string) []*simObject {
	var all []*simObject
	for _, uid := range slices.Sorted(maps.Keys(s.liveObjects)) {
		if object := s.liveObjects[uid]; object.Resource == resource {
			all = append(all, object)
		}
	}
	return all
}

// disturb performs one random operation, as a user, a node or another controller does.
func (s *cluster) disturb() {
	owners, pods := s.live(s.resource), s.live(objects.PodResource)
	owner := owners[s.random.IntN(len(owners))]
	change := func(do func(p *simObject)) {
		if len(pods) > 0 {
			p := *pods[s.random.IntN(len(pods))]
			do(&p)
		}
	}
	switch s.random.IntN(10) {
	case 0, 1, 2, 3:
		s.scale(owner.UID, s.random.IntN(s.replicas+1))
	case 4, 5:
		change(func(p *simObject) { s.kill(p) })
	case 6:
		change(func(p *simObject) {
			if !p.Terminating() {
				p.failed, p.ready = true, false
				s.put(history.Modified, *p)
			}
		})
	case 7:
		change(func(p *simObject) {
			p.Owners = nil
			s.put(history.Modified, *p)
		})
	case 8:
		s.addPod(owner.Name, nil)
	case 9:
		s.addPod(owner.Name, controlledBy(foreign()))
	}
}

// simulate runs a simulated controller of ReplicaSets or ReplicationControllers until the
// phase end. The parameter r says which rules the controller breaks.
func simulate(c conditions, r rules) *cluster {
	s := newCluster(c)
	s.addOwner("web", 0)
	s.addOwner("db", s.random.IntN(c.replicas+1))
	s.run(10 * time.Millisecond)
	s.restart(r)
	s.append(history.Record{Phase: &history.Phase{Name: history.PhaseChaos}})
	const chaos = 8 * time.Second
	for range c.disturbances {
		s.after(s.upTo(chaos), s.disturb)
	}
	s.after(s.upTo(chaos), func() { s.scale("web-uid", c.replicas) })
	for range c.restarts {
		s.after(s.upTo(chaos), func() { s.restart(r) })
	}
	s.run(chaos)
	s.chaos = false
	for _, resource := range []string{s.resource, objects.PodResource} {
		s.subject.feeds[resource].release(s)
	}
	s.append(history.Record{Phase: &history.Phase{Name: history.PhaseSettle}})
	s.settle(time.Minute)
	s.append(history.Record{Phase: &history.Phase{Name: history.PhaseQuiet}})
	s.run(s.now + testSettings.Quiet)
	s.append(history.Record{Phase: &history.Phase{Name: history.PhaseEnd}})
	return s
}

// settle runs the simulation until Settled reports that all objects have converged, but at most
// for the time within.
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

// all returns the records of the history in the form that Run needs.
func (s *cluster) all() iter.Seq2[*history.Record, error] {
	return (&historyBuilder{records: s.records}).all()
}
