package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// object has the indexes of the steps that create and delete an object of the workload. With
// these indexes, the validator finds out whether a later step acts on a missing object.
type object struct {
	step    int // index of the step that creates the object
	deleted int // index of the step that deletes the object, or -1 if no step does
}

// workload records the errors about the steps of the workload. When a step begins, the step's
// object must exist. For a step that creates the object, the object must not exist. The method
// also records the errors about the external workload and the field operator.
func (v *validator) workload(steps []Step) {
	v.operator(v.scenario.Operator)
	v.externalWorkload(v.scenario.ExternalWorkload)
	if v.scenario.ExternalWorkload == nil {
		v.steps("workload", steps)
	}
	objects := map[Target]*object{}
	known := true // whether the objects of this step and of all earlier steps are known
	for i := range steps {
		step, path := &steps[i], stepPath(i)
		v.step(path, step)
		if known = known && v.knownObjects(path, step); known {
			v.presence(path, i, step, objects)
		}
	}
}

// knownObjects reports whether the fields that name the objects of a step are valid.
func (v *validator) knownObjects(path string, step *Step) bool {
	if step.Operation == nil && step.Await == nil {
		return !v.invalid(path)
	}
	var fields []string
	if step.Operation != nil {
		at := join(path, operationOf(step.Operation).name)
		fields = append(fields, at+".kind", at+".apiVersion", at+".name", at+".count")
	}
	if step.Await != nil && step.Await.Until != Quiet {
		fields = append(fields, path+".await.kind", path+".await.name", path+".await.until")
	}
	return !slices.ContainsFunc(fields, v.invalid)
}

// stepPath returns the path of a step of the workload, such as "workload[2]".
func stepPath(i int) string { return fmt.Sprintf("workload[%d]", i) }

// steps records an error about the list of steps at path if it is empty or longer than stepsMax.
func (v *validator) steps(path string, steps []Step) {
	v.check(len(steps) > 0, path, "found no step; expected at least one")
	v.check(len(steps) <= stepsMax, path, "found %d steps; expected at most %d", len(steps), stepsMax)
}

// step records the errors about one step by itself. It does not check whether the step's object
// exists, because that depends on the other steps.
func (v *validator) step(path string, step *Step) {
	v.bounded(path, step)
	v.check(step.Operation != nil || step.Await != nil || step.After == 0, path, "found only the field after; expected it beside an operation or an await, which then begins after this time")
	v.check(step.Operation != nil || step.Await != nil, path, "found no operation; expected %s or await", strings.Join(operationNames(), ", "))
	if step.Operation != nil {
		row := operationOf(step.Operation)
		at := join(path, row.name)
		v.target(at, row, step.Operation.target())
		step.Operation.validate(v, at)
	}
	switch at := path + ".await"; {
	case step.Await == nil:
	case step.Await.Until == Quiet:
		v.check(step.Await.Kind == "", at+".kind", "found %s; expected no kind, because quiet is not about an object", step.Await.Kind)
		v.check(step.Await.Name == "", at+".name", "found %q; expected no name, because quiet is not about an object", step.Await.Name)
		v.bounded(at, step.Await)
	default:
		if step.Operation != nil && step.Await.Target == *step.Operation.target() {
			at = join(path, operationOf(step.Operation).name) // the await has the target of the operation
		} else {
			v.target(at, operation{effect: updates, kinds: allKinds, generic: true, kubernetes: true}, &step.Await.Target)
		}
		if !v.invalid(at+".kind") && !v.invalid(at+".apiVersion") { // the kind may be misspelled
			v.until(path+".await.until", step.Await)
		}
		v.bounded(path+".await", step.Await)
	}
}

// target records errors about the kind and the name of the object on which an operation acts. The
// argument row says which kinds the operation supports.
func (v *validator) target(path string, row operation, target *Target) {
	if kind, name, both := strings.Cut(string(target.Kind), "/"); both && target.Name == "" {
		v.check(false, path, "found kind: %.60s/%.60s; expected two fields, such as kind: %.60s and name: %.60s", kind, name, fullKind(kind), name)
		return
	}
	if row.generic && target.Kind != "" && target.Kind.IsGeneric() {
		v.genericTarget(path, row, target)
		return
	}
	expected := row.kinds
	if row.generic {
		expected = v.expectedKinds(row)
	}
	oneOf(v, path+".kind", target.Kind, expected...)
	v.name(path+".name", target.Name)
}

