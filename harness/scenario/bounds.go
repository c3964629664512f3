package scenario

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bounds are the inclusive minimum and maximum of a field. They come from the field's struct tag
// bounds, such as "1..50" or "0s..1m". The bounds of a duration are in nanoseconds. The bounds of a
// list or map limit its length.
type Bounds struct{ Min, Max int64 }

// BoundsOf returns the inclusive limits in the struct tag bounds of a field, such as "1..50". It
// returns false if the field has no such tag.
func BoundsOf(field reflect.StructField) (Bounds, bool) {
	low, high, ok := strings.Cut(field.Tag.Get("bounds"), "..")
	if !ok {
		return Bounds{}, false
	}
	return Bounds{parseBound(field, low), parseBound(field, high)}, true
}

// nullable reports whether a field may be null in YAML, which is the same as no field. This is true
// for optional lists that may be empty.
func nullable(field reflect.StructField) bool {
	bounds, _ := BoundsOf(field)
	return field.Type.Kind() == reflect.Slice && strings.HasSuffix(field.Tag.Get("yaml"), ",omitempty") && bounds.Min == 0
}

// parseBound parses the minimum or the maximum in the struct tag bounds of a field. It panics if
// the text is invalid, because the tag is part of the source code.
func parseBound(field reflect.StructField, text string) int64 {
	if duration, err := time.ParseDuration(text); err == nil && field.Type == durationType {
		return int64(duration)
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("found %[2]q in the struct tag bounds of field %[1]s; expected a whole number, or a duration such as 8s if the field is a duration", field.Name, text))
	}
	return number
}

// boundedField is a number or a duration in a struct of the scenario format, with its minimum and
// maximum.
type boundedField struct {
	name  string // the name of the field in YAML
	index []int  // the index of the field for reflect.Value.FieldByIndex
	Bounds
}

// boundedFieldsOfTypes caches the results of boundedFields. The keys are of type reflect.Type,
// and the values of type []boundedField.
var boundedFieldsOfTypes sync.Map

// boundedFields returns the fields of a struct that are numbers or durations and have bounds.
// validator.bounded checks the values of these fields.
func boundedFields(of reflect.Type) []boundedField {
	if known, ok := boundedFieldsOfTypes.Load(of); ok {
		return known.([]boundedField)
	}
	var fields []boundedField
	for _, field := range visibleFields(of) {
		kind := field.Type.Kind()
		if kind == reflect.Pointer {
			kind = field.Type.Elem().Kind()
		}
		if bounds, ok := BoundsOf(field); ok && (kind == reflect.Int || kind == reflect.Int64) {
			fields = append(fields, boundedField{fieldTag(field), field.Index, bounds})
		}
	}
	boundedFieldsOfTypes.Store(of, fields)
	return fields
}

// bounded reports an error for each number or duration of a struct that is out of its bounds. The
// argument named of is a pointer to the struct. The argument path is the place of the struct in the
// file, such as "cluster".
//
// The bounds come from the struct tags. A nil pointer is valid, because it means that the file
// omits the field.
func (v *validator) bounded(path string, of any) {
	value := reflect.ValueOf(of).Elem()
	for _, field := range boundedFields(value.Type()) {
		found := value.FieldByIndex(field.index)
		if found.Kind() == reflect.Pointer {
			if found.IsNil() {
				continue
			}
			found = found.Elem()
		}
		v.within(join(path, field.name), found, field.Bounds)
	}
}

// within reports an error if the field at path is less than bounds.Min or more than bounds.Max.
// The argument found is the value of the field: a number or a duration.
func (v *validator) within(path string, found reflect.Value, bounds Bounds) {
	if n := found.Int(); found.Type() == durationType {
		v.duration(path, time.Duration(n), time.Duration(bounds.Min), time.Duration(bounds.Max))
	} else {
		v.number(path, int(n), int(bounds.Min), int(bounds.Max))
	}
}
