package scenario

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// decoder stores YAML values in Go values. A field that the Go type does not have is an error. A
// value of the wrong type is also an error. The methods return all errors, not only the first.
//
// The decoder does not change a Go field that the file omits. It replaces the decoder of the
// YAML library, whose errors name Go types and lack the positions of nested fields.
type decoder struct {
	source *source
	// expected says what texts some fields permit, by their paths. It may be nil.
	expected map[string]string
}

// nodeDecoder is implemented by types that decode their own YAML. The fields of these types in
// YAML differ from the Go fields.
type nodeDecoder interface {
	decodeNode(d decoder, from *node, path string) error
}

var durationType = reflect.TypeFor[time.Duration]()

// decode stores the value of a YAML node in a Go value. The argument path is the path of the
// value in the file, such as "faults[0].from". Error messages contain the path.
func (d decoder) decode(from *node, into reflect.Value, path string) error {
	if custom, ok := into.Addr().Interface().(nodeDecoder); ok {
		return custom.decodeNode(d, from, path)
	}
	if into.Type() == durationType {
		return d.decodeDuration(from, into, path)
	}
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		return d.decode(from, into.Elem(), path)
	case reflect.Struct:
		return d.decodeStruct(from, into, path)
	case reflect.Map:
		return d.decodeMap(from, into, path)
	case reflect.Slice:
		return d.decodeSlice(from, into, path)
	default:
		return d.decodeScalar(from, into, path)
	}
}

// decodeStruct stores the fields of a YAML mapping in a struct. It first sets the defaults of
// the struct. For renamed fields, it also accepts the old names.
func (d decoder) decodeStruct(from *node, into reflect.Value, path string) error {
	fields, ok := from.value.(mapping)
	if !ok {
		return d.mismatch(from, path, "a mapping with "+nearest.List(fieldNames(into.Type()), "and"))
	}
	if value, ok := into.Addr().Interface().(defaulter); ok {
		value.setDefaults()
	}
	if err := d.source.renameFields(fields, into.Type(), path); err != nil {
		return err
	}
	var errs []error
	for _, field := range fields {
		index, ok := fieldIndex(into.Type(), field.name)
		if other := sameMistake[into.Type().Name()+"."+field.name]; !ok && other != "" && fields.field(other) != nil {
			continue // the error about the other field suffices
		}
		if !ok {
			names := fieldNames(into.Type())
			errs = append(errs, d.source.errorAt(field.position, path, "unknown field %q; expected %s%s",
				field.name, cmp.Or(nearest.List(names, "or"), "no fields"), cmp.Or(d.elsewhere(field.name, path), advised(into.Type(), field.name, names))))
			continue
		}
		if field.value.value == nil && nullable(into.Type().FieldByIndex(index)) {
			continue
		}
		at := join(path, field.name)
		err := d.tooLong(field.value, into.Type(), field.name, at)
		if err == nil {
			err = d.permitting(into.Type().FieldByIndex(index), at).decode(field.value, into.FieldByIndex(index), at)
		}
		errs = append(errs, err)
	}
	return JoinErrors(errs...)
}

// tooLong returns an error about a number that does not fit into 64 bits. It returns nil if the field
// with this name has no bounds, which the error contains.
func (d decoder) tooLong(from *node, structure reflect.Type, name, path string) error {
	text, _ := from.value.(string)
	if !longNumber.MatchString(text) {
		return nil
	}
	for _, field := range boundedFields(structure) {
		if field.name == name && structure.FieldByIndex(field.index).Type != durationType {
			return d.source.errorAt(from.position, path, "found %s; expected a number from %d to %d", text, field.Min, field.Max)
		}
	}
	return nil
}

func (d decoder) decodeMap(from *node, into reflect.Value, path string) error {
	fields, ok := from.value.(mapping)
	if !ok || into.Type().Key().Kind() != reflect.String {
		return d.mismatch(from, path, "a mapping"+exampleOf(from, into.Type().Elem()))
	}
	into.Set(reflect.MakeMapWithSize(into.Type(), len(fields)))
	var errs []error
	for _, field := range fields {
		switch _, isText := field.value.value.(string); {
		case isText || into.Type().Elem().Kind() != reflect.String:
		case field.name == "matchLabels" || field.name == "matchExpressions":
			errs = append(errs, d.source.errorAt(field.position, join(path, field.name), "found %s; expected the labels themselves, such as {app: web}, and expressions in the field matchExpressions of a create step", field.name))
			continue
		}
		value := reflect.New(into.Type().Elem()).Elem()
		errs = append(errs, d.decode(field.value, value, join(path, field.name)))
		into.SetMapIndex(reflect.ValueOf(field.name).Convert(into.Type().Key()), value)
	}
	return JoinErrors(errs...)
}

func (d decoder) decodeSlice(from *node, into reflect.Value, path string) error {
	items, ok := from.value.(sequence)
	if !ok {
		return d.mismatch(from, path, "a list"+listExample(from, into.Type().Elem()))
	}
	into.Set(reflect.MakeSlice(into.Type(), len(items), len(items)))
	var errs []error
	for i, item := range items {
		errs = append(errs, d.decode(item, into.Index(i), fmt.Sprintf("%s[%d]", path, i)))
	}
	return JoinErrors(errs...)
}

