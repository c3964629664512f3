package generate

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	editing "github.com/kube-gauntlet/gauntlet/faults/users"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// editor draws the operations of other users on objects of the workload.
type editor struct {
	*rand.Rand
	steps    []scenario.Step
	existing []scenario.Target // objects that exist when the workload ends
	edited   []scenario.Target // objects that other users already change
}

func newEditor(r *rand.Rand, s *scenario.Scenario) *editor {
	e := &editor{Rand: r, steps: s.Workload, existing: s.ExistingObjects()}
	for _, fault := range s.Faults {
		for _, step := range editsOf(fault) {
			target, _ := step.Target()
			e.edited = append(e.edited, target)
		}
	}
	return e
}

// draw draws an edit and its trigger. It returns nil if no valid edit is found. An edit is
// valid if its object exists at the trigger, no other edit changes the object, and the
// workload does not delete it later.
func (e *editor) draw() ([]scenario.Step, *scenario.Trigger) {
	for range editTriesMax {
		if steps, when := e.try(); steps != nil {
			return steps, when
		}
	}
	return nil, nil
}

// editTriesMax is the maximum number of draws until an edit is valid.
const editTriesMax = 20

func (e *editor) try() ([]scenario.Step, *scenario.Trigger) {
	at := e.IntN(len(e.steps))
	target, acts := e.steps[at].Target()
	if !acts || target.Kind == scenario.Pod || !slices.Contains(e.existing, target) || slices.Contains(e.edited, target) || e.deleted(target, at) {
		return nil, nil
	}
	o, made := e.objectAt(target, at)
	edge := scenario.Done
	if !made && e.IntN(2) == 0 {
		edge = scenario.Begun // just before the operation of the workload
	}
	return e.changes(o, e.unused(target, at, edge)), &scenario.Trigger{Step: &scenario.StepTrigger{Index: at, At: edge}}
}

// deleted reports whether the workload deletes the object at a given step or later. It
// returns true even if the workload then creates the object again.
func (e *editor) deleted(target scenario.Target, at int) bool {
	return slices.ContainsFunc(e.steps[at:], func(step scenario.Step) bool {
		del, ok := step.Operation.(*scenario.Delete)
		return ok && del.Target == target
	})
}

// unused reports whether no later step of the workload acts on the object.
func (e *editor) unused(target scenario.Target, at int, edge scenario.Edge) bool {
	if edge == scenario.Done {
		at++
	}
	return !slices.ContainsFunc(e.steps[at:], func(step scenario.Step) bool {
		on, acts := step.Target()
		return acts && on == target || step.Await != nil && step.Await.Target == target
	})
}

// objectAt returns the state of the object after a step, and reports whether that step
// created it.
func (e *editor) objectAt(target scenario.Target, at int) (o *object, made bool) {
	for i, step := range e.steps[:at+1] {
		if on, acts := step.Target(); !acts || on != target {
			continue
		}
		switch op := step.Operation.(type) {
		case *scenario.Create:
			o = &object{Target: target, create: op}
			if op.Replicas != nil {
				o.replicas = *op.Replicas
			}
			made = i == at
		case *scenario.Scale:
			o.replicas = *op.Replicas
		case *scenario.Rollout:
			if op.Replicas != nil {
				o.replicas = *op.Replicas
			}
		}
	}
	return o, made
}

// changes draws a change of an object. It neither deletes nor pauses an object that a
// later step acts on or waits for.
func (e *editor) changes(o *object, left bool) []scenario.Step {
	changes := ownerChanges
	switch o.Kind {
	case scenario.Deployment:
		changes = append(slices.Clip(changes), deploymentChanges...)
	case scenario.ReplicationController:
		changes = append(slices.Clip(changes), change{needsUnused: true, do: (*editor).newSelector})
	case scenario.Service:
		changes = serviceChanges
	}
	drawn := faults.Pick(e.Rand, changes...)
	if drawn.needsUnused && !left {
		return nil
	}
	return drawn.do(e, o)
}

// change is a change of an object by another user.
type change struct {
	needsUnused bool // later steps of the workload might fail, so none may use the object
	do          func(*editor, *object) []scenario.Step
}