// fullKind returns the kind that a short name of kubectl such as deploy means. It returns any other text unchanged.
func fullKind(short string) string {
	for _, kind := range kube.Kinds {
		if slices.ContainsFunc([]string{kind.ShortName, kind.Name, kind.Name + "s", kind.Resource()}, func(name string) bool { return strings.EqualFold(name, short) }) {
			return kind.Name
		}
	}
	return short
}

// presence reports an error if the operation of step i needs an object that does not exist. It
// also reports an error if the operation creates an object that exists, or if an await waits for
// a missing object.
//
// The argument objects has the objects that earlier steps have created. presence updates this map
// for the checks of later steps.
func (v *validator) presence(path string, i int, step *Step, objects map[Target]*object) {
	if target, ok := step.Target(); ok {
		row := operationOf(step.Operation)
		at, known := join(path, row.name)+".name", objects[target]
		switch row.effect {
		case creates:
			v.check(known == nil || known.deleted >= 0, at,
				"found %s, but workload[%d] has created this object already; use another name", target, stepOf(known))
			objects[target] = &object{step: i, deleted: -1}
		case updates:
			v.exists(at, target, objects)
		case deletes:
			if v.exists(at, target, objects) {
				known.deleted = i
			}
		}
		if step.Await != nil && step.Await.Target == target && v.invalid(at) {
			return // the error about the operation suffices
		}
	}
	if step.Await != nil && step.Await.Until != Quiet {
		v.awaited(path+".await", step.Await, objects)
	}
}

// awaited reports an error if an await could never end because of its object. If the await waits
// until the object is gone, an earlier step must delete the object. For any other condition, the
// object must exist. The controllers under test may create an object of a kind that no step creates.
// In a scenario with the field operator, they may create any object.
func (v *validator) awaited(path string, await *Await, objects map[Target]*object) {
	target := await.Target
	known := objects[target]
	if known == nil && (v.scenario.Operator != nil || target.Kind.IsGeneric() && !hasKind(v.kinds, target.Kind)) {
		return
	}
	if await.Until != Gone {
		v.created(path+".name", target, objects, ", or the field operator: {} if the controllers under test create it")
		v.remains(path+".name", target, known)
		return
	}
	v.created(path+".name", target, objects, "")
	v.check(known == nil || known.deleted >= 0, path+".until", "found gone, but no earlier step deletes %s; add a delete step before this await", target)
}

// exists reports an error if no earlier step creates the target, or if an earlier step deletes
// the target. It returns true if the target exists. The argument objects has the objects that earlier
// steps create.
func (v *validator) exists(path string, target Target, objects map[Target]*object) bool {
	known := objects[target]
	v.created(path, target, objects, "")
	v.remains(path, target, known)
	return known != nil && known.deleted < 0
}

// created reports an error if no earlier step creates the target. The argument advice continues the
// advice in the error.
func (v *validator) created(path string, target Target, objects map[Target]*object, advice string) {
	v.check(objects[target] != nil, path, "found %s, but no earlier step creates this object; add a create step before this step%s%s", target, advice, similarObject(target, objects))
}

// remains reports an error if an earlier step deletes a target that is known.
func (v *validator) remains(path string, target Target, known *object) {
	v.check(known == nil || known.deleted < 0, path, "found %s, but workload[%d] deletes this object; expected an object that exists", target, deletionOf(known))
}

// similarObject returns the suggestion of an object whose kind is that of the target and whose name is
// similar.
func similarObject(target Target, objects map[Target]*object) string {
	var names []string
	for other := range objects {
		if other.Kind == target.Kind && other != target {
			names = append(names, other.Name)
		}
	}
	slices.Sort(names)
	if i := strings.LastIndex(target.Name, "-"); i > 0 && target.Kind == Pod && slices.Contains(names, target.Name[:i]) {
		return fmt.Sprintf("; the name %s stands for all pods of its create step", target.Name[:i])
	}
	for other := range objects {
		row, _ := kube.Named(string(other.Kind))
		if controls(row, string(target.Kind)) && (target.Name == other.Name || strings.HasPrefix(target.Name, other.Name+"-")) {
			return fmt.Sprintf("; the names of the %ss of %s are generated, so name %s instead", target.Kind, other, other)
		}
	}
	return nearest.Suggestion(target.Name, names)
}

// stepOf returns the index of the step that creates the object, for an error message. It returns -1
// if o is nil.
func stepOf(o *object) int {
	if o == nil {
		return -1
	}
	return o.step
}

// deletionOf returns the index of the step that deletes the object, for an error message. It
// returns -1 if no step deletes the object, or if o is nil.
func deletionOf(o *object) int {
	if o == nil {
		return -1
	}
	return o.deleted
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
