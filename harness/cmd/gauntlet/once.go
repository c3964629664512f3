package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// acceptOneValue makes a command and its subcommands refuse a flag that is given twice. Flags that
// take several values are an exception.
//
// The commands also refuse an empty value for a flag with a text. Such a value usually comes from a
// variable of a shell that is not set.
func acceptOneValue(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if flag.Value.Type() == "stringToString" {
			flag.Value = &keysOnce{Value: flag.Value, set: map[string]bool{}}
			flag.DefValue = "" // the help text of pflag would show "[]" for a keysOnce
			return
		}
		if _, list := flag.Value.(pflag.SliceValue); list {
			return
		}
		if flag.DefValue == "0s" {
			flag.DefValue = "0" // the help text of pflag omits the default "0", but would show "0s" for an onceValue
		}
		flag.Value = &onceValue{Value: flag.Value, needsText: flag.Value.Type() == "string" && !cmd.Hidden}
	})
	for _, sub := range cmd.Commands() {
		acceptOneValue(sub)
	}
}

// These errors are returned by [onceValue.Set]. flagError puts the name of the flag in front.
var (
	errTwice = errors.New("found the flag twice; give the flag only once")
	errOctal = errors.New("found a number that begins with 0; expected a decimal number without a leading 0")
	errEmpty = errors.New("found an empty value; give the flag a value, or omit the flag")
)

// onceValue wraps the value of a flag that may be given only once.
type onceValue struct {
	pflag.Value
	needsText bool // an empty text is refused
	set       bool
}

// keysOnce wraps the value of a flag with pairs KEY=VALUE. Each key may be given only once.
type keysOnce struct {
	pflag.Value
	set map[string]bool
}

// Set adds pairs to the value of the flag. It returns an error if a key has been set already.
func (v *keysOnce) Set(text string) error {
	pairs, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, pair := range pairs {
		key, _, _ := strings.Cut(pair, "=")
		if v.set[key] {
			return &twiceError{key}
		}
		v.set[key] = true
	}
	return v.Value.Set(text)
}

// twiceError is the error of [keysOnce.Set] about a key that is given twice.
type twiceError struct{ key string }

func (e *twiceError) Error() string {
	return fmt.Sprintf("found the key %q twice; give each key only once", e.key)
}

func (e *twiceError) Is(target error) bool { return target == errTwice }

// octalPattern matches a number that package pflag would read as octal, such as 010.
var octalPattern = regexp.MustCompile(`^[-+]?0[0-9_]`)

// isNumber reports whether the value of the flag is a whole number.
func (v *onceValue) isNumber() bool { return v.Type() == "int" || v.Type() == "uint64" }

// Set sets the value of the flag. It returns an error if the command line has already set the
// flag, if an empty text is refused, or if a number begins with 0.
func (v *onceValue) Set(text string) error {
	switch {
	case v.set:
		return errTwice
	case v.needsText && text == "":
		return errEmpty
	case v.isNumber() && octalPattern.MatchString(text):
		return errOctal
	}
	v.set = true
	return v.Value.Set(text)
}
