// Package schema generates the JSON Schema and the reference documentation of the scenario format.
// It reads the Go types of package scenario and their comments, the catalog of faults and the table
// of checks. Run the tests of this package with -update to write the generated files to docs.
package schema

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// object is a JSON object. The generated JSON Schemas consist of such objects.
type object = map[string]any

// generator generates the JSON Schema of scenario files from the Go types of package scenario.
type generator struct {
	comments    comments // the comments of package scenario, which become descriptions in the schema
	definitions object   // the generated schemas of Go structs, for $defs
}

// JSONSchema returns the JSON Schema of scenario files, as indented JSON text. The comments of
// package scenario become the descriptions in the schema.
func JSONSchema() ([]byte, error) {
	g := &generator{comments: formatComments(), definitions: object{
		"duration":       object{"type": "string", "pattern": durationPattern(true), "description": durationText},
		"signedDuration": object{"type": "string", "pattern": durationPattern(false), "description": durationText},
		"resource":       resource(),
	}}
	root := g.structure(reflect.TypeFor[scenario.Scenario]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "gauntlet scenario"
	root["oneOf"] = []object{requires("workload"), requires("externalWorkload")}
	root["$defs"] = g.definitions
	data, err := json.MarshalIndent(root, "", "  ")
	return append(data, '\n'), err
}

// durationText is the description of duration fields in the JSON Schema, which editors show.
const durationText = "A duration such as 500ms, 8s or 1m30s."

// durationPattern returns a regular expression for the durations that time.ParseDuration
// accepts. If positive is true, the expression does not match a minus sign.
func durationPattern(positive bool) string {
	sign := "[+-]?"
	if positive {
		sign = `\+?`
	}
	return "^" + sign + `(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$`
}

// The generator of the JSON Schema handles these Go types separately. Their schemas have more rules
// than the struct tags of the types express.
var (
	stepType     = reflect.TypeFor[scenario.Step]()
	faultType    = reflect.TypeFor[scenario.Fault]()
	awaitType    = reflect.TypeFor[scenario.Await]()
	triggerType  = reflect.TypeFor[scenario.Trigger]()
	createType   = reflect.TypeFor[scenario.Create]()
	portType     = reflect.TypeFor[scenario.Port]()
	fieldsType   = reflect.TypeFor[scenario.Fields]()
	durationType = reflect.TypeFor[time.Duration]()
)

// reference returns a $ref to the JSON Schema of a struct. If this schema does not exist yet,
// reference also generates it.
func (g *generator) reference(of reflect.Type) object {
	name := of.Name()
	if _, ok := g.definitions[name]; !ok {
		g.definitions[name] = object{} // a trigger may contain a trigger, so the name must exist before g.trigger refers to it
		switch of {
		case stepType:
			g.definitions[name] = g.step()
		case faultType:
			g.definitions[name] = g.fault()
		case triggerType:
			g.definitions[name] = g.trigger()
		default:
			g.definitions[name] = g.structure(of)
		}
	}
	return object{"$ref": "#/$defs/" + name}
}

// structure returns the JSON Schema of a struct, with a property for each field. A field is
// required if its struct tag says so and the field has no default.
func (g *generator) structure(of reflect.Type) object {
	properties, required := object{}, []string{}
	for _, field := range scenario.FieldsOf(of) {
		properties[field.Name] = g.field(field)
		if field.Required && reflect.ValueOf(field.Default).IsZero() {
			required = append(required, field.Name)
		}
	}
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	describe(schema, g.comments[of.Name()])
	return schema
}

// field returns the JSON Schema of one field of a struct. The schema has the field's type, bounds,
// allowed values, default and description.
func (g *generator) field(field scenario.FieldFormat) object {
	schema := g.value(field.Type, field.Bounds)
	maps.Copy(schema, formats[field.Format])
	if field.Nullable {
		schema["type"] = []string{"array", "null"}
	}
	if field.Enum != nil {
		schema["enum"] = field.Enum
		if text := g.values(field); text != "" {
			schema["markdownDescription"] = g.comments.field(field) + "\n\n" + text
		}
	}
	if field.Name == "exercises" {
		schema["items"] = checks()
		schema["uniqueItems"] = true
	}
	if value := defaultOf(field); value != nil {
		schema["default"] = value
	}
	describe(schema, g.comments.field(field))
	return schema
}

// values returns the allowed values of a field as a Markdown list, which editors show. Each value
// has its comment; values without a comment are omitted.
func (g *generator) values(field scenario.FieldFormat) string {
	var lines []string
	for _, meaning := range g.comments.meanings(field) {
		lines = append(lines, "- `"+meaning.Value+"`: "+meaning.Text)
	}
	return strings.Join(lines, "\n")
}

// defaultOf returns the default of a field as a JSON value. It returns nil if the field is
// required, is a struct, or has no default. For example, an empty text and an empty list are no
// defaults.
func defaultOf(field scenario.FieldFormat) any {
	switch value := reflect.ValueOf(field.Default); {
	case field.Required || value.Kind() == reflect.Struct:
		return nil
	case value.IsZero() && field.Bounds != nil && field.Bounds.Min > 0: // the zero value is out of bounds
		return nil
	case field.Type == durationType:
		return shortDuration(time.Duration(value.Int()))
	case value.IsZero() && value.Kind() == reflect.String, value.Kind() == reflect.Pointer, value.Kind() == reflect.Map, value.Kind() == reflect.Slice:
		return nil
	}
	return field.Default
}

// shortDuration formats a duration without trailing units that are zero, such as 1m instead of
// 1m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// value returns the JSON Schema of a value of the given Go type. The argument bounds limits
// numbers, durations and lengths. It is nil if there is no limit.
func (g *generator) value(of reflect.Type, bounds *scenario.Bounds) object {
	switch {
	case of == durationType:
		if bounds != nil && bounds.Min < 0 {
			return object{"$ref": "#/$defs/signedDuration"}
		}
		return object{"$ref": "#/$defs/duration"}
	case of == reflect.TypeFor[scenario.IntOrString]():
		return object{}
	case of == fieldsType:
		return object{"type": "object"}
	}
	switch of.Kind() {
	case reflect.Pointer:
		return g.value(of.Elem(), bounds)
	case reflect.Struct:
		return g.reference(of)
	case reflect.Slice:
		schema := object{"type": "array", "items": g.value(of.Elem(), nil)}
		if bounds != nil {
			schema["minItems"], schema["maxItems"] = bounds.Min, bounds.Max
		}
		return schema
	case reflect.Map:
		return object{"type": "object", "additionalProperties": g.value(of.Elem(), nil)}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Uint64:
		return object{"type": "integer", "minimum": 0, "maximum": uint64(1<<64 - 1)}
	}
	schema := object{"type": "integer"}
	if bounds != nil {
		schema["minimum"], schema["maximum"] = bounds.Min, bounds.Max
	}
	return schema
}

const (
	// These regular expressions match label values, DNS labels and label keys of Kubernetes.
	labelValuePattern = `^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	domainLabel       = `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
	labelKeyPattern   = `^(` + domainLabel + `(\.` + domainLabel + `)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$`
)

// formats has the constraints that the JSON Schema adds to a field with a syntax, such as a
// pattern. The key is the value of the field's struct tag format.
var formats = map[string]object{
	"name":         {"pattern": "^" + domainLabel + "$", "maxLength": 63},
	"controllers":  {"items": object{"type": "string", "pattern": "^[a-z][-a-z0-9]*$"}, "uniqueItems": true},
	"objectName":   {"pattern": "^" + domainLabel + `(\.` + domainLabel + `)*$`, "maxLength": 253},
	"apiVersion":   {"pattern": "^$|" + groupVersionPattern},
	"groupVersion": {"pattern": groupVersionPattern},
	"kind":         {"pattern": kindPattern},
	"kinds":        {"items": object{"type": "string", "pattern": kindPattern}},
	"plural":       {"pattern": "^$|^" + domainLabel + "$", "maxLength": 63},
	"manifest":     fieldsRules(0),
	"mergePatch":   fieldsRules(1),
	"statusPatch":  {"minProperties": 1},
	"domain":       {"pattern": `^` + domainLabel + `(\.` + domainLabel + `)*$`, "maxLength": 253},
	"glob":         {"pattern": globPattern},
	"ownerGlob":    {"pattern": `^[^/]*/[^/]*$`},
	"labels":       {"propertyNames": object{"pattern": labelKeyPattern}, "additionalProperties": object{"type": "string", "pattern": labelValuePattern, "maxLength": 63}},
	"annotations":  {"propertyNames": object{"pattern": labelKeyPattern}},
	"labelKeys":    {"items": object{"type": "string", "pattern": labelKeyPattern}},
	"share": {"anyOf": []object{
		{"type": "integer", "minimum": 0, "maximum": 20000},
		{"type": "string", "pattern": "^0*([0-9]{1,2}|100)%$"},
	}},
	"port": {"anyOf": []object{
		{"type": "integer", "minimum": 1, "maximum": 65535},
		{"type": "string", "maxLength": 15, "allOf": []object{{"pattern": "^[a-z0-9](-?[a-z0-9])*$"}, {"pattern": "[a-z]"}}},
	}},
}

// groupVersionPattern is a regular expression for the group and the version of an API kind, such as
// apps/v1 or v1.
const groupVersionPattern = `^(` + domainLabel + `(\.` + domainLabel + `)*/)?[a-z]([-a-z0-9]*[a-z0-9])?$`

// kindPattern is a regular expression for the names of API kinds, such as StatefulSet.
const kindPattern = "^[A-Z][A-Za-z0-9]{0,62}$"

// fieldsRules returns the JSON Schema rules for a manifest or a merge patch. For example, both
// must not contain status. The argument minimum is the minimum number of top-level fields.
func fieldsRules(minimum int) object {
	return object{"minProperties": minimum, "properties": object{
		"apiVersion": false, "kind": false, "status": false,
		"metadata": object{"type": "object", "properties": object{"name": false, "namespace": false}},
		"spec":     object{"properties": object{"replicas": object{"minimum": 0, "maximum": 20000}}},
	}}
}

// anyResource changes the schema of a field so that the field accepts every resource, and returns
// the schema. A fixed list is not possible, because a scenario may name resources of its own custom
// resource kinds.
func anyResource(schema object) object {
	delete(schema, "enum")
	schema["$ref"] = "#/$defs/resource"
	return schema
}

// resource returns the JSON Schema of a resource, such as pods. The schema accepts every name that
// could be a resource. It cannot list the resources, because they depend on the kinds that the
// workload creates.
func resource() object {
	grouped := object{"pattern": `^[a-z][-a-z0-9]*(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`}
	return object{"type": "string", "anyOf": []object{{"enum": scenario.Resources}, {"enum": coreResources()}, grouped}}
}

// coreResources returns the resources of the core API group, such as pods. It omits Go types that
// are no resources, such as DeleteOptions. Such a type, unlike Pod, has no list type (PodList).
func coreResources() []string {
	var all []string
	version := schema.GroupVersion{Version: "v1"}
	for kind := range scheme.Scheme.KnownTypes(version) {
		if scheme.Scheme.Recognizes(version.WithKind(kind + "List")) {
			all = append(all, kube.Generic(version.WithKind(kind)).Resource())
		}
	}
	slices.Sort(all)
	return all
}

// globPattern is a regular expression for the patterns that path.Match accepts. In rare cases, the
// expression accepts more or less than path.Match.
const globPattern = `^([^\[\\]|\\.|\[\^?[^\]]+\])*$`

// checks returns the JSON Schema of a check ID, such as max-surge. The schema also accepts the old
// names of renamed checks.
func checks() object {
	var ids []string
	for _, c := range check.All {
		ids = append(ids, c.ID)
	}
	return object{"anyOf": []object{
		{"type": "string", "enum": ids},
		{"type": "string", "enum": slices.Sorted(maps.Keys(scenario.RenamedChecks())), "deprecated": true, "description": "The old name of a check. A later release rejects this name."},
	}}
}

// describe sets the description of a JSON Schema to the text, unless the text is empty.
func describe(schema object, text string) {
	if text != "" {
		schema["description"] = text
	}
}

// step returns the JSON Schema of a step: one operation, or an await, or both. An await in a step
// without an operation must have kind and name, unless it has the condition quiet.
func (g *generator) step() object {
	schema := g.structure(stepType)
	properties := schema["properties"].(object)
	var operations []object
	for _, op := range scenario.Operations() {
		properties[op.Name] = g.operation(op)
		operations = append(operations, requires(op.Name))
	}
	await := g.structure(awaitType)
	anyKind(await, scenario.OperationFormat{Kinds: contractKinds(), Generic: true})
	until := await["properties"].(object)["until"].(object)
	until["anyOf"] = []object{{"enum": until["enum"]}, {"pattern": fieldConditionPattern}}
	delete(until, "enum")
	for _, field := range []string{"kind", "name"} { // an await beside an operation has both fields or none of them
		await["required"] = without(await["required"].([]string), field)
	}
	await["dependentRequired"] = object{"kind": []string{"name"}, "name": []string{"kind"}}
	await["allOf"] = conditionsOfKinds()
	properties["await"] = await
	quiet := object{"properties": object{"until": object{"const": scenario.Quiet}, "kind": false, "name": false}}
	await["if"] = object{"properties": object{"until": object{"const": scenario.Quiet}}}
	await["then"] = object{"properties": object{"kind": false, "name": false}}
	alone := object{"properties": object{"await": object{"anyOf": []object{requires("kind", "name"), quiet}}}, "required": []string{"await"}, "not": object{"anyOf": operations}}
	schema["oneOf"] = append(slices.Clone(operations), alone)
	return schema
}

// conditionsOfKinds returns one JSON Schema rule for each kind. The rule limits the conditions of
// an await to the conditions that objects of the kind support.
func conditionsOfKinds() []object {
	var rules []object
	for _, kind := range scenario.Kinds() {
		rules = append(rules, ifKind(kind.Kind, untilOneOf(kind.Conditions...)))
	}
	return append(rules, ifGeneric(untilOneOf(scenario.Gone)), shortNames)
}

// untilOneOf returns a JSON Schema for the field until of an await. The schema accepts the given
// conditions, and any condition on fields such as condition=Ready.
func untilOneOf(conditions ...scenario.Until) object {
	return object{"properties": object{"until": object{"anyOf": []object{{"enum": conditions}, {"pattern": fieldConditionPattern}}}}}
}

// fieldConditionPattern matches the conditions on fields that [scenario.Until.FieldCondition]
// accepts. In rare cases, the pattern accepts more or less than that function.
const fieldConditionPattern = `^(condition=[^=]+(=.+)?|jsonpath=(\{[^{}]+\}|([^{}=]|==)+)(=.+)?|no jsonpath=(\{[^{}]+\}|([^{}=]|==)+))$`

// contractKinds returns the kinds that a create step can describe without a manifest, such as
// Deployment.
func contractKinds() []scenario.Kind {
	var all []scenario.Kind
	for _, kind := range scenario.Kinds() {
		all = append(all, kind.Kind)
	}
	return all
}

// isGeneric returns a schema that matches a mapping whose field "kind" names a generic kind. A
// create step for a generic kind, such as StatefulSet, needs a manifest.
func isGeneric() object {
	return object{"properties": object{"kind": object{"not": object{"enum": contractKinds()}}}, "required": []string{"kind"}}
}

// ifGeneric returns a JSON Schema that applies a rule only to generic kinds, such as StatefulSet.
// The scenario format has no fields for these kinds, so a scenario contains their manifest.
func ifGeneric(rule object) object { return object{"if": isGeneric(), "then": rule} }

// shortNames is a JSON Schema rule that requires a DNS label in the field name. The rule does not
// apply to kinds that need a manifest, such as StatefulSet.
var shortNames = object{"if": isGeneric(), "else": object{"properties": object{"name": formats["name"]}}}

// anyKind sets the allowed values of the field kind in the schema of an operation. If the operation
// supports kinds that need a manifest, any kind is allowed. The name may then be a DNS subdomain.
func anyKind(schema object, op scenario.OperationFormat) {
	properties := schema["properties"].(object)
	kind := properties["kind"].(object)
	delete(kind, "markdownDescription")
	delete(kind, "enum")
	if !op.Generic {
		kind["enum"] = op.Kinds
		return
	}
	kind["anyOf"] = []object{{"enum": op.Kinds}, {"pattern": kindPattern, "not": object{"enum": contractKinds()}}}
	maps.Copy(properties["name"].(object), formats["objectName"])
}

// ifKind returns a JSON Schema that applies a rule only to objects of one kind.
func ifKind(kind scenario.Kind, rule object) object {
	return object{"if": object{"properties": object{"kind": object{"const": kind}}, "required": []string{"kind"}}, "then": rule}
}

// requires returns a JSON Schema that requires all the given fields.
func requires(fields ...string) object { return object{"required": fields} }

// without returns a copy of a list of words that lacks the given word.
func without(words []string, word string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(other string) bool { return other == word })
}

