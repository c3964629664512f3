package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// object is what the workload has made so far.
type object struct {
	step    int // that made it
	deleted int // the step that deleted it, or -1
}

// workload checks each step, and that it acts on what is there by then.
func (v *validator) workload(steps []Step) {
	v.steps("workload", steps)
	objects := map[Target]*object{}
	for i := range steps {
		step, path := &steps[i], fmt.Sprintf("workload[%d]", i)
		v.step(path, step)
		if v.err != nil {
			return // what follows relies on a well-formed step
		}
		v.presence(path, i, step, objects)
	}
}

// steps checks that there are some, and not too many.
func (v *validator) steps(path string, steps []Step) {
	v.check(len(steps) > 0, path, "found no step; expected at least one")
	v.check(len(steps) <= stepsMax, path, "found %d steps; expected at most %d", len(steps), stepsMax)
}

// step checks that the step does something, and that by itself it makes sense.
func (v *validator) step(path string, step *Step) {
	v.duration(path+".after", step.After, 0, afterMax)
	v.check(step.Operation != nil || step.Await != nil, path, "found no operation; expected %s or await", strings.Join(operationNames(), ", "))
	if step.Operation != nil {
		row := operationOf(step.Operation)
		at := join(path, row.name)
		v.target(at, step.Operation.target(), row.kinds)
		step.Operation.validate(v, at)
	}
	if step.Await != nil {
		v.target(path+".await", &step.Await.Target, allKinds)
		oneOf(v, path+".await.until", step.Await.Until, step.Await.Kind.row().untils...)
		v.duration(path+".await.within", step.Await.Within, withinMin, withinMax)
	}
}

func (v *validator) target(path string, target *Target, known []Kind) {
	oneOf(v, path+".kind", target.Kind, known...)
	v.name(path+".name", target.Name)
}

// presence checks that the step's objects are there, or not, as it needs, and
// keeps count of them.
func (v *validator) presence(path string, i int, step *Step, objects map[Target]*object) {
	if target, ok := step.Target(); ok {
		row := operationOf(step.Operation)
		at, known := join(path, row.name)+".name", objects[target]
		switch row.effect {
		case makes:
			v.check(known == nil || known.deleted >= 0, at,
				"%s exists already; expected a name that workload[%d] has not used", target, stepOf(known))
			objects[target] = &object{step: i, deleted: -1}
		case uses:
			v.exists(at, target, known)
		case ends:
			if v.exists(at, target, known) {
				known.deleted = i
			}
		}
	}
	if step.Await != nil {
		v.awaited(path+".await", step.Await, objects)
	}
}

func (v *validator) awaited(path string, await *Await, objects map[Target]*object) {
	target := await.Target
	known := objects[target]
	if await.Until != Gone {
		v.exists(path+".name", target, known)
		return
	}
	v.check(known != nil, path+".name", "no step before this one creates %s", target)
	v.check(known == nil || known.deleted >= 0, path+".until", "found gone, but no step before this one deletes %s", target)
}

// exists demands that the target has been created and not deleted.
func (v *validator) exists(path string, target Target, known *object) bool {
	v.check(known != nil, path, "no step before this one creates %s", target)
	v.check(known == nil || known.deleted < 0, path, "%s is deleted by workload[%d]", target, deletionOf(known))
	return known != nil && known.deleted < 0
}

func stepOf(o *object) int {
	if o == nil {
		return -1
	}
	return o.step
}

func deletionOf(o *object) int {
	if o == nil {
		return -1
	}
	return o.deleted
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
