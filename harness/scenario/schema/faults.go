package schema

import (
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/catalog"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// fault returns the JSON Schema of a fault in a scenario file. A fault has one field with the name
// of a fault type and the parameters as its value. All other fields, such as for, are the same for
// every fault type.
func (g *generator) fault() object {
	schema := g.structure(faultType)
	properties := schema["properties"].(object)
	var one []object
	for _, of := range catalog.All {
		properties[of.Name] = g.parameters(of)
		one = append(one, requires(of.Name))
	}
	schema["oneOf"] = one
	schema["allOf"] = []object{{
		"if":   object{"properties": object{"times": object{"minimum": 1}}, "required": []string{"times"}},
		"then": requires("when"),
	}}
	return schema
}

// parameters returns the JSON Schema of the parameters of a fault type. If no parameter is
// required, the schema also accepts null.
func (g *generator) parameters(of faults.Type) object {
	properties, required, types := object{}, []string{}, parameterTypes(of)
	for _, param := range of.Params {
		schema := g.parameter(param, types[param.Name])
		describe(schema, param.Description)
		properties[param.Name] = schema
		if param.Default == "" {
			required = append(required, param.Name)
		}
	}
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	describe(schema, of.Description+" "+of.Healing)
	if len(required) > 0 {
		schema["required"] = required
	} else {
		schema["type"] = []string{"object", "null"}
	}
	return schema
}

// decodedInto implements faults.Params to find the Go types of a fault type's parameters. Its
// method Decode decodes nothing. It only records the types of the struct fields that it gets.
type decodedInto struct{ types map[string]reflect.Type }

// errRecorded is the error that the methods of decodedInto return. The fault type then does not
// check the parameters, which have no values.
var errRecorded = errors.New("recorded")

func (d decodedInto) Decode(into any) error {
	for _, field := range reflect.VisibleFields(reflect.TypeOf(into).Elem()) {
		if name, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); name != "" {
			d.types[name] = field.Type
		}
	}
	return errRecorded
}

func (decodedInto) Errorf(string, string, ...any) error { return errRecorded }

func (decodedInto) Resources() []string { return nil }

func (decodedInto) CheckSteps(string, []scenario.Step) error { return errRecorded }

// parameterTypes returns the Go type of each parameter of a fault type, such as time.Duration. The
// key is the name of the parameter. The types come from the fault type's code, because the catalog
// of faults describes parameters only by text.
func parameterTypes(of faults.Type) map[string]reflect.Type {
	types := map[string]reflect.Type{}
	_, _ = of.New(decodedInto{types}) // New returns errRecorded
	return types
}

// numbers matches a range at the beginning of a parameter's bounds, such as "1 to 100" or "0s to
// 10m".
var numbers = regexp.MustCompile(`^(-?[0-9]\S*) to (-?[0-9][^\s,;]*)`)

// parameter returns the JSON Schema of a parameter of a fault type. The argument named of is the Go
// type of the parameter. The bounds come from the text in the catalog of faults, such as "1 to
// 100".
func (g *generator) parameter(param faults.Param, of reflect.Type) object {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	match := numbers.FindStringSubmatch(param.Bounds)
	values, isEnum := strings.CutPrefix(param.Bounds, "one of ")
	switch {
	case isEnum && strings.HasPrefix(values, strings.Join(scenario.Resources, ", ")):
		return anyResource(g.enum(values, of))
	case isEnum:
		return g.enum(values, of)
	case of == durationType:
		bounds := &scenario.Bounds{}
		if match != nil {
			least, _ := time.ParseDuration(match[1])
			bounds.Min = int64(least)
		}
		return g.value(of, bounds)
	case match != nil && (of.Kind() == reflect.Slice || isInteger(of)):
		least, _ := strconv.ParseInt(match[1], 10, 64)
		most, _ := strconv.ParseInt(match[2], 10, 64)
		return g.value(of, &scenario.Bounds{Min: least, Max: most})
	}
	schema := g.value(of, nil)
	switch {
	case of.Kind() == reflect.Float64:
		schema["exclusiveMinimum"], schema["maximum"] = 0, 1 // every parameter of type float64 is a probability
	case param.Name == "owner":
		schema["pattern"] = formats["ownerGlob"]["pattern"]
	case strings.HasPrefix(param.Bounds, "a glob"):
		schema["pattern"] = globPattern
	}
	return schema
}

// enum returns the JSON Schema of a fault's parameter with a fixed set of values.
//
// The argument list has the values in the form of the catalog's documentation. For example, "a, b,
// c; c with d only" has the values a, b and c. The values end at a semicolon, or before the first
// item that contains a space.
func (g *generator) enum(list string, of reflect.Type) object {
	list, _, _ = strings.Cut(list, ";")
	var values []any
	for _, word := range strings.Split(list, ", ") {
		if strings.Contains(word, " ") {
			break
		}
		if number, err := strconv.Atoi(word); err == nil && isInteger(of) {
			values = append(values, number)
		} else {
			values = append(values, word)
		}
	}
	schema := g.value(of, nil)
	schema["enum"] = values
	return schema
}

// isInteger reports whether a Go type is int, int32 or int64, so that its schema has the type
// integer.
func isInteger(of reflect.Type) bool {
	return slices.Contains([]reflect.Kind{reflect.Int, reflect.Int32, reflect.Int64}, of.Kind())
}
