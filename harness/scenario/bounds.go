package scenario

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bounds are the minimum and the maximum of a field. They come from the field's tag bounds,
// such as "1..50" or "0s..1m". Durations are in nanoseconds; the bounds of a list or map
// apply to its length.
type Bounds struct{ Min, Max int64 }

// BoundsOf returns the bounds of a field, and reports whether the field has bounds.
func BoundsOf(field reflect.StructField) (Bounds, bool) {
	low, high, ok := strings.Cut(field.Tag.Get("bounds"), "..")
	if !ok {
		return Bounds{}, false
	}
	return Bounds{parseBound(field, low), parseBound(field, high)}, true
}

// parseBound parses a bound. It panics if the tag is wrong, which is a bug of this package.
func parseBound(field reflect.StructField, text string) int64 {
	if duration, err := time.ParseDuration(text); err == nil && field.Type == durationType {
		return int64(duration)
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("field %s has the bound %q", field.Name, text))
	}
	return number
}

// boundedField is a field with bounds.
type boundedField struct {
	name  string // the name in YAML
	index []int
	Bounds
}

var boundedFieldsOfTypes sync.Map // []boundedField by type

// boundedFields returns the fields of a struct that are numbers or durations with bounds.
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

// bounded checks that the numbers and durations of a struct are within their bounds. The
// caller passes a pointer to the struct. Fields that are nil pointers have no bounds,
// because the file omits them.
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

func (v *validator) within(path string, found reflect.Value, bounds Bounds) {
	if n := found.Int(); found.Type() == durationType {
		v.duration(path, time.Duration(n), time.Duration(bounds.Min), time.Duration(bounds.Max))
	} else {
		v.number(path, int(n), int(bounds.Min), int(bounds.Max))
	}
}
