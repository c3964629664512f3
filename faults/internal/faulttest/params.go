// Package faulttest has what the tests of several families of faults share.
package faulttest

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Parse makes the fault of a kind that a line of YAML describes. Errors place it
// in a file s.yaml.
func Parse(kind faults.Type, text string) (faults.Fault, error) {
	params, err := scenario.ParseParams("s.yaml", kind.Name, []byte(text))
	if err != nil {
		return nil, err
	}
	return kind.New(params)
}

// Case is a line of YAML and the error that it is to be refused with, empty if it
// is good.
type Case = struct{ Text, Want string }

// Params demands that a kind takes good parameters and refuses bad ones.
func Params(t *testing.T, kind faults.Type, cases []Case) {
	t.Helper()
	for _, test := range cases {
		_, err := Parse(kind, test.Text)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != test.Want {
			t.Errorf("%s:\n got %s\nwant %s", test.Text, got, test.Want)
		}
	}
}
