package faults

import (
	"cmp"
	"math"
	"time"
)

// NotGiven is the value of a required duration before [scenario.Params.Decode] sets it.
const NotGiven = time.Duration(math.MinInt64)

// Between returns an error if the value of a fault's parameter is out of bounds. The arguments lowest
// and highest are the bounds, which are valid values. The argument field is the name of the parameter.
func Between[T cmp.Ordered](params Params, field string, value, lowest, highest T) error {
	if any(value) == any(NotGiven) {
		return params.Errorf(field, "not given; expected %v to %v", lowest, highest)
	}
	if value < lowest || value > highest {
		return params.Errorf(field, "%v is out of bounds; expected %v to %v", value, lowest, highest)
	}
	return nil
}
