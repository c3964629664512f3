package faults

import (
	"fmt"
	"testing"
)

// params is a fake Params of a scenario whose workload creates widgets.
type params struct{ Params }

func (params) Errorf(field, format string, args ...any) error {
	return fmt.Errorf(field+": "+format, args...)
}

func (params) Resources() []string { return []string{"pods", "widgets.example.com"} }

// TestResource checks that a parameter may name a custom resource only if the scenario's
// workload creates this resource.
func TestResource(t *testing.T) {
	const list = "expected one of pods, widgets.example.com"
	tests := []struct {
		params Params
		value  string
		want   string
	}{
		{params{}, "pods", ""},
		{params{}, "widgets.example.com", ""},
		{params{}, "gadgets.example.com", `resource: unknown value "gadgets.example.com"; ` + list + ", or the resource of a kind in the field operator.kinds of the scenario; did you mean widgets.example.com?"},
		{params{}, "", "resource: not given; " + list},
	}
	for _, test := range tests {
		got := ""
		if err := Resource(test.params, test.value); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%q: error %q, want %q", test.value, got, test.want)
		}
	}
}
