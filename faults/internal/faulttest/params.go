// Package faulttest contains test helpers for the packages that implement faults.
package faulttest

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Parse creates a fault of the given type from parameters in YAML. Positions in its errors refer
// to a file named s.yaml.
func Parse(kind faults.Type, text string) (faults.Fault, error) {
	params, err := scenario.ParseParams("s.yaml", kind.Name, []byte(text))
	if err != nil {
		return nil, err
	}
	return kind.New(params)
}

// Case is a test case of [Params]. Text contains fault parameters in YAML. Want is the error
// message for invalid parameters, or "" if the parameters are valid.
type Case = struct{ Text, Want string }

// Params tests which parameters a fault type accepts, and which errors it returns for invalid
// parameters.
func Params(t *testing.T, kind faults.Type, cases []Case) {
	t.Helper()
	for _, test := range cases {
		_, err := Parse(kind, test.Text)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != test.Want {
			t.Errorf("%s:\n got error %q\nwant error %q", test.Text, got, test.Want)
		}
	}
}
