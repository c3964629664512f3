package scenario

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOldNamesAreRead(t *testing.T) {
	s, err := Parse("x.yaml", []byte(minimal+`faults:
  - pod-churn: {}
    when: {request: {}, after: {truth: {resource: pods}}}
    until: {state: {resource: pods, atLeast: 2}}
exercises: [converged, quiet]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`x.yaml:7:33: found the old name "truth"; use the new name "state", because release v0.4 rejects the old name`,
		`x.yaml:9:24: found the old name "quiet"; use the new name "no-writes-when-settled", because release v0.4 rejects the old name`,
	}
	if diff := cmp.Diff(want, s.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if after := s.Faults[0].When.After; after.State == nil || after.State.Resource != "pods" {
		t.Errorf("the trigger with the old name is %+v", after)
	}
	written, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for old := range map[string]bool{"truth": true, "quiet]": true} {
		if strings.Contains(string(written), old) {
			t.Errorf("Marshal wrote the old name %s:\n%s", old, written)
		}
	}
	again, err := Parse("again.yaml", written)
	if err != nil || len(again.Warnings()) > 0 {
		t.Errorf("error %v, warnings %q of a file with new names only", err, again.Warnings())
	}
}

func TestOldNameErrors(t *testing.T) {
	for _, test := range []struct{ name, input, want string }{
		{"old and new field", "faults:\n  - pod-churn: {}\n    when: {truth: {resource: pods}, state: {resource: pods}}\n",
			`x.yaml:7:12: faults[0].when: found the old name "truth" and the new name "state" of one field; remove the old name`},
		{"old and new check", "exercises: [quiet, no-writes-when-settled]\n",
			`x.yaml:5:20: exercises[1]: found check "no-writes-when-settled" twice; expected each check once`},
		{"an error below an old name", "faults:\n  - pod-churn: {}\n    when: {truth: {resource: services, is: ready}}\n",
			`x.yaml:7:44: faults[0].when.state.is: found "ready"; expected present or terminating`},
		{"an old name in another place", "truth: 1\n",
			`x.yaml:5:1: unknown field "truth"; expected name, description, seed, cluster, subject, operator, workload, externalWorkload, faults, settle or exercises`},
	} {
		if _, err := Parse("x.yaml", []byte(minimal+test.input)); err == nil || err.Error() != test.want {
			t.Errorf("%s:\n got %v\nwant %s", test.name, err, test.want)
		}
	}
}

func TestWarn(t *testing.T) {
	s := &Scenario{Name: "made-in-go"}
	if got := s.Warnings(); len(got) > 0 {
		t.Errorf("warnings %q of a new scenario", got)
	}
	s.Warn("a")
	s.Warn("b")
	if diff := cmp.Diff([]string{"a", "b"}, s.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
