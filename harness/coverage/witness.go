package coverage

import (
	"encoding/json"
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/trigger"
)

// witness follows one history.
type witness struct {
	table *Table
	// requests are those that have no answer yet, and watches; touched are those of
	// them that a fault touched, and what it did.
	requests map[uint64]*history.Request
	touched  map[uint64][]Cell
	awake    map[string]bool       // replicas that have written since they were started
	busy     map[history.Ref]Phase // objects that have not what they are to have
}

func newWitness(t *Table) *witness {
	return &witness{
		table: t, requests: map[uint64]*history.Request{}, touched: map[uint64][]Cell{},
		awake: map[string]bool{}, busy: map[history.Ref]Phase{},
	}
}

func (w *witness) observe(r *history.Record) {
	switch {
	case r.Request != nil:
		w.requests[r.Request.ID] = r.Request
		if r.Request.IsWrite() {
			w.awake[r.Request.Subject] = true
		}
	case r.Response != nil:
		w.answer(r.Response)
	case r.WatchClosed != nil:
		delete(w.requests, r.WatchClosed.ID)
	case r.Process != nil && r.Process.Event == history.ProcessStarted:
		delete(w.awake, r.Process.Name)
	case r.Commit != nil:
		w.commit(r.Commit)
	case r.Fault != nil && r.Fault.Event == history.FaultFired:
		w.fire(r.Fault)
	}
}

// fire counts what a fault did, or, where the subject's answer is to say what came
// of it, waits for that.
func (w *witness) fire(fault *history.Fault) {
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
	w.touched[request.ID] = append(w.touched[request.ID], cell)
}

// answer counts what came of a request that a fault touched. A watch goes on.
func (w *witness) answer(response *history.Response) {
	for _, cell := range w.touched[response.ID] {
		if response.Fault == cell.Fault {
			cell.Outcome = outcome(response)
		}
		w.table.cells[cell]++
	}
	delete(w.touched, response.ID)
	if request := w.requests[response.ID]; request != nil && (request.Verb != "watch" || !response.OK()) {
		delete(w.requests, response.ID)
	}
}

// finish counts what was never answered.
func (w *witness) finish() {
	for _, cells := range w.touched {
		for _, cell := range cells {
			cell.Outcome = "never answered"
			w.table.cells[cell]++
		}
	}
}

// outcome is what the subject got, and what had become of its request by then.
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

// commit takes in a version of an object.
func (w *witness) commit(t *history.Commit) {
	ref := t.Object.Ref
	ref.Version = 0
	delete(w.busy, ref)
	if t.Type == history.Deleted {
		return
	}
	switch ref.Resource {
	case "deployments.apps":
		if trigger.Is(scenario.Progressing, &t.Object) {
			w.busy[ref] = Rollout
		}
	case "replicasets.apps", "replicationcontrollers":
		if scaling(&t.Object) {
			w.busy[ref] = Scale
		}
	}
}

// scaling reports whether an owner reports another number of pods than it is to have.
func scaling(o *history.Object) bool {
	var body struct {
		Spec   struct{ Replicas *int }
		Status struct{ Replicas int }
	}
	if json.Unmarshal(o.Body, &body) != nil {
		return false
	}
	desired := 1
	if body.Spec.Replicas != nil {
		desired = *body.Spec.Replicas
	}
	return body.Status.Replicas != desired
}

// phase is what a replica is at work on; "" stands for all of them.
func (w *witness) phase(subject string) Phase {
	if starting := !w.awake[subject]; starting && (subject != "" || len(w.awake) == 0) {
		return StartUp
	}
	now := Steady
	for _, phase := range w.busy {
		if phase == Rollout {
			return Rollout
		}
		now = phase
	}
	return now
}
