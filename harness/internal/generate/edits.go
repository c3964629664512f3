package generate

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	editing "github.com/kube-gauntlet/gauntlet/faults/users"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// editor draws the steps of user-edit faults. In such a fault, another user changes objects of
// the workload.
type editor struct {
	*rand.Rand
	profile  Profile
	steps    []scenario.Step   // the steps of the workload
	before   int               // edits begin at steps whose index is lower than this number
	existing []scenario.Target // objects that exist when the workload ends
	edited   []scenario.Target // objects that a user-edit fault of the scenario already changes
}

// newEditor returns an editor for a scenario. The editor does not change objects that a
// user-edit fault of the scenario already changes. Its changes begin at steps of the workload whose
// index is lower than the argument before.
func newEditor(r *rand.Rand, profile Profile, s *scenario.Scenario, before int) *editor {
	e := &editor{Rand: r, profile: profile, steps: s.Workload, before: before, existing: s.ExistingObjects()}
	for _, fault := range s.Faults {
		for _, step := range editsOf(fault) {
			target, _ := step.Target()
			e.edited = append(e.edited, target)
		}
	}
	return e
}

// draw draws the steps and the trigger of an edit, which is a change by another user. If none of
// editTriesMax draws is valid, it returns nil. An edit is valid under three conditions:
//
//   - The edited object exists when the trigger matches.
//   - No other edit changes the object.
//   - The workload does not delete the object later.
func (e *editor) draw() ([]scenario.Step, *scenario.Trigger) {
	for range editTriesMax {
		if steps, when := e.try(); steps != nil {
			return steps, when
		}
	}
	return nil, nil
}

// editTriesMax is the number of draws after which [editor.draw] gives up.
const editTriesMax = 20

// try draws one edit, which is a change by another user. The trigger of the edit is the
// beginning or the end of a step of the workload. try returns nil if the edit is not valid.
func (e *editor) try() ([]scenario.Step, *scenario.Trigger) {
	at := e.IntN(e.before)
	target, acts := e.steps[at].Target()
	if !acts || !editable(target) || !slices.Contains(e.existing, target) || slices.Contains(e.edited, target) || e.deleted(target, at) {
		return nil, nil
	}
	o, made := e.objectAt(target, at)
	edge := scenario.Done
	if !made && e.IntN(2) == 0 {
		edge = scenario.Begun // the edit happens just before the operation of the step
	}
	return e.changes(o, e.unused(target, at, edge)), &scenario.Trigger{Step: &scenario.StepTrigger{Index: at, At: edge}}
}

// editable reports whether another user may change an object: an object with replicas or a Service.
func editable(target scenario.Target) bool {
	return target.Kind != scenario.Pod && target.Kind != scenario.Endpoints
}

// deleted reports whether the workload deletes the object in the step at the given index or
// later. It returns true even if a later step creates the object again.
func (e *editor) deleted(target scenario.Target, at int) bool {
	return slices.ContainsFunc(e.steps[at:], func(step scenario.Step) bool {
		del, ok := step.Operation.(*scenario.Delete)
		return ok && del.Target == target
	})
}

// unused reports whether no later step of the workload acts on the object or waits for the
// object.
//
// The arguments at and edge say when the edit happens. The argument at is the index of a step, and
// the argument edge is the beginning or the end of this step. A later step is one whose operation
// follows the edit. If edge is the beginning, the step with the index at is such a step too.
func (e *editor) unused(target scenario.Target, at int, edge scenario.Edge) bool {
	if edge == scenario.Done {
		at++
	}
	return !slices.ContainsFunc(e.steps[at:], func(step scenario.Step) bool {
		on, acts := step.Target()
		return acts && on == target || step.Await != nil && step.Await.Target == target
	})
}

// objectAt returns the object as it is after the step with the given index. The result o is nil if
// no step so far has created the object. The result made is true if the step with the given index
// has created the object.
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

