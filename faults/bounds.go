package faults

import "cmp"

// Between returns an error if the value of a fault's parameter is out of bounds. The arguments lowest
// and highest are the bounds, which are valid values. The argument field is the name of the parameter.
func Between[T cmp.Ordered](params Params, field string, value, lowest, highest T) error {
	if value < lowest || value > highest {
		return params.Errorf(field, "%v is out of bounds; expected %v to %v", value, lowest, highest)
	}
	return nil
}
