package generate

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	editing "github.com/kube-gauntlet/gauntlet/faults/users"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// editor draws what other users do to what the workload's own are at work on.
type editor struct {
	*rand.Rand
	steps  []scenario.Step
	living []scenario.Target // that the workload leaves behind
	edited []scenario.Target // that other users change already
}

func newEditor(r *rand.Rand, s *scenario.Scenario) *editor {
	e := &editor{Rand: r, steps: s.Workload, living: s.ExistingObjects()}
	for _, fault := range s.Faults {
		for _, step := range editsOf(fault) {
			target, _ := step.Target()
			e.edited = append(e.edited, target)
		}
	}
	return e
}

// draw draws an edit, and its moment, of something that is there at a step, nobody
// else edits and the workload does not delete from then on; or nil.
func (e *editor) draw() ([]scenario.Step, *scenario.Trigger) {
	for range editTriesMax {
		if steps, when := e.try(); steps != nil {
			return steps, when
		}
	}
	return nil, nil
}

// editTriesMax is how often an edit is drawn anew that does not fit.
const editTriesMax = 20

func (e *editor) try() ([]scenario.Step, *scenario.Trigger) {
	at := e.IntN(len(e.steps))
	target, acts := e.steps[at].Target()
	if !acts || target.Kind == scenario.Pod || !slices.Contains(e.living, target) || slices.Contains(e.edited, target) || e.ends(target, at) {
		return nil, nil
	}
	o, made := e.objectAt(target, at)
	edge := scenario.Done
	if !made && e.IntN(2) == 0 {
		edge = scenario.Begun // just before the other one
	}
	return e.changes(o, e.left(target, at, edge)), &scenario.Trigger{Step: &scenario.StepTrigger{Index: at, At: edge}}
}

// ends reports whether the workload deletes the object at a step or later, maybe
// to make another one of its name.
func (e *editor) ends(target scenario.Target, at int) bool {
	return slices.ContainsFunc(e.steps[at:], func(step scenario.Step) bool {
		del, ok := step.Operation.(*scenario.Delete)
		return ok && del.Target == target
	})
}

// left reports whether the workload leaves the object alone from a step on.
func (e *editor) left(target scenario.Target, at int, edge scenario.Edge) bool {
	if edge == scenario.Done {
		at++
	}
	return !slices.ContainsFunc(e.steps[at:], func(step scenario.Step) bool {
		on, acts := step.Target()
		return acts && on == target || step.Await != nil && step.Await.Target == target
	})
}

// objectAt is what the workload has made of an object by a step, and whether that
// step has only just made it.
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

// changes draws what becomes of an object. What the workload is still to act on,
// or to wait for, is neither deleted nor paused.
func (e *editor) changes(o *object, left bool) []scenario.Step {
	changes := ownerChanges
	switch o.Kind {
	case scenario.Deployment:
		changes = append(slices.Clip(changes), deploymentChanges...)
	case scenario.ReplicationController:
		changes = append(slices.Clip(changes), change{leaves: true, do: (*editor).newSelector})
	case scenario.Service:
		changes = serviceChanges
	}
	drawn := faults.Pick(e.Rand, changes...)
	if drawn.leaves && !left {
		return nil
	}
	return drawn.do(e, o)
}

// change is something that another user may do to an object, in steps.
type change struct {
	leaves bool // what the workload does later to the object might fail
	do     func(*editor, *object) []scenario.Step
}

var (
	ownerChanges = []change{
		{do: (*editor).rescale},
		{do: (*editor).reconfigure},
		{do: (*editor).retouch},
		{leaves: true, do: (*editor).drop},
	}
	deploymentChanges = []change{
		{do: (*editor).rescale},
		{do: (*editor).reconfigure},
		{do: (*editor).newTemplate},
		{do: (*editor).newTemplate},
		{do: (*editor).takeBack},
		{leaves: true, do: (*editor).halt},
		{leaves: true, do: (*editor).anew},
	}
	serviceChanges = []change{
		{do: (*editor).newPorts},
		{do: (*editor).newSelector},
		{leaves: true, do: (*editor).drop},
		{leaves: true, do: (*editor).anew},
	}
)

func one(operation scenario.Operation) []scenario.Step {
	return []scenario.Step{{Operation: operation}}
}

func (e *editor) rescale(o *object) []scenario.Step {
	replicas := e.IntN(o.replicas + 5)
	if neverDown(o.create) {
		replicas = o.replicas + e.IntN(5)
	}
	return one(&scenario.Scale{Target: o.Target, Replicas: &replicas})
}

func (e *editor) reconfigure(o *object) []scenario.Step { return one(e.users().configuration(o)) }

func (e *editor) retouch(o *object) []scenario.Step {
	return one(&scenario.Label{Target: o.Target, Labels: map[string]string{"touched": "by-another"}})
}

func (e *editor) newTemplate(o *object) []scenario.Step {
	return one(&scenario.Rollout{Target: o.Target, Version: faults.Pick(e.Rand, "v1", "v2", "another")})
}

func (e *editor) takeBack(o *object) []scenario.Step {
	return one(&scenario.Rollback{Target: o.Target})
}

// halt pauses a Deployment for a time.
func (e *editor) halt(o *object) []scenario.Step {
	resume := scenario.Step{After: faults.PickTime(e.Rand, tick, time.Second, tick), Operation: &scenario.Resume{Target: o.Target}}
	return append(one(&scenario.Pause{Target: o.Target}), resume)
}

// newSelector has a Service select nothing any more, or a ReplicationController let
// all its pods go.
func (e *editor) newSelector(o *object) []scenario.Step {
	return one(&scenario.Select{Target: o.Target, Selector: map[string]string{"app": o.Name + "-another"}})
}

func (e *editor) newPorts(o *object) []scenario.Step { return one(e.users().publication(o)) }

// drop deletes an object, but not the last owner.
func (e *editor) drop(o *object) []scenario.Step {
	owners := 0
	for _, target := range e.living {
		if target.Kind != scenario.Pod && target.Kind != scenario.Service && !slices.Contains(e.edited, target) {
			owners++
		}
	}
	if owner(o) && owners < 2 {
		return nil
	}
	return one(e.users().deletion(o))
}

// anew deletes an object and makes another of its name.
func (e *editor) anew(o *object) []scenario.Step {
	gone := &scenario.Delete{Target: o.Target, Propagation: faults.Pick(e.Rand, scenario.Background, scenario.Orphan)}
	return []scenario.Step{
		{Operation: gone, Await: &scenario.Await{Target: o.Target, Until: scenario.Gone, Within: spanMax}},
		{Operation: o.create},
	}
}

// users draw what depends on nothing but the object.
func (e *editor) users() *users { return &users{Rand: e.Rand} }

// withEdits is what all users do in a scenario with these faults.
func withEdits(steps []scenario.Step, all []scenario.Fault) []scenario.Step {
	steps = slices.Clip(steps)
	for _, fault := range all {
		steps = append(steps, editsOf(fault)...)
	}
	return steps
}

// editsOf are the steps of a user-edit; other faults have none.
func editsOf(fault scenario.Fault) []scenario.Step {
	var p editing.EditParams
	if fault.Name != editing.Edit.Name || fault.Params.Decode(&p) != nil {
		return nil
	}
	return p.Steps
}