// operation returns the JSON Schema of an operation, such as scale. The schema includes the rules
// in operationRules.
func (g *generator) operation(op scenario.OperationFormat) object {
	schema := g.structure(op.Type)
	anyKind(schema, op)
	if len(op.Kinds) == 1 {
		schema["properties"].(object)["kind"].(object)["default"] = op.Kinds[0]
		schema["required"] = without(schema["required"].([]string), "kind")
	}
	if rules := operationRules[op.Name]; rules != nil {
		maps.Copy(schema, rules())
	}
	if op.Generic {
		rules, _ := schema["allOf"].([]object)
		schema["allOf"] = append(rules, shortNames)
	}
	return schema
}

// operationRules has rules for operations in which one field depends on another field. The key is
// the name of the operation. Each function returns keywords to add to the JSON Schema of the
// operation.
var operationRules = map[string]func() object{
	"patch": func() object {
		return object{
			"oneOf": []object{requires("merge"), requires("status")},
			"allOf": []object{ifKind(scenario.Pod, object{"properties": object{"status": false}})},
		}
	},
	"create":    func() object { return object{"allOf": createRules()} },
	"configure": func() object { return object{"allOf": configureRules()} },
	"publish": func() object {
		return object{
			"anyOf": []object{requires("type"), requires("externalName"), requires("ports"), requires("publishNotReadyAddresses")},
			"if":    object{"properties": object{"type": object{"const": "ExternalName"}}, "required": []string{"type"}},
			"then":  requires("externalName"),
			"else":  object{"properties": object{"externalName": object{"const": ""}}},
			"allOf": []object{namedPorts},
		}
	},
	"label": func() object {
		return object{"anyOf": []object{notEmpty("labels", "minProperties"), notEmpty("remove", "minItems")}}
	},
	"annotate": func() object {
		return object{"anyOf": []object{notEmpty("annotations", "minProperties"), notEmpty("remove", "minItems")}}
	},
	"select": func() object {
		return object{"allOf": []object{ifKind(scenario.ReplicationController, object{"properties": object{"selector": object{"minProperties": 1}}})}}
	},
}

