// Package faulttest contains helpers for the tests of fault packages.
package faulttest

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Parse creates a fault of the given type from a line of YAML. Errors name the file s.yaml
// as its source.
func Parse(kind faults.Type, text string) (faults.Fault, error) {
	params, err := scenario.ParseParams("s.yaml", kind.Name, []byte(text))
	if err != nil {
		return nil, err
	}
	return kind.New(params)
}

// Case is a line of YAML and the error that parsing it must return. An empty Want means no error.
type Case = struct{ Text, Want string }

// Params checks which parameters a fault type accepts and which errors it returns for
// others.
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