func (d decoder) decodeDuration(from *node, into reflect.Value, path string) error {
	if text, ok := from.value.(string); ok {
		if duration, err := time.ParseDuration(text); err == nil {
			into.SetInt(int64(duration))
			return nil
		}
	}
	return d.mismatch(from, path, ExpectedDuration(fmt.Sprint(from.value)))
}

// durationPattern matches a text with the syntax of a duration, such as 1m30s.
var durationPattern = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)

// ExpectedDuration returns a text that says which durations are valid, for an error. The argument
// found is an invalid duration: one with another syntax, or one that is too long.
func ExpectedDuration(found string) string {
	if durationPattern.MatchString(found) {
		return fmt.Sprintf("at most %dh", math.MaxInt64/int64(time.Hour))
	}
	return "a duration such as 500ms, 8s or 1m30s"
}

func (d decoder) decodeScalar(from *node, into reflect.Value, path string) error {
	switch into.Kind() {
	case reflect.String:
		text, ok := from.value.(string)
		if !ok {
			return d.mismatch(from, path, d.expectedText(from, path))
		}
		into.SetString(text)
	case reflect.Bool:
		flag, ok := from.value.(bool)
		if !ok {
			return d.mismatch(from, path, "true or false"+boolQuotes(from.value))
		}
		into.SetBool(flag)
	case reflect.Float32, reflect.Float64:
		number, ok := toFloat(from)
		if !ok {
			return d.mismatch(from, path, "a number"+d.bounds(path))
		}
		into.SetFloat(number)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		number, ok := toInt(from.value)
		if text, ok := from.value.(string); ok && longNumber.MatchString(text) {
			return d.source.errorAt(from.position, path, "found %s; expected a whole number of at most %d digits", text, inputfile.DigitsMax)
		}
		if !ok || from.leadingZero != "" || into.OverflowInt(number) {
			return d.mismatch(from, path, "a whole number"+cmp.Or(withoutQuotes(from), d.bounds(path)))
		}
		into.SetInt(number)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		number, ok := toUint(from.value)
		if text, ok := from.value.(string); ok && longNumber.MatchString(text) {
			return d.source.errorAt(from.position, path, "found %s; expected a number from 0 to %d", text, uint64(math.MaxUint64))
		}
		if !ok || from.leadingZero != "" || into.OverflowUint(number) {
			return d.mismatch(from, path, "a whole number, 0 or more")
		}
		into.SetUint(number)
	default:
		return fmt.Errorf("decoding %s: fields of type %s are not supported", path, into.Type())
	}
	return nil
}

// longNumber matches a number that does not fit into 64 bits. The YAML library takes it for a text.
var longNumber = regexp.MustCompile(`^[-+]?[0-9]{19,40}$`)

// mismatch returns an error that says what the file has at path and what it should have. An
// example is "found 7; expected a duration such as 500ms".
func (d decoder) mismatch(from *node, path, expected string) error {
	return d.source.errorAt(from.position, path, "found %s; expected %s", from.describe(), expected)
}

// toInt converts the value of a YAML node to an int64. It returns false if the value is not a
// whole number or is above the maximum of int64.
func toInt(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case uint64:
		return int64(v), v <= math.MaxInt64
	}
	return 0, false
}

// toUint converts the value of a YAML node to a uint64. It returns false if the value is negative
// or not a whole number.
func toUint(value any) (uint64, bool) {
	switch v := value.(type) {
	case int64:
		return uint64(v), v >= 0
	case uint64:
		return v, true
	}
	return 0, false
}

// toFloat converts the value of a YAML node to a float64. It returns false if the value is not a
// number.
func toFloat(from *node) (float64, bool) {
	if v, ok := from.value.(float64); ok {
		return v, true
	}
	if from.exponent {
		v, err := strconv.ParseFloat(from.value.(string), 64)
		return v, err == nil
	}
	v, ok := toInt(from.value)
	return float64(v), ok
}

// fieldNames returns the YAML names of a struct's fields, in the order of the struct. It
// includes the fields of embedded structs.
func fieldNames(t reflect.Type) []string {
	var names []string
	for _, field := range visibleFields(t) {
		if name := fieldTag(field); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// fieldIndex returns the index of the struct field with the given YAML name. The index is an
// argument for reflect.Value.FieldByIndex. fieldIndex returns false if the struct has no such
// field.
func fieldIndex(t reflect.Type, name string) ([]int, bool) {
	for _, field := range visibleFields(t) {
		if name != "" && fieldTag(field) == name {
			return field.Index, true
		}
	}
	return nil, false
}

// fieldsOfTypes caches the results of visibleFields by reflect.Type. Without this cache, a fifth of
// the time to read a scenario would be spent in reflect.VisibleFields.
var fieldsOfTypes sync.Map

// visibleFields returns a struct's fields, including those of embedded structs such as the
// target of an operation.
func visibleFields(t reflect.Type) []reflect.StructField {
	if known, ok := fieldsOfTypes.Load(t); ok {
		return known.([]reflect.StructField)
	}
	fields := reflect.VisibleFields(t)
	fieldsOfTypes.Store(t, fields)
	return fields
}

// fieldTag returns the YAML name of a struct field. It returns "" for a field that is not part of
// the YAML format, such as an unexported field.
func fieldTag(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
	if name == "-" || !field.IsExported() {
		return ""
	}
	return name
}

// join appends the name of a field to the path of a mapping. For example, it returns
// "cluster.nodes" for "cluster" and "nodes".
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
