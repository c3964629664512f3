package scenario

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// SubjectsMax is the maximum of subject.replicas, the number of instances of the controllers under
// test.
const SubjectsMax = 5

// These constants have the bounds that the code needs outside of struct tags. Bounds reject
// typing errors, such as a number of replicas with additional zeros. Such an error could start a
// run that never ends or that uses all memory of the machine.
const (
	stepsMax           = 1000
	faultsMax          = 100
	externalKindsMax   = 100
	replicasMax        = 20_000
	minReadySecondsMax = 600
	revisionMax        = 1_000_000
	portsMax           = 20
	portMax            = 65535
	descriptionMax     = 1000 // the maximum length of a description, in bytes

	progressDeadlineSecondsMax = 3600

	timesMax     = 1_000_000
	faultTimeMin = time.Millisecond
	faultTimeMax = 10 * time.Minute
)

// validator checks a scenario, and keeps the first error about each field.
type validator struct {
	scenario *Scenario
	errs     []error
	// The field earlier has the errors that the decoder has found. The validator reports no
	// further error about the fields that these errors name, because it might only be a
	// consequence of the decoder's error.
	earlier []error

	// kinds are the generic kinds of the scenario, which need a manifest in a create step; see
	// [Scenario.GenericKinds].
	kinds []kube.Kind
	// kindsFixed is true while the validator checks the steps in a parameter of a fault, such
	// as of user-edit. A create step with a manifest in this parameter must have a kind that is
	// in the list kinds above.
	kindsFixed bool
	// elsewhere names another place for kinds in errors. It is empty for a scenario.
	elsewhere string
	// anyKind is true while the validator checks the steps in a parameter of a fault outside of
	// a scenario. These steps may use any kind that needs a manifest, because no workload is
	// known.
	anyKind bool
	// resources are the resources that faults and triggers may name; see [Scenario.Resources].
	resources []string
	// unknown are the names of the unknown kinds in the field operator that have an error already.
	unknown []string
	// observed are the kinds whose objects the run records; see [Scenario.ObservedKinds].
	observed []kube.Kind
}

// validate returns the errors about all fields that are out of bounds or contradict another
// field. The argument earlier has the errors that the decoder has reported. validate reports no
// further error about the fields that these errors name.
func (s *Scenario) validate(earlier ...error) error {
	v := &validator{scenario: s, earlier: earlier, kinds: s.GenericKinds(), resources: s.Resources(), observed: s.ObservedKinds()}
	v.name("name", s.Name)
	v.check(len(s.Description) <= descriptionMax, "description",
		"found a description of %d bytes; expected at most %d bytes", len(s.Description), descriptionMax)

	v.bounded("cluster", &s.Cluster)
	v.bounded("subject", &s.Subject)
	v.check(s.Subject.Burst >= s.Subject.QPS || v.invalid("subject.qps"), "subject.burst",
		"found %d; expected at least subject.qps, which is %d", s.Subject.Burst, s.Subject.QPS)

	v.controllers(s.Subject.Controllers)

	v.workload(s.Workload)
	v.faults(s.Faults)

	v.bounded("settle", &s.Settle)
	for i, check := range s.Exercises {
		path := fmt.Sprintf("exercises[%d]", i)
		v.check(check != "", path, "found nothing; expected the ID of a check")
		v.check(slices.Index(s.Exercises, check) == i, path, "found check %q twice; expected each check once", check)
	}
	return JoinErrors(v.errs...)
}

// controllers reports an error if the name of a controller under test is unknown or occurs twice.
// An empty list is an error, too. A nil list is valid.
func (v *validator) controllers(names []string) {
	v.check(names == nil || len(names) > 0, "subject.controllers", "found an empty list; expected at least one controller, or no field controllers for the default controllers")
	for i, name := range names {
		path := fmt.Sprintf("subject.controllers[%d]", i)
		oneOf(v, path, name, kube.ControllerNames()...)
		v.check(slices.Index(names, name) == i, path, "found controller %q twice; expected each controller once", name)
	}
}

// check records an error about the field at path if ok is false. It records only the first
// error about a field, and at most mistakesMax errors.
func (v *validator) check(ok bool, path, format string, args ...any) {
	if !ok && len(v.errs) < mistakesMax && !v.invalid(path) {
		v.errs = append(v.errs, v.scenario.Errorf(path, format, args...))
	}
}

// invalid reports whether the field at path has an error already. An error about a field inside
// that field, or about an enclosing field, also counts.
func (v *validator) invalid(path string) bool {
	hidden := func(err error) bool { return v.scenario.source.hides(err, path) }
	return slices.ContainsFunc(v.earlier, hidden) || slices.ContainsFunc(v.errs, hidden)
}

// number records an error about the field at path if its value is out of bounds. The argument
// found is the value. The arguments least and most are the bounds, which are valid values.
func (v *validator) number(path string, found, least, most int) {
	v.check(least <= found && found <= most, path, "found %v; expected a number from %d to %d", v.valueOf(path, found, found == 0), least, most)
}

// duration records an error about the field at path if its value is out of bounds. The argument
// found is the value. The arguments least and most are the bounds, which are valid values.
func (v *validator) duration(path string, found, least, most time.Duration) {
	v.check(least <= found && found <= most, path, "found %v; expected a duration from %s to %s", v.valueOf(path, found, found == 0), least, most)
}

