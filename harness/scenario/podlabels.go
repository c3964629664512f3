package scenario

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// podLabels has the labels and ports that pods of a workload can have. It may have labels that no pod ever
// has, but it lacks none. The values of labels are by key.
type podLabels struct {
	values map[string]map[string]bool
	ports  map[string]bool // the names of the container ports; false for a port that only has the protocol TCP
	known  bool            // false if other programs may create pods
}

// controllerLabels has the keys of labels that controllers of Kubernetes give to pods.
var controllerLabels = []string{"pod-template-hash", "controller-revision-hash", "pod-template-generation", "job-name", "controller-uid"}

// podLabels returns the labels that pods can have after some steps of the workload. It includes the steps of
// other users, but not the labels of faults such as pod-relabel.
func (s *Scenario) podLabels(steps []Step) podLabels {
	found := podLabels{map[string]map[string]bool{}, map[string]bool{"http": false, "metrics": false}, s.onlyKnownWriters()}
	steps = slices.Clone(steps)
	for _, fault := range s.Faults {
		for _, step := range fault.Params.Steps() {
			step.complete() // such as the default of the labels
			steps = append(steps, step)
		}
	}
	for i := range steps {
		switch op := steps[i].Operation.(type) {
		case *Create:
			if op.Kind == Pod || op.Kind.owner() && !remainsEmpty(op, steps[i+1:]) {
				found.add(op.Labels)
			}
			found.collect("", map[string]any(op.Manifest))
		case *Label:
			if op.Kind == Pod {
				found.add(op.Labels)
			}
		case *Select:
			if op.Kind == ReplicationController {
				found.add(op.Selector)
			}
		case *Patch:
			found.collect("", map[string]any(op.Merge))
		}
	}
	return found
}

// remainsEmpty reports whether a create step without replicas is the only operation on its object.
func remainsEmpty(create *Create, later []Step) bool {
	return create.pods() == 0 && !slices.ContainsFunc(later, func(step Step) bool {
		target, acts := step.Target()
		return acts && target == create.Target
	})
}

func (p *podLabels) add(labels map[string]string) {
	for key, value := range labels {
		if p.values[key] == nil {
			p.values[key] = map[string]bool{}
		}
		p.values[key][value] = true
	}
}

// collect adds the labels and ports of a manifest or patch, at every depth. The argument name is the name of the field
// with the value.
func (p *podLabels) collect(name string, value any) {
	switch value := value.(type) {
	case Fields:
		p.collect(name, map[string]any(value))
	case map[string]any:
		for key, inner := range value {
			switch text, isText := inner.(string); {
			case isText && name == "labels":
				p.add(map[string]string{key: text})
			case isText && name == "ports" && key == "name":
				p.ports[text] = true
			}
			p.collect(key, inner)
		}
	case []any:
		for _, item := range value {
			p.collect(name, item)
		}
	}
}

// unmet returns a text about the first requirement of a selector that no pod meets. The text is "" if pods may meet
// each requirement.
func (p *podLabels) unmet(selector labels.Selector) string {
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		key := r.Key()
		if !p.known || strings.Contains(key, "/") || slices.Contains(controllerLabels, key) {
			continue
		}
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			if !slices.ContainsFunc(r.ValuesUnsorted(), func(value string) bool { return p.values[key][value] }) {
				return p.missing(key, fmt.Sprintf("%s=%s", key, strings.Join(r.Values().List(), " or ")))
			}
		case selection.Exists, selection.GreaterThan, selection.LessThan:
			if p.values[key] == nil {
				return p.missing(key, key)
			}
		}
	}
	return ""
}

// missing returns a text about a label that no pod has. The label is a key, or has the form KEY=VALUE.
func (p *podLabels) missing(key, label string) string {
	known := sortedKeys(p.values)
	if p.values[key] != nil {
		known = nil
		for _, value := range sortedKeys(p.values[key]) {
			known = append(known, key+"="+value)
		}
	}
	if len(known) == 0 {
		return fmt.Sprintf("no pod of the workload has the label %s; expected a step that creates a pod with this label", label)
	}
	return fmt.Sprintf("no pod of the workload has the label %s; expected %s", label, expectedNames(label, known))
}

// podSelector reports an error if no pod can match the label selector of a fault. It also does so if no pod has the label that
// the fault changes. The argument at is the place of the fault.
func (v *validator) podSelector(at string, params Params) {
	found := v.scenario.podLabels(v.scenario.Workload)
	for _, field := range []string{"selector", "label"} {
		text := params.Text(field)
		if selector, err := labels.Parse(text); err == nil {
			unmet := found.unmet(selector)
			v.check(unmet == "", at+"."+field, "found %q, but %s", text, unmet)
		}
	}
}
