package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// Params has the parameters of one fault as YAML nodes. The fault type calls [Params.Decode] to
// decode the parameters into its own Go struct.
type Params struct {
	source *source
	fault  string   // the name of the fault type; each field path in an error begins with it
	at     position // the position of the fault type's name in the file
	node   *node    // the mapping of the parameters; nil if the fault has no parameters
	// kinds points to the generic kinds of the scenario; see [Scenario.GenericKinds]. It is nil for
	// parameters that do not belong to a scenario; see [ParseParams].
	kinds *[]kube.Kind
	// expected says what the parameters permit, by their paths; see [Params.Expecting].
	expected map[string]string
}

// Expecting returns a copy of the parameters whose errors say what a parameter permits. The argument expected has
// texts such as "one of kill, terminate", by the names of the parameters.
func (p Params) Expecting(expected map[string]string) Params {
	p.expected = map[string]string{}
	for name, text := range expected {
		p.expected[join(p.fault, name)] = text
	}
	return p
}

// Resources returns the resources that the parameters may name, such as pods. For the parameters
// of a scenario, they are the result of [Scenario.Resources]. For parameters from [ParseParams],
// they are the result of [kube.Resources].
func (p Params) Resources() []string {
	if p.kinds == nil {
		return kube.Resources()
	}
	return withResources(*p.kinds)
}

// ParseParams returns the parameters of one fault, from a YAML mapping that does not belong to a
// scenario. The argument fault is the name of the fault type. Errors begin with the file, and
// name the fault type.
func ParseParams(file, fault string, data []byte) (Params, error) {
	src := &source{file: file}
	root, err := parseNode(src, data)
	if err != nil {
		return Params{}, err
	}
	if _, ok := root.value.(mapping); !ok {
		return Params{}, decoder{source: src}.mismatch(root, fault, "a mapping")
	}
	return Params{source: src, fault: fault, node: root}, nil
}

// Decode stores the parameters in a struct. The argument into is a pointer to this struct. The yaml
// tags of the struct are the names of the parameters.
//
// Decode does not change a field whose parameter the file omits. The caller therefore sets the
// defaults first. An unknown parameter or a value of the wrong type is an error with a position.
func (p Params) Decode(into any) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() || target.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("decoding the parameters of fault %s: found Go type %T; expected a pointer to a struct", p.fault, into)
	}
	if p.node == nil {
		return nil
	}
	return decoder{p.source, p.expected}.decodeStruct(p.node, target.Elem(), p.fault)
}

// Steps returns the steps that are a parameter of the fault, as of user-edit. It returns nil for faults
// of other types, which have no steps.
func (p Params) Steps() []Step {
	var params struct {
		Steps []Step `yaml:"steps"`
	}
	if p.Decode(&params) != nil {
		return nil
	}
	return params.Steps
}

// Errorf returns an error about a parameter of the fault. The error begins with the file and the
// position of the parameter's value.
//
// If the file omits the parameter, or if the argument field is "", the position is that of the
// fault. The verb %w in the argument format wraps an error.
func (p Params) Errorf(field, format string, args ...any) error {
	at := p.at
	if p.node != nil {
		if fields, _ := p.node.value.(mapping); fields.field(field) != nil {
			at = fields.field(field).position
		}
	}
	path := p.fault
	if field != "" {
		path = join(p.fault, field)
	}
	return p.source.errorAt(at, path, format, args...)
}

// CheckSteps validates workload steps that are a parameter of a fault, such as of user-edit. It
// also sets the defaults of the steps. The argument field is the name of the parameter.
// CheckSteps returns all errors.
//
// CheckSteps does not check whether the objects of the steps exist. A kind that needs a manifest
// must be a generic kind of the scenario, except in parameters from [ParseParams].
func (p Params) CheckSteps(field string, steps []Step) error {
	root := &node{position: p.at, value: mapping{{name: p.fault, value: p.encodeNode()}}}
	v := &validator{scenario: &Scenario{source: &source{file: p.source.file, root: root}}, anyKind: p.kinds == nil}
	if p.kinds != nil {
		v.kinds, v.kindsFixed = *p.kinds, true
	}
	path := join(p.fault, field)
	v.steps(path, steps)
	for i := range steps {
		steps[i].complete()
		steps[i].completeAPIVersion(v.kinds)
		at := fmt.Sprintf("%s[%d]", path, i)
		v.step(at, &steps[i])
		v.check(steps[i].Await == nil || steps[i].Await.Until != Quiet, at+".await.until", "found quiet; expected another condition, because only a step of the workload can await that the subject is quiet")
	}
	return JoinErrors(v.errs...)
}