// notEmpty returns a JSON Schema that requires a field with at least one item. The argument keyword
// must be minProperties if the field is a mapping, and minItems if the field is a list.
func notEmpty(field, keyword string) object {
	return object{"properties": object{field: object{keyword: 1}}, "required": []string{field}}
}

// namedPorts is a JSON Schema rule that requires a name for each port if there are several ports.
var namedPorts = object{
	"if":   object{"properties": object{"ports": object{"minItems": 2}}, "required": []string{"ports"}},
	"then": object{"properties": object{"ports": object{"items": requires("name")}}},
}

// positiveShare is a JSON Schema rule that maxSurge and maxUnavailable must not both be 0.
var positiveShare = object{"not": object{
	"properties": object{"maxSurge": noShare, "maxUnavailable": noShare},
	"required":   []string{"maxSurge", "maxUnavailable"},
}}

// noShare is a JSON Schema that matches 0 and 0%, the values of maxSurge and maxUnavailable that
// allow no pods.
var noShare = object{"anyOf": []object{{"const": 0}, {"type": "string", "pattern": "^0+%$"}}}

// createRules returns the JSON Schema rules for the fields of a create operation. There is one rule
// for each kind, with the fields that the kind supports.
//
// An unsupported field may have its default value, because [scenario.Scenario.Marshal] writes
// default values.
func createRules() []object {
	var rules []object
	for _, kind := range scenario.Kinds() {
		then := object{"properties": withoutOtherFields(kind.Create)}
		if kind.HasReplicas {
			then["required"] = []string{"replicas"}
		}
		rules = append(rules, ifKind(kind.Kind, then))
	}
	generic := object{"properties": withoutOtherFields(scenario.GenericCreateFields()), "required": []string{"manifest"}}
	unknown := object{"properties": object{"kind": object{"not": object{"enum": namedKinds()}}}, "required": []string{"kind"}}
	rules = append(rules, ifGeneric(generic), object{"if": unknown, "then": requires("apiVersion")})
	recreate := object{"properties": object{"strategy": object{"const": "Recreate"}}, "required": []string{"strategy"}}
	external := object{"properties": object{"externalName": object{"minLength": 1}}, "required": []string{"externalName"}}
	noPorts := object{"properties": object{"ports": object{"type": "array", "maxItems": 0}}, "required": []string{"ports"}}
	headless := object{"properties": object{"headless": object{"const": true}}, "required": []string{"headless"}}
	return append(rules, positiveShare, namedPorts,
		object{"if": recreate, "then": object{"properties": object{"maxSurge": false, "maxUnavailable": false}}},
		object{"if": external, "then": object{"properties": object{"headless": object{"const": false}}}},
		object{"if": noPorts, "then": object{"anyOf": []object{headless, external}}},
	)
}

