package scenario

import "slices"

// This file finds what all users of a run do: the steps of the workload, and those in parameters of faults such as
// user-edit.

// StepsOfAllUsers returns every step that changes objects in a run. These are the steps of the workload, and those in
// parameters of faults such as user-edit.
func (s *Scenario) StepsOfAllUsers() []Step {
	return append(slices.Clone(s.Workload), s.stepsOfOthers()...)
}

// stepsOfOthers returns the steps of other users than the one with the workload.
func (s *Scenario) stepsOfOthers() []Step {
	var all []Step
	for _, fault := range s.Faults {
		all = append(all, fault.Params.Steps()...)
	}
	return all
}

// editedServices returns the names of the Services and Endpoints on which steps of other users act.
func (s *Scenario) editedServices() map[string]bool {
	edited := map[string]bool{}
	for _, step := range s.stepsOfOthers() {
		if target, acts := step.Target(); acts && (target.Kind == Service || target.Kind == Endpoints || target.Kind == "") {
			edited[target.Name] = true // without a kind, the operation has only one
		}
	}
	return edited
}

// setsOwner reports whether a manifest or a patch names an owner of a kind in the field ownerReferences.
func (s *Scenario) setsOwner(kind string) bool {
	return slices.ContainsFunc(s.valuesInManifests("ownerReferences"), func(value any) bool {
		references, _ := value.([]any)
		return slices.ContainsFunc(references, func(item any) bool {
			reference, _ := item.(map[string]any)
			return reference["kind"] == kind
		})
	})
}

// valuesInManifests returns the values of all fields with a name in manifests and patches, at every depth.
func (s *Scenario) valuesInManifests(name string) []any {
	var found []any
	for _, step := range s.StepsOfAllUsers() {
		switch op := step.Operation.(type) {
		case *Create:
			found = append(found, valuesOf(name, op.Manifest.Copy())...)
		case *Patch:
			found = append(found, valuesOf(name, op.Merge.Copy())...)
		}
	}
	return found
}

// valuesOf returns the values of all fields with a name inside a value.
func valuesOf(name string, value any) []any {
	var found []any
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if key == name {
				found = append(found, inner)
			}
			found = append(found, valuesOf(name, inner)...)
		}
	case []any:
		for _, item := range value {
			found = append(found, valuesOf(name, item)...)
		}
	}
	return found
}
