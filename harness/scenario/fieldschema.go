package scenario

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/jsonpath"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// fieldSchema is a part of the schema in a CustomResourceDefinition, as the field openAPIV3Schema has it. The schema nil
// permits every value.
type fieldSchema map[string]any

// kindSchema is what a CustomResourceDefinition says about the objects of its kind.
type kindSchema struct {
	fields  fieldSchema
	refused RefusedFields
}

// RefusedFields returns an error for each field for which the API server would refuse an object. The detail of an error
// has what was found and what was expected, and the field is empty if the error is about the whole object. The function
// may change the object.
//
// A partial object is a merge patch: it may lack fields, and null removes a field. All other objects are complete, with
// apiVersion, kind and metadata.name.
type RefusedFields func(object map[string]any, partial bool) field.ErrorList

// SetSchema sets the schema with which gauntlet checks the fields of manifests, patches and awaits. It is that of a
// CustomResourceDefinition, in the field openAPIV3Schema. Only the function refused knows limits, required fields and
// rules.
func (k *ExternalKind) SetSchema(openAPIV3Schema map[string]any, refused RefusedFields) {
	k.schema = &kindSchema{fields: openAPIV3Schema, refused: refused}
}

// CopySchema copies the schema of another kind; see [ExternalKind.SetSchema].
func (k *ExternalKind) CopySchema(from ExternalKind) { k.schema = from.schema }

// schemaOf returns the schema of a kind in the field operator. It has no fields if the schema is not known.
func (v *validator) schemaOf(kind Kind) kindSchema {
	if v.scenario.Operator == nil {
		return kindSchema{}
	}
	i := slices.IndexFunc(v.scenario.Operator.Kinds, func(k ExternalKind) bool { return k.Kind == string(kind) })
	if i < 0 || v.scenario.Operator.Kinds[i].schema == nil {
		return kindSchema{}
	}
	return *v.scenario.Operator.Kinds[i].schema
}

// property returns the schema of a field. The result ok is false if an object cannot have the field.
func (s fieldSchema) property(name string) (of fieldSchema, ok bool) {
	properties, _ := s["properties"].(map[string]any)
	if property, ok := properties[name].(map[string]any); ok {
		return property, true
	}
	if embedded := s["x-kubernetes-embedded-resource"] == true; embedded && slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) {
		return nil, true
	}
	additional, has := s["additionalProperties"].(map[string]any)
	return additional, s == nil || has || s["additionalProperties"] == true || s["x-kubernetes-preserve-unknown-fields"] == true
}

// items returns the schema of the items of a list.
func (s fieldSchema) items() fieldSchema {
	items, _ := s["items"].(map[string]any)
	return items
}

// names returns the names of the fields of an object.
func (s fieldSchema) names() []string {
	properties, _ := s["properties"].(map[string]any)
	return sortedKeys(properties)
}

// schemaFields records an error for each field or value that the schema of a kind does not permit. The API server
// refuses such an object. The schema says nothing about an object of another version.
func (v *validator) schemaFields(path string, kind Kind, found Fields) {
	schema := v.schemaOf(kind)
	if schema.fields == nil || v.wrongObject(path) {
		return
	}
	fields := found.Copy()
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		delete(fields, name)
	}
	v.schemaValue(path, kind, schema.fields, fields)
}

// wrongObject reports whether a manifest or a patch at path has an error already. An error about the apiVersion of the
// create step counts, too.
func (v *validator) wrongObject(path string) bool {
	return v.invalid(path) || v.invalid(strings.TrimSuffix(path, ".manifest")+".apiVersion")
}

// refusedFields records an error for each field of an object that the API server would refuse. The object may be a
// merge patch. Call schemaFields first, because its errors also name similar fields.
func (v *validator) refusedFields(path string, kind Kind, object map[string]any, partial bool) {
	schema := v.schemaOf(kind)
	if schema.refused == nil || v.wrongObject(path) {
		return
	}
	for _, refused := range schema.refused(object, partial) {
		v.check(false, join(path, refused.Field), "%s, as in the CustomResourceDefinition of %s", refused.Detail, kind)
	}
}