// changes draws a change of an object and returns the steps of the change.
//
// The argument unused says whether no later step of the workload uses the object. If later steps
// use the object, and the drawn change could make these steps fail, changes returns nil.
func (e *editor) changes(o *object, unused bool) []scenario.Step {
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
	if drawn.needsUnused && !unused {
		return nil
	}
	return drawn.do(e, o)
}

// change is one sort of change that another user may make to a workload's object, such as a
// rollout.
type change struct {
	// needsUnused is true if the change could make later steps of the workload fail. The editor
	// then makes the change only if no later step uses the object.
	needsUnused bool
	// do returns the steps of the change. It returns nil if the change is not possible.
	do func(*editor, *object) []scenario.Step
}

// These are the changes from which [editor.changes] draws, for each group of kinds. A change that
// occurs twice has twice the probability.
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

// one wraps an operation as a list with one step, because a change consists of a list of steps.
func one(operation scenario.Operation) []scenario.Step {
	return []scenario.Step{{Operation: operation}}
}

// rescale returns a step that sets a random number of replicas, which may equal the old number.
// It does not scale down a Deployment with maxSurge 0; [Profile.scalesUpOnly] says why.
func (e *editor) rescale(o *object) []scenario.Step {
	replicas := e.IntN(o.replicas + 5)
	if e.profile.scalesUpOnly(o.create) {
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

// pause returns steps that pause a Deployment, and resume the Deployment after at most a second.
func (e *editor) pause(o *object) []scenario.Step {
	resume := scenario.Step{After: faults.PickTime(e.Rand, timeStep, time.Second, timeStep), Operation: &scenario.Resume{Target: o.Target}}
	return append(one(&scenario.Pause{Target: o.Target}), resume)
}

// newSelector returns a step that changes the selector of an object to labels that no pod has. A
// Service then selects no pod, and a ReplicationController releases all its pods.
func (e *editor) newSelector(o *object) []scenario.Step {
	return one(&scenario.Select{Target: o.Target, Selector: map[string]string{"app": o.Name + "-another"}})
}

func (e *editor) newPorts(o *object) []scenario.Step { return one(e.users().publication(o)) }

// remove returns a step that deletes an object. At least one object with replicas must stay that no
// other user edits or deletes. For the last such object, remove returns nil.
func (e *editor) remove(o *object) []scenario.Step {
	owners := 0
	for _, target := range e.existing {
		if editable(target) && target.Kind != scenario.Service && !slices.Contains(e.edited, target) {
			owners++
		}
	}
	if owner(o) && owners < 2 {
		return nil
	}
	return one(e.users().deletion(o))
}

// recreate returns two steps. The first step deletes an object and waits until the object is
// gone. The second step creates the object again with its original fields.
func (e *editor) recreate(o *object) []scenario.Step {
	gone := &scenario.Delete{Target: o.Target, Propagation: faults.Pick(e.Rand, scenario.Background, scenario.Orphan)}
	return []scenario.Step{
		{Operation: gone, Await: &scenario.Await{Target: o.Target, Until: scenario.Gone, Within: spanMax}},
		{Operation: o.create},
	}
}

// users returns a value of type users that has no objects. The editor uses it to draw single
// operations with the editor's own source of random numbers.
func (e *editor) users() *users { return &users{Rand: e.Rand, profile: e.profile} }

// withEdits returns the steps of the workload together with the steps of all user-edit faults in
// the list all. The generator checks both sorts of steps for known upstream issues.
func withEdits(steps []scenario.Step, all []scenario.Fault) []scenario.Step {
	steps = slices.Clip(steps)
	for _, fault := range all {
		steps = append(steps, editsOf(fault)...)
	}
	return steps
}

// editsOf returns the steps of a user-edit fault, which are changes by another user. It returns
// nil for any other fault.
func editsOf(fault scenario.Fault) []scenario.Step {
	var p editing.EditParams
	if fault.Name != editing.Edit.Name || fault.Params.Decode(&p) != nil {
		return nil
	}
	return p.Steps
}
