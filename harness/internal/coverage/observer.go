package coverage

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/trigger"
)

// observer reads one history. It counts in a [Table] how often each type of fault acted, and on
// which requests or objects.
type observer struct {
	table *Table
	// requests contains the requests without a response and the open watches, by request ID. The
	// map faulty contains the cells of the faults that acted on a request without a response. Its
	// key is the request ID too.
	requests   map[uint64]*history.Request
	faulty     map[uint64][]Cell
	active     map[string]bool       // true for each replica of the controllers under test that has written since its start
	incomplete map[history.Ref]Phase // objects that are rolling out or scaling, with that phase
	decoder    *objects.Decoder
}

func newObserver(t *Table) *observer {
	return &observer{
		table: t, requests: map[uint64]*history.Request{}, faulty: map[uint64][]Cell{},
		active: map[string]bool{}, incomplete: map[history.Ref]Phase{}, decoder: objects.NewDecoder(),
	}
}

func (w *observer) observe(r *history.Record) {
	switch {
	case r.Request != nil:
		w.requests[r.Request.ID] = r.Request
		if r.Request.IsWrite() {
			w.active[r.Request.Subject] = true
		}
	case r.Response != nil:
		w.answer(r.Response)
	case r.WatchClosed != nil:
		delete(w.requests, r.WatchClosed.ID)
	case r.Process != nil && r.Process.Event == history.ProcessStarted:
		delete(w.active, r.Process.Name)
	case r.Commit != nil:
		w.commit(r.Commit)
	case r.Fault != nil && r.Fault.Event == history.FaultFired:
		w.fire(r.Fault)
	}
}

// fire counts that a fault acted, that is, changed something.
//
// If the fault acted on a request other than a watch, the outcome depends on the response. fire
// then only stores the combination in faulty, and the method answer counts it when the response
// arrives.
func (w *observer) fire(fault *history.Fault) {
	cell := Cell{Fault: fault.Name, Outcome: fault.Name, Phase: w.phase("")}
	if fault.Object != nil {
		cell.Resource = fault.Object.Resource
	}
	request := w.requests[fault.Request]
	if request == nil {
		w.table.cells[cell]++
		return
	}
	cell.Verb, cell.Resource, cell.Phase = request.Verb, request.Resource, w.phase(request.Subject)
	if request.Subresource != "" {
		cell.Resource += "/" + request.Subresource
	}
	if request.Verb == "watch" {
		w.table.cells[cell]++
		return
	}
	w.faulty[request.ID] = append(w.faulty[request.ID], cell)
}

// answer counts the faults that acted on a request, now that the response has arrived.
//
// A watch stays in the map requests after a successful response, because faults can still act on
// its events.
func (w *observer) answer(response *history.Response) {
	for _, cell := range w.faulty[response.ID] {
		if response.Fault == cell.Fault {
			cell.Outcome = outcome(response)
		}
		w.table.cells[cell]++
	}
	delete(w.faulty, response.ID)
	if request := w.requests[response.ID]; request != nil && (request.Verb != "watch" || !response.OK()) {
		delete(w.requests, response.ID)
	}
}

// finish counts the faults that acted on requests without a response. Call it at the end of the
// history.
func (w *observer) finish() {
	for _, cells := range w.faulty {
		for _, cell := range cells {
			cell.Outcome = "never answered"
			w.table.cells[cell]++
		}
	}
}

// outcome describes the response that the controllers under test received, and whether the API
// server received the request. An example is "refused, 503".
func outcome(r *history.Response) string {
	switch {
	case !r.Reached && r.Code == 0:
		return "broken off"
	case !r.Reached:
		return fmt.Sprintf("refused, %d", r.Code)
	case r.Code == 0:
		return "done, no answer"
	case r.Code != r.ServerCode:
		return fmt.Sprintf("done, answered %d", r.Code)
	}
	return "passed"
}

// commit records whether the new version of an object shows that the object is rolling out or
// scaling.
func (w *observer) commit(t *history.Commit) {
	ref := t.Object.Ref
	ref.Version = 0
	delete(w.incomplete, ref)
	if t.Type == history.Deleted {
		return
	}
	switch ref.Resource {
	case objects.DeploymentResource:
		if trigger.Is(w.decoder, scenario.Progressing, &t.Object) {
			w.incomplete[ref] = Rollout
		}
	case objects.ReplicaSetResource, objects.ReplicationControllerResource:
		if w.scaling(&t.Object) {
			w.incomplete[ref] = Scale
		}
	default:
		if phase := w.genericPhase(&t.Object); phase != Steady {
			w.incomplete[ref] = phase
		}
	}
}

// genericPhase returns what the controllers under test are doing with an object: Rollout, Scale or
// Steady. The object is not a Deployment, ReplicaSet or ReplicationController.
//
// The result is Rollout until the object's controller has observed the latest spec. After that,
// it is Scale while status.replicas differs from spec.replicas.
//
// The result is always Steady for kinds whose objects belong to another object, such as Pod. It
// is also Steady for kinds that route traffic, such as Service.
func (w *observer) genericPhase(o *history.Object) Phase {
	if kind, ok := kube.ByResource(o.Resource); ok && (kind.Role == kube.Child || kind.Role == kube.Routing) {
		return Steady
	}
	object, err := w.decoder.Generic(o)
	switch {
	case err != nil:
		return Steady
	case !object.Observed():
		return Rollout
	case object.Scaling():
		return Scale
	}
	return Steady
}

// scaling reports whether a ReplicaSet or ReplicationController is being scaled: its
// status.replicas differs from its spec.replicas.
func (w *observer) scaling(o *history.Object) bool {
	owner, err := w.decoder.Owner(objects.OwnerKindByResource(o.Resource), o)
	return err == nil && len(o.Body) > 0 && owner.Status.Replicas != owner.Replicas
}

// phase returns what a replica of the controllers under test was doing when a fault acted on it.
// The parameter subject is the name of the replica, or empty if the fault acted on no replica.
func (w *observer) phase(subject string) Phase {
	if starting := !w.active[subject]; starting && (subject != "" || len(w.active) == 0) {
		return StartUp
	}
	now := Steady
	for _, phase := range w.incomplete {
		if phase == Rollout {
			return Rollout
		}
		now = phase
	}
	return now
}