// schemaValue records the errors about a value of an object, and about the values inside.
func (v *validator) schemaValue(path string, kind Kind, schema fieldSchema, value any) {
	if value == nil || schema == nil { // a merge patch removes a field with null
		return
	}
	if expected := schema.expected(value); expected != "" {
		v.check(false, path, "found %s; expected %s, as in the CustomResourceDefinition of %s", encodeJSON(value).describe(), expected, kind)
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range sortedKeys(value) {
			of, ok := schema.property(name)
			v.check(ok, join(path, name), "found the field %.60s, which the CustomResourceDefinition of %s does not have%s", name, kind, nearest.Suggestion(name, schema.names()))
			v.schemaValue(join(path, name), kind, of, value[name])
		}
	case []any:
		for i, item := range value {
			v.schemaValue(fmt.Sprintf("%s[%d]", path, i), kind, schema.items(), item)
		}
	case string:
		known := schema.values()
		v.check(known == nil || slices.Contains(known, value), path, "found %.60q; expected %s, as in the CustomResourceDefinition of %s", value, nearest.List(known, "or"), kind)
	}
}

// values returns the texts that a field may have, or nil if it may have any text.
func (s fieldSchema) values() []string {
	known, _ := s["enum"].([]any)
	var all []string
	for _, value := range known {
		all = append(all, fmt.Sprint(value))
	}
	return all
}

// expected returns a text for the values of the schema's type, or "" if the given value has this type.
func (s fieldSchema) expected(value any) string {
	_, isMap := value.(map[string]any)
	_, isList := value.([]any)
	_, isText := value.(string)
	_, isBool := value.(bool)
	_, isWhole := value.(int64)
	number, isNumber := value.(float64)
	isWhole = isWhole || isNumber && number == float64(int64(number))
	name, _ := s["type"].(string)
	if s["x-kubernetes-int-or-string"] == true {
		name = "int-or-string"
	}
	for _, known := range []struct {
		name, text string
		valid      bool
	}{
		{"object", "a mapping", isMap},
		{"array", "a list", isList},
		{"string", "a text in quotes", isText},
		{"boolean", "true or false", isBool},
		{"integer", "a whole number", isWhole},
		{"number", "a number", isWhole || isNumber},
		{"int-or-string", "a whole number or a text", isWhole || isText},
	} {
		if known.name == name && !known.valid {
			return known.text
		}
	}
	return ""
}

// typeSchema returns the schema of the values that a Go type decodes. The depth limits recursive types.
func typeSchema(t reflect.Type, depth int) fieldSchema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if depth == 0 || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		properties := map[string]any{}
		for _, field := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
				properties[name] = map[string]any(typeSchema(field.Type, depth-1))
			}
		}
		return fieldSchema{"type": "object", "properties": properties}
	case reflect.Map:
		return fieldSchema{"type": "object", "additionalProperties": map[string]any(typeSchema(t.Elem(), depth-1))}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return fieldSchema{"type": "string"}
		}
		return fieldSchema{"type": "array", "items": map[string]any(typeSchema(t.Elem(), depth-1))}
	}
	name, ok := scalarTypes[t.Kind()]
	if !ok {
		name = "number"
	}
	schema := fieldSchema{"type": name}
	if values := enumTypes[t]; values != nil {
		schema["enum"] = values
	}
	return schema
}

// scalarTypes has the type of a schema for kinds of Go types. All others are numbers.
var scalarTypes = map[reflect.Kind]string{
	reflect.String: "string", reflect.Bool: "boolean", reflect.Int: "integer", reflect.Int16: "integer", reflect.Int32: "integer", reflect.Int64: "integer",
}

// enumTypes has the values of some types of the Kubernetes API.
var enumTypes = map[reflect.Type][]any{
	reflect.TypeFor[corev1.PodPhase]():        {"Pending", "Running", "Succeeded", "Failed", "Unknown"},
	reflect.TypeFor[corev1.NamespacePhase]():  {"Active", "Terminating"},
	reflect.TypeFor[corev1.ConditionStatus](): {"True", "False", "Unknown"},
}