// valueOf returns the value found in a field for an error. If the value is 0 and the scenario file does
// not have the field, the result also says so.
func (v *validator) valueOf(path string, found any, isZero bool) any {
	if isZero && v.scenario.source != nil && !v.scenario.source.has(path) {
		return fmt.Sprintf("%v, or nothing", found)
	}
	return found
}

// name records an error about the field at path if its value, the argument found, is not a DNS
// label. This is the strictest rule for names of Kubernetes objects.
func (v *validator) name(path, found string) {
	v.check(found != "", path, "found nothing; expected a name")
	v.check(len(validation.IsDNS1123Label(found)) == 0, path,
		"found %.80q; expected a DNS label: at most 63 of a-z, 0-9 and -, with no - at either end", found)
}

// oneOf records an error about the field at path if its value, the argument found, is not a known
// value. The error suggests a similar value.
func oneOf[T ~string](v *validator, path string, found T, known ...T) {
	switch {
	case slices.Contains(known, found): // most often; the search for similar names takes time
	case found == "":
		v.check(false, path, "found nothing; expected %s", nearest.List(known, "or"))
	default:
		v.check(false, path, "found %.60q; expected %s%s", string(found), nearest.List(known, "or"), similar(string(found), known))
	}
}

// resource records an error about the field at path if its value is not a known resource.
func (v *validator) resource(path, found string) {
	if advice := ResourceAdvice(found); advice != "" && !slices.Contains(v.resources, found) {
		v.check(false, path, "found %.60q; %s", found, advice)
		return
	}
	hint := UnknownResourceHint(found, v.resources)
	if hint != "" && v.invalid("operator.kinds") {
		return // the resource may be that of an invalid kind
	}
	if hint == "" || slices.Contains(v.resources, found) {
		oneOf(v, path, found, v.resources...)
		return
	}
	v.check(false, path, "found %.60q; expected %s%s%s", found, nearest.List(v.resources, "or"), hint, similar(found, v.resources))
}

func (v *validator) faults(faults []Fault) {
	v.check(len(faults) <= faultsMax, "faults", "found %d faults; expected at most %d", len(faults), faultsMax)
	for i, fault := range faults {
		path := fmt.Sprintf("faults[%d]", i)
		v.duration(path+".from", fault.From, 0, faultTimeMax)
		if fault.For != 0 || fault.Params.source.has(path+".for") {
			v.duration(path+".for", fault.For, faultTimeMin, faultTimeMax)
		}
		v.trigger(path+".when", fault.When, i, 1)
		v.trigger(path+".until", fault.Until, i, 1)
		v.number(path+".times", fault.Times, 0, timesMax)
		// The fault type checks the resource when it decodes the parameters. A changed copy of a
		// scenario needs a second check, because its workload may no longer create the kind.
		resource := fault.Params.Text("resource")
		v.check(!slices.Contains(fault.Params.Resources(), resource) || slices.Contains(v.resources, resource),
			path+"."+fault.Name+".resource", "found %s; expected a resource of a kind that the workload creates", resource)
		v.check(fault.Times == 0 || fault.When != nil, path+".times", "found times without when; add the field when, with the trigger that begins the fault each time")
	}
}

// labels records an error for each label whose key or value is invalid in Kubernetes.
func (v *validator) labels(path string, labels map[string]string) {
	for _, key := range sortedKeys(labels) {
		v.labelKey(join(path, key), key)
		v.labelValue(join(path, key), labels[key])
	}
}

// labelValue records an error about the field at path if the value of a label is invalid.
func (v *validator) labelValue(path, value string) {
	v.check(len(validation.IsValidLabelValue(value)) == 0, path,
		"found %.80q; expected a label value: at most 63 of A-Z, a-z, 0-9, -, _ and ., beginning and ending with a letter or digit", value)
}

// labelKey records an error about the field at path if the key of a label or annotation is invalid.
func (v *validator) labelKey(path, key string) {
	v.check(len(validation.IsQualifiedName(key)) == 0, path,
		"found the key %.80q; expected the key of a label or annotation, such as app or example.com/app", key)
}

// removed records an error for each invalid key of a label or annotation that an operation
// removes.
//
// The operation must not also set the same key. The argument set has the keys that the operation
// sets. The argument field is the YAML name of the field with these keys, for errors.
func (v *validator) removed(path string, keys []string, set map[string]string, field string) {
	for i, key := range keys {
		at := fmt.Sprintf("%s.remove[%d]", path, i)
		v.labelKey(at, key)
		v.check(slices.Index(keys, key) == i, at, "found the key %s twice; expected each key once", key)
		_, both := set[key]
		v.check(!both, at, "found the key %s, which the field %s sets; expected the key in only one of the two fields", key, field)
	}
}

// version reports an error if the version of a pod template is not a DNS label. Reports show
// versions next to names, so the rule for names applies to versions, too.
func (v *validator) version(path, found string) { v.name(path, found) }

func (v *validator) replicas(path string, replicas *int) {
	if replicas == nil {
		v.check(false, path, "found nothing; expected a number from 0 to %d", replicasMax)
		return
	}
	v.number(path, *replicas, 0, replicasMax)
}
