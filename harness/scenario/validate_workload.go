package scenario

import (
	"fmt"
	"maps"
	"slices"
)

// object is what the workload has made so far.
type object struct {
	step    int // that made it
	deleted int // the step that deleted it, or -1
}

// workload checks each step, and that it acts on what is there by then.
func (v *validator) workload(steps []Step) {
	v.check(len(steps) > 0, "workload", "found no step; expected at least one")
	v.check(len(steps) <= stepsMax, "workload", "found %d steps; expected at most %d", len(steps), stepsMax)
	objects := map[Target]*object{}
	for i := range steps {
		step, path := &steps[i], fmt.Sprintf("workload[%d]", i)
		v.duration(path+".after", step.After, 0, afterMax)
		v.operations(path, step)
		if v.err != nil {
			return // what follows relies on a well-formed step
		}
		v.presence(path, i, step, objects)
	}
}

// operations checks that the step does something, and one thing.
func (v *validator) operations(path string, step *Step) {
	count := 0
	if step.Create != nil {
		count++
		v.create(path+".create", step.Create)
	}
	if step.Scale != nil {
		count++
		oneOf(v, path+".scale.kind", step.Scale.Kind, knownKinds(true)...)
		v.name(path+".scale.name", step.Scale.Name)
		v.replicas(path+".scale.replicas", step.Scale.Replicas)
	}
	if step.Delete != nil {
		count++
		oneOf(v, path+".delete.kind", step.Delete.Kind, knownKinds(false)...)
		v.name(path+".delete.name", step.Delete.Name)
		oneOf(v, path+".delete.propagation", step.Delete.Propagation, Background, Foreground, Orphan)
	}
	v.check(count <= 1, path, "found several operations; expected one a step: create, scale or delete")
	v.check(count == 1 || step.Await != nil, path, "found no operation; expected create, scale, delete or await")
	if step.Await != nil {
		oneOf(v, path+".await.kind", step.Await.Kind, knownKinds(false)...)
		v.name(path+".await.name", step.Await.Name)
		oneOf(v, path+".await.until", step.Await.Until, step.Await.Kind.untils()...)
		v.duration(path+".await.within", step.Await.Within, withinMin, withinMax)
	}
}

func (v *validator) create(path string, create *Create) {
	oneOf(v, path+".kind", create.Kind, knownKinds(false)...)
	v.name(path+".name", create.Name)
	v.number(path+".count", create.Count, 1, countMax)
	for _, name := range create.Names() {
		v.name(path+".name", name)
	}
	v.labels(path+".labels", create.Labels)
	v.labels(path+".selector", create.Selector)
	v.number(path+".minReadySeconds", create.MinReadySeconds, 0, minReadySecondsMax)
	oneOf(v, path+".controller", create.Controller, NoController, ForeignController)

	if create.Kind.owner() {
		v.replicas(path+".replicas", create.Replicas)
		v.check(create.Count == 1, path+".count", "found %d; expected 1: only pods come in numbers", create.Count)
		v.check(create.Controller == NoController, path+".controller", "only pods can be put under a controller")
		for _, key := range sortedKeys(create.Selector) {
			v.check(create.Labels[key] == create.Selector[key], path+".selector",
				"found %s: %s, which the labels do not have; expected a selector that matches them", key, create.Selector[key])
		}
		return
	}
	v.check(create.Replicas == nil, path+".replicas", "a %s has no replicas; leave it out, or use count", create.Kind)
	v.check(len(create.Selector) == 0, path+".selector", "a %s has no selector; leave it out", create.Kind)
	v.check(create.MinReadySeconds == 0, path+".minReadySeconds", "a %s has no minReadySeconds; leave it out", create.Kind)
}

func (v *validator) replicas(path string, replicas *int) {
	if replicas == nil {
		v.check(false, path, "found nothing; expected 0 to %d", replicasMax)
		return
	}
	v.number(path, *replicas, 0, replicasMax)
}

// presence checks that the step's objects are there, or not, as it needs, and
// keeps count of them.
func (v *validator) presence(path string, i int, step *Step, objects map[Target]*object) {
	if target, ok := step.Target(); ok {
		known := objects[target]
		switch {
		case step.Create != nil:
			v.check(known == nil || known.deleted >= 0, path+".create.name",
				"%s exists already; expected a name that workload[%d] has not used", target, stepOf(known))
			objects[target] = &object{step: i, deleted: -1}
		case step.Scale != nil:
			v.exists(path+".scale.name", target, known)
		default:
			if v.exists(path+".delete.name", target, known) {
				known.deleted = i
			}
		}
	}
	if step.Await != nil {
		v.awaited(path+".await", step.Await, objects)
	}
}

func (v *validator) awaited(path string, await *Await, objects map[Target]*object) {
	target := Target{await.Kind, await.Name}
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

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