// checkValue returns an error if a field with a schema never has a value. The value is a text, as in an await.
func (s fieldSchema) checkValue(value string) error {
	number, isWhole := strconv.ParseInt(value, 10, 64)
	_, isNumber := strconv.ParseFloat(value, 64)
	name, _ := s["type"].(string)
	values, _ := s["enum"].([]any)
	switch {
	case name == "object" || name == "array":
		return fmt.Errorf("the field has the type %s; expected the path of a text, a number or a boolean", name)
	case name == "integer" && (isWhole != nil || strconv.FormatInt(number, 10) != value):
		return fmt.Errorf("the field is a whole number; expected a whole number instead of %.60s", value)
	case name == "number" && isNumber != nil:
		return fmt.Errorf("the field is a number; expected a number instead of %.60s", value)
	case name == "boolean" && value != "true" && value != "false":
		return fmt.Errorf("the field is a boolean; expected true or false instead of %.60s", value)
	case len(values) == 0 || name != "string":
		return nil
	}
	var known []string
	for _, each := range values {
		known = append(known, fmt.Sprint(each))
	}
	if slices.Contains(known, value) {
		return nil
	}
	return fmt.Errorf("the field never has the value %.60s; expected %s%s", value, nearest.List(known, "or"), nearest.Suggestion(value, known))
}

// typeSchemas has the schemas of the kinds of Kubernetes, by the type of their objects. A schema has some thousand
// maps, and does not change.
var typeSchemas sync.Map

// schemaOfObject returns the schema of the objects that a Go type of Kubernetes decodes.
func schemaOfObject(object runtime.Object) fieldSchema {
	t := reflect.TypeOf(object)
	schema, ok := typeSchemas.Load(t)
	if !ok {
		schema, _ = typeSchemas.LoadOrStore(t, typeSchema(t, typeDepth))
	}
	return schema.(fieldSchema)
}

// typeDepth is the maximum depth of [typeSchema]. It is larger than that of a status.
const typeDepth = 8

// objectSchema returns the schema of the objects of a kind, or nil if it is not known.
func (v *validator) objectSchema(kind Kind) fieldSchema {
	if object := v.newObject(kind); object != nil {
		return schemaOfObject(object)
	}
	schema := v.schemaOf(kind).fields
	if schema == nil {
		return nil
	}
	properties := map[string]any{}
	for _, name := range schema.names() {
		properties[name], _ = schema.property(name)
		properties[name] = map[string]any(properties[name].(fieldSchema))
	}
	for _, name := range typeSchema(reflect.TypeFor[metav1.TypeMeta](), typeDepth).names() {
		properties[name] = map[string]any{"type": "string"}
	}
	properties["metadata"] = map[string]any(typeSchema(reflect.TypeFor[metav1.ObjectMeta](), typeDepth))
	return fieldSchema{"type": "object", "properties": properties, "x-kubernetes-preserve-unknown-fields": schema["x-kubernetes-preserve-unknown-fields"]}
}

// checkJSONPath returns the schema of the field that a JSONPath expression selects, or nil if it is not known. It returns an
// error if no object with the schema has the field.
func checkJSONPath(expression string, schema fieldSchema) (fieldSchema, error) {
	parser, err := jsonpath.Parse("until", expression)
	if err != nil {
		return nil, nil // completeJSONPath has reported it
	}
	nodes := parser.Root.Nodes
	if list, ok := nodes[0].(*jsonpath.ListNode); ok && len(nodes) == 1 {
		nodes = list.Nodes
	}
	for _, node := range nodes {
		if schema == nil || schema["type"] == nil {
			return nil, nil // every value is possible
		}
		switch node := node.(type) {
		case *jsonpath.FieldNode:
			if node.Value == "" {
				continue
			}
			if schema["type"] == "array" {
				return nil, fmt.Errorf("the field %s is that of a list; expected an index such as [0] before it", node.Value)
			}
			of, ok := schema.property(node.Value)
			if !ok {
				return nil, fmt.Errorf("unknown field %s%s", node.Value, nearest.Suggestion(node.Value, schema.names()))
			}
			schema = of
		case *jsonpath.ArrayNode, *jsonpath.FilterNode:
			schema = schema.items()
		default:
			return nil, nil
		}
	}
	return schema, nil
}
