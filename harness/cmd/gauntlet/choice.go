package main

import (
	"errors"
	"slices"

	"github.com/spf13/pflag"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// choiceValue is the value of a flag that accepts one of several names, such as --provider.
type choiceValue struct {
	value *string
	names []string
}

// choiceFlag adds a flag that accepts one of several names. Other values are errors that name the
// flag. The argument value points to the variable of the flag.
func choiceFlag(f *pflag.FlagSet, value *string, flag, preset string, names []string, usage string) {
	*value = preset
	f.Var(&choiceValue{value, names}, flag, usage)
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

// imageValue is the value of a flag that accepts the reference of a container image. An empty text
// means that the flag is not set.
type imageValue struct{ value *string }

func (v *imageValue) String() string { return *v.value }

// Set sets the value. It returns an error if the text is no reference of an image.
func (v *imageValue) Set(text string) error {
	if err := subject.CheckImage(text); err != nil && text != "" {
		return errors.New("invalid reference; expected the reference of an image, such as kindest/node:v1.36.3")
	}
	*v.value = text
	return nil
}

// Type returns the type that the help text shows for the flag.
func (v *imageValue) Type() string { return "string" }