// Equal reports whether p and other have the same parameters with the same values in the same
// order. The positions in the file do not matter.
func (p Params) Equal(other Params) bool { return inline(p.encodeNode()) == inline(other.encodeNode()) }

// encodeNode returns the parameters as a YAML mapping. The mapping is empty if the fault has no
// parameters.
func (p Params) encodeNode() *node {
	if p.node == nil {
		return &node{value: mapping{}}
	}
	return p.node
}

// options returns pointers to the fields that every fault may have, such as the field when.
// decodeNode decodes values into them. The keys are the names in YAML. The parameters of the fault
// type are not included.
func (f *Fault) options() map[string]any {
	return map[string]any{"when": &f.When, "until": &f.Until, "times": &f.Times, "from": &f.From, "for": &f.For, "mustFire": &f.MustFire}
}

// decodeNode sets the fields of the fault f from a YAML mapping. The mapping may have the fields
// of [Fault.options]. The only other field has the name of the fault type as its key, and the
// parameters as its value.
func (f *Fault) decodeNode(d decoder, from *node, path string) error {
	const expected = "one fault with its parameters, and optionally when, until, times, from, for and mustFire"
	fields, ok := from.value.(mapping)
	if name, isText := from.value.(string); isText {
		return d.mismatch(from, path, fmt.Sprintf("parameters after the name of a fault, such as %.60s: {}", name))
	}
	if !ok {
		return d.mismatch(from, path, expected)
	}
	var errs []error
	var named []entry // the fields whose key is the name of a fault type
	for _, field := range fields {
		if into, ok := f.options()[field.name]; ok {
			errs = append(errs, d.decode(field.value, reflect.ValueOf(into).Elem(), join(path, field.name)))
		} else {
			named = append(named, field)
		}
	}
	switch len(named) {
	case 0:
		errs = append(errs, d.source.errorAt(from.position, path, "found no fault; expected %s", expected))
	case 1:
		errs = append(errs, f.decodeParams(d, named[0], path))
	default:
		errs = append(errs, d.source.errorAt(named[1].position, path, "found the fields %q and %q; expected %s%s", named[1].name, named[0].name, expected, f.secondName(named[0], named[1])))
	}
	return JoinErrors(errs...)
}

// secondName returns the end of an error about a fault with two names of fault types.
func (f *Fault) secondName(first, second entry) string {
	options := slices.Sorted(maps.Keys(f.options()))
	inner, outer := second, first
	if strings.Contains(inner.name, outer.name) {
		inner, outer = outer, inner
	}
	parameters, _ := inner.value.value.(mapping)
	isFault := len(parameters) > 0
	if strings.Contains(outer.name, inner.name) && !isFault {
		return fmt.Sprintf("; write %s below %s", inner.name, outer.name)
	}
	advice := ""
	if !isFault {
		advice = cmp.Or(asAdvice(faultAdvice[second.name]), asAdvice(faultAdvice[first.name]), nearest.Suggestion(second.name, options), nearest.Suggestion(first.name, options))
	}
	return cmp.Or(advice, "; begin each fault with - in a line of its own")
}

// decodeParams sets f.Name and f.Params from one field of a fault in YAML. The key of the field
// is the name of the fault type, and the value has the parameters.
func (f *Fault) decodeParams(d decoder, field entry, path string) error {
	f.Name = field.name
	f.Params = Params{source: d.source, fault: field.name, at: field.position}
	switch field.value.value.(type) {
	case nil:
		return nil
	case mapping:
		f.Params.node = field.value
		return nil
	}
	f.Name = "" // so that nobody reports the parameters that a value of the wrong type lacks
	return d.mismatch(field.value, join(path, field.name), "a mapping of parameters")
}

// encodeNode returns the fault as YAML, for [Scenario.Marshal]. decodeNode reads the result
// again.
func (f Fault) encodeNode() *node {
	fields := mapping{{name: f.Name, value: f.Params.encodeNode()}}
	if f.When != nil {
		fields = append(fields, entry{name: "when", value: encode(reflect.ValueOf(f.When))})
	}
	if f.Until != nil {
		fields = append(fields, entry{name: "until", value: encode(reflect.ValueOf(f.Until))})
	}
	if f.Times != 0 {
		fields = append(fields, entry{name: "times", value: encode(reflect.ValueOf(f.Times))})
	}
	if f.From != 0 {
		fields = append(fields, entry{name: "from", value: &node{value: f.From.String()}})
	}
	if f.For != 0 {
		fields = append(fields, entry{name: "for", value: &node{value: f.For.String()}})
	}
	if f.MustFire {
		fields = append(fields, entry{name: "mustFire", value: encode(reflect.ValueOf(f.MustFire))})
	}
	return &node{value: fields}
}