// withoutOtherFields returns JSON Schema properties that forbid all fields of a create operation,
// except kind, name and the given fields. A forbidden number, text or boolean may still have its
// default value.
func withoutOtherFields(fields []string) object {
	properties := object{}
	for _, field := range scenario.FieldsOf(createType) {
		if field.Name == "kind" || field.Name == "name" || slices.Contains(fields, field.Name) {
			continue
		}
		switch field.Type.Kind() {
		case reflect.Int, reflect.String, reflect.Bool:
			properties[field.Name] = object{"const": field.Default}
		default:
			properties[field.Name] = false
		}
	}
	return properties
}

// namedKinds returns the names of the kinds for which a create operation may omit apiVersion.
// These are the kinds in the table of package kube.
func namedKinds() []string {
	names := make([]string, 0, len(kube.Kinds))
	for _, kind := range kube.Kinds {
		names = append(names, kind.Name)
	}
	return slices.Compact(names) // sorted by name
}

// configureRules returns the JSON Schema rules for the fields of a configure operation. There is
// one rule for each kind, with the fields that the kind supports.
func configureRules() []object {
	rules := []object{positiveShare}
	for _, kind := range scenario.Kinds() {
		if kind.Configure == nil {
			continue
		}
		properties, some := object{}, []object{}
		for _, field := range scenario.FieldsOf(reflect.TypeFor[scenario.Configure]()) {
			switch {
			case slices.Contains(kind.Configure, field.Name):
				some = append(some, requires(field.Name))
			case field.Name != "kind" && field.Name != "name":
				properties[field.Name] = false
			}
		}
		rules = append(rules, ifKind(kind.Kind, object{"properties": properties, "anyOf": some}))
	}
	rolling := object{"properties": object{"strategy": object{"const": "RollingUpdate"}}, "required": []string{"strategy"}}
	return append(rules, object{"if": object{"anyOf": []object{requires("maxSurge"), requires("maxUnavailable")}}, "then": rolling})
}