var (
	ownerChanges = []change{
		{do: (*editor).rescale},
		{do: (*editor).reconfigure},
		{do: (*editor).relabel},
		{needsUnused: true, do: (*editor).remove},
	}
	deploymentChanges = []change{
		{do: (*editor).rescale},
		{do: (*editor).reconfigure},
		{do: (*editor).newTemplate},
		{do: (*editor).newTemplate},
		{do: (*editor).rollBack},
		{needsUnused: true, do: (*editor).pause},
		{needsUnused: true, do: (*editor).recreate},
	}
	serviceChanges = []change{
		{do: (*editor).newPorts},
		{do: (*editor).newSelector},
		{needsUnused: true, do: (*editor).remove},
		{needsUnused: true, do: (*editor).recreate},
	}
)

func one(operation scenario.Operation) []scenario.Step {
	return []scenario.Step{{Operation: operation}}
}

func (e *editor) rescale(o *object) []scenario.Step {
	replicas := e.IntN(o.replicas + 5)
	if scalesUpOnly(o.create) {
		replicas = o.replicas + e.IntN(5)
	}
	return one(&scenario.Scale{Target: o.Target, Replicas: &replicas})
}

func (e *editor) reconfigure(o *object) []scenario.Step { return one(e.users().configuration(o)) }

func (e *editor) relabel(o *object) []scenario.Step {
	return one(&scenario.Label{Target: o.Target, Labels: map[string]string{"touched": "by-another"}})
}

func (e *editor) newTemplate(o *object) []scenario.Step {
	return one(&scenario.Rollout{Target: o.Target, Version: faults.Pick(e.Rand, "v1", "v2", "another")})
}

func (e *editor) rollBack(o *object) []scenario.Step {
	return one(&scenario.Rollback{Target: o.Target})
}

// pause pauses a Deployment for some time.
func (e *editor) pause(o *object) []scenario.Step {
	resume := scenario.Step{After: faults.PickTime(e.Rand, timeStep, time.Second, timeStep), Operation: &scenario.Resume{Target: o.Target}}
	return append(one(&scenario.Pause{Target: o.Target}), resume)
}

// newSelector changes the selector, so that a Service selects no pod and a
// ReplicationController releases all its pods.
func (e *editor) newSelector(o *object) []scenario.Step {
	return one(&scenario.Select{Target: o.Target, Selector: map[string]string{"app": o.Name + "-another"}})
}

func (e *editor) newPorts(o *object) []scenario.Step { return one(e.users().publication(o)) }

// remove deletes an object, unless it is the last owner.
func (e *editor) remove(o *object) []scenario.Step {
	owners := 0
	for _, target := range e.existing {
		if target.Kind != scenario.Pod && target.Kind != scenario.Service && !slices.Contains(e.edited, target) {
			owners++
		}
	}
	if owner(o) && owners < 2 {
		return nil
	}
	return one(e.users().deletion(o))
}

// recreate deletes an object and creates another one with its name.
func (e *editor) recreate(o *object) []scenario.Step {
	gone := &scenario.Delete{Target: o.Target, Propagation: faults.Pick(e.Rand, scenario.Background, scenario.Orphan)}
	return []scenario.Step{
		{Operation: gone, Await: &scenario.Await{Target: o.Target, Until: scenario.Gone, Within: spanMax}},
		{Operation: o.create},
	}
}

// users returns an empty set of users, whose random choices come from the editor. Edits use
// it to draw operations on one object.
func (e *editor) users() *users { return &users{Rand: e.Rand} }

// withEdits returns the steps of the workload and of all edits among the faults.
func withEdits(steps []scenario.Step, all []scenario.Fault) []scenario.Step {
	steps = slices.Clip(steps)
	for _, fault := range all {
		steps = append(steps, editsOf(fault)...)
	}
	return steps
}

// editsOf returns the steps of a user-edit. It returns nil for any other fault.
func editsOf(fault scenario.Fault) []scenario.Step {
	var p editing.EditParams
	if fault.Name != editing.Edit.Name || fault.Params.Decode(&p) != nil {
		return nil
	}
	return p.Steps
}
