package faults

import "github.com/kube-gauntlet/gauntlet/harness/scenario"

// Glob returns an error if the value of a fault's parameter is not a valid glob. The argument field
// is the name of the parameter.
func Glob(params Params, field, pattern string) error {
	if err := scenario.CheckGlob(pattern); err != nil {
		return params.Errorf(field, "%w", err)
	}
	return nil
}

// OwnerGlob returns an error if the value of a fault's parameter "owner" is invalid. A valid value
// is empty, or a pair of globs for the kind and the name of an owner.
func OwnerGlob(params Params, pattern string) error {
	if err := scenario.CheckOwner(pattern); err != nil {
		return params.Errorf("owner", "%w", err)
	}
	return Glob(params, "owner", pattern)
}
