package main

import (
	"errors"
	"slices"

	"github.com/spf13/pflag"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// choiceValue is the value of a flag that accepts one of several names, such as --provider.
type choiceValue struct {
	value *string
	names []string
}

// choiceFlag adds a flag that accepts one of several names. Other values are errors that name the
// flag. The argument value points to the variable of the flag.
func choiceFlag(f *pflag.FlagSet, value *string, name, preset string, names []string, usage string) {
	*value = preset
	f.Var(&choiceValue{value, names}, name, usage)
}

func (v *choiceValue) String() string { return *v.value }

// Set sets the value. It returns an error if the value is none of the names.
func (v *choiceValue) Set(text string) error {
	if !slices.Contains(v.names, text) {
		return errors.New("unknown name; expected " + nearest.List(v.names, "or") + nearest.Suggestion(text, v.names))
	}
	*v.value = text
	return nil
}

// Type returns the type that the help text shows for the flag.
func (v *choiceValue) Type() string { return "string" }
