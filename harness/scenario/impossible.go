package scenario

import (
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// This file has checks of [Scenario.CheckReachable] that depend on the order of the steps, and on the
// objects that exist in every cluster.

// subresourceVerbs lists the verbs with which the API server serves a subresource. It contains only the
// subresources that some verbs cannot have.
var subresourceVerbs = map[string][]string{
	"status": {"get", "update", "patch"}, "scale": {"get", "update", "patch"}, "resize": {"get", "update", "patch"}, "ephemeralcontainers": {"get", "update", "patch"},
	"binding": {"create"}, "eviction": {"create"}, "log": {"get"},
}

// CheckSubresourceVerb returns an error if the API server serves no request with this verb and this
// subresource.
func CheckSubresourceVerb(subresource, verb string) error {
	expected, listed := subresourceVerbs[subresource]
	if !listed || verb == "" || verb == AnyWrite || slices.Contains(expected, verb) {
		return nil
	}
	return fmt.Errorf("found %s with the verb %s, which no request has; expected the verb %s", subresource, verb, nearest.List(expected, "or"))
}

// position returns the place of a step's beginning or end in the order of a run.
func (s *StepTrigger) position() int {
	if s.At == Done {
		return 2*s.Index + 1
	}
	return 2 * s.Index
}

// latestStep returns the last step trigger of a chain of triggers, or nil if it has none.
func (t *Trigger) latestStep() *StepTrigger {
	for ; t != nil; t = t.After {
		if t.Step != nil {
			return t.Step
		}
	}
	return nil
}

// stepOrder reports an error about each trigger on a step that has passed before the trigger could
// match. Each step begins and ends once.
func (v *validator) stepOrder(path string, fault Fault) {
	for _, field := range []struct {
		name    string
		trigger *Trigger
	}{{".when", fault.When}, {".until", fault.Until}} {
		for t, at := field.trigger, path+field.name; t != nil; t, at = t.After, at+".after" {
			if earlier := t.After.latestStep(); t.Step != nil && earlier != nil {
				v.check(earlier.position() < t.Step.position(), at+".step", "found a trigger on step %d, %s, which must match after step %d, %s; expected a later step, because each step begins and ends once",
					t.Step.Index, t.Step.At, earlier.Index, earlier.At)
			}
		}
	}
	begins := fault.When.latestStep()
	v.check(fault.Times < 2 || fault.When == nil || fault.When.Step == nil, path+".times", "found %d, but the trigger of the fault matches once, because each step begins and ends once; remove the field times", fault.Times)
	ends := fault.Until.latestStep()
	switch {
	case ends == nil:
	case fault.When == nil:
		v.check(ends.position() > 0, path+".until.step", "found the beginning of step 0, but the fault begins later; expected a later step, or at: done")
	case begins != nil:
		v.check(begins.position() < ends.position(), path+".until", "found a trigger on step %d, %s, but the fault begins after step %d, %s; expected a later step", ends.Index, ends.At, begins.Index, begins.At)
	}
}

// namespacesOfCluster has the names of the namespaces that exist in every cluster before a workload.
var namespacesOfCluster = []string{"default", "kube-system", "kube-public", "kube-node-lease", workloadNamespace}

// workloadNamespace is the namespace of the workload.
const workloadNamespace = "gauntlet"

// existing reports an error for each step that creates a namespace that every cluster has.
func (v *validator) existing() {
	for i := range v.scenario.Workload {
		if create, ok := v.scenario.Workload[i].Operation.(*Create); ok && create.Kind == "Namespace" && create.kubeKind().GVR.Group == "" {
			v.check(!slices.Contains(namespacesOfCluster, create.Name), stepPath(i)+".create.name", "found %s, which exists before the workload; use another name", create.Target)
		}
	}
}

// paused reports an error for each await of the pods of a Deployment that was created with paused: true. Such a Deployment
// has no pods until a step resumes it. A paused Deployment is also never complete after a rollout. There is no error if an operator or a
// fault may resume it, or if it may adopt a ReplicaSet.
func (v *validator) paused() {
	if v.scenario.Operator != nil || v.scenario.createdMax(ReplicaSet, "") > 0 || slices.ContainsFunc(v.scenario.Faults, func(f Fault) bool { return f.Params.Steps() != nil }) {
		return
	}
	paused := map[string]bool{}  // the names of the Deployments that were created with paused: true
	sized := map[string]bool{}   // the names of the Deployments with replicas
	pauses := map[string]int{}   // the steps that pause a Deployment
	versions := map[string]int{} // the steps that start a rollout while a Deployment is paused
	for i := range v.scenario.Workload {
		step := &v.scenario.Workload[i]
		switch op := step.Operation.(type) {
		case *Create:
			if op.Kind == Deployment {
				sized[op.Name] = *op.Replicas > 0
				paused[op.Name] = op.Paused && sized[op.Name]
				delete(pauses, op.Name)
				delete(versions, op.Name)
			}
		case *Delete:
			if op.Propagation == Orphan {
				return // a new Deployment may adopt the ReplicaSets
			}
		case *Pause:
			pauses[op.Name] = i
		case *Rollout:
			if _, held := pauses[op.Name]; held {
				versions[op.Name] = i
			}
			sized[op.Name] = sized[op.Name] && (op.Replicas == nil || *op.Replicas > 0)
		case *Rollback:
			delete(pauses, op.Name)
		case *Resume:
			delete(paused, op.Name)
			delete(pauses, op.Name)
			delete(versions, op.Name)
		case *Scale:
			sized[op.Name] = *op.Replicas > 0
			paused[op.Name] = paused[op.Name] && sized[op.Name]
		case *Patch:
			delete(paused, op.Name) // the patch may resume the Deployment
			delete(pauses, op.Name)
			delete(versions, op.Name)
		}
		if await := step.Await; await != nil && await.Kind == Deployment {
			met := !slices.Contains([]Until{Scaled, Ready, Available, Complete}, await.Until) || !paused[await.Name]
			v.check(met, stepPath(i)+".await.until", "found %s, but Deployment %s was created with paused: true, so it has no pods; add a resume step before this await", await.Until, await.Name)
			rollout, held := versions[await.Name]
			complete := !held || !sized[await.Name] || v.scenario.rolledOut(await.Name, rollout)
			v.check(await.Until != Complete || complete, stepPath(i)+".await.until",
				"found complete, but workload[%d] pauses Deployment %s, so that the rollout of workload[%d] does not begin; add a resume step before this await",
				pauses[await.Name], await.Name, rollout)
		}
	}
}

// rolledOut reports whether an earlier step has given a Deployment the version of a rollout. The argument index is that of the rollout.
func (s *Scenario) rolledOut(name string, index int) bool {
	version := s.Workload[index].Operation.(*Rollout).Version
	for _, step := range s.Workload[:index] {
		switch op := step.Operation.(type) {
		case *Create:
			if op.Kind == Deployment && op.Name == name && op.Version == version {
				return true
			}
		case *Rollout:
			if op.Name == name && op.Version == version {
				return true
			}
		}
	}
	return false
}

// published reports an error for each step that publishes a Service without ports, or a headless one. Only a Service of
// the type ExternalName may have no ports, and only one of the type ClusterIP may be headless. It reports none about a Service that another user may change.
func (v *validator) published() {
	edited := v.scenario.editedServices()
	portless := map[string]bool{} // the names of the Services of the type ExternalName without ports
	headless := map[string]bool{} // the names of the Services without a cluster IP address
	for i := range v.scenario.Workload {
		switch op := v.scenario.Workload[i].Operation.(type) {
		case *Create:
			if op.Kind == Service {
				portless[op.Name] = op.ExternalName != "" && len(op.Ports) == 0
				headless[op.Name] = op.Headless
			}
		case *Patch:
			delete(portless, op.Name) // the patch may set the ports
			delete(headless, op.Name)
		case *Publish:
			if op.Ports != nil {
				portless[op.Name] = len(op.Ports) == 0
			}
			v.check(!portless[op.Name] || edited[op.Name] || op.Type == "" || op.Type == ExternalName, stepPath(i)+".publish.type",
				"found %s without the field ports, but Service %s has no ports; expected at least one port in the field ports", op.Type, op.Name)
			headless[op.Name] = headless[op.Name] && op.Type != ExternalName
			v.check(!headless[op.Name] || edited[op.Name] || op.Type != NodePort, stepPath(i)+".publish.type",
				"found %s, but Service %s is headless; expected a Service that a step creates without headless: true, because only the type ClusterIP may be headless", op.Type, op.Name)
		}
	}
}

// deletes reports whether a step of the workload or of another user deletes an object.
func (s *Scenario) deletes(target Target) bool {
	return slices.ContainsFunc(s.StepsOfAllUsers(), func(step Step) bool {
		found, acts := step.Target()
		return acts && found == target && operationOf(step.Operation).effect == deletes
	})
}

// createdTwice reports an error if another user creates an object that the workload creates, too.
// There is no error if a step deletes the object, or for a pod, which controllers may delete.
func (v *validator) createdTwice(at string, target Target) {
	if target.Kind == Pod || v.scenario.createdMax(target.Kind, target.Name) == 0 || v.scenario.deletes(target) {
		return
	}
	v.check(false, at, "found %s, which the workload creates, too; use another name, or delete the object first", target)
}