// trigger returns the JSON Schema of a trigger. The schema also accepts the old names of renamed
// fields.
func (g *generator) trigger() object {
	schema := g.structure(triggerType)
	properties := schema["properties"].(object)
	var one []object
	for _, field := range scenario.FieldsOf(triggerType) {
		if field.Name != "after" {
			one = append(one, requires(field.Name))
		}
	}
	for old, name := range scenario.RenamedFields(triggerType) {
		renamed := maps.Clone(properties[name].(object))
		renamed["deprecated"], renamed["description"] = true, "The old name of "+name+"."
		properties[old] = renamed
		one = append(one, requires(old))
	}
	schema["oneOf"] = one

	for _, name := range []string{"RequestTrigger", "EventTrigger", "StateTrigger"} {
		anyResource(g.definitions[name].(object)["properties"].(object)["resource"].(object))
	}
	var rules []object
	state := g.definitions["StateTrigger"].(object)
	for _, resource := range scenario.StateResources() {
		rules = append(rules, object{
			"if":   object{"properties": object{"resource": object{"const": resource}}, "required": []string{"resource"}},
			"then": object{"properties": object{"is": object{"enum": scenario.StatesOf(resource)}}},
		})
	}
	rules = append(rules, object{
		"if":   object{"properties": object{"resource": object{"not": object{"enum": scenario.StateResources()}}}, "required": []string{"resource"}},
		"then": object{"properties": object{"is": object{"enum": scenario.StatesOf("")}}},
	})
	state["allOf"] = append(rules, object{
		"if":   object{"properties": object{"atLeast": object{"const": 0}}, "required": []string{"atLeast"}},
		"then": requires("atMost"),
	})
	return schema
}
