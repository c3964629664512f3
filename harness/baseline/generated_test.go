package baseline

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGeneratedNames checks which objects count together because their names differ between runs.
func TestGeneratedNames(t *testing.T) {
	// runOf returns the observer of a run in which the controllers under test create Secrets. A name
	// that ends with * is a generated name with this prefix.
	runOf := func(names ...string) *Observer {
		var parts []any
		for i, name := range names {
			secret := object("secrets", name, name, `{"data":{"name":"`+name+`"}}`)
			if prefix, generated := strings.CutSuffix(name, "*"); generated {
				secret.Name, secret.GenerateName = prefix+"k8x2p", prefix
			}
			parts = append(parts, requested(uint64(i), "create", secret, 201), commit("ADDED", secret))
		}
		return observed(parts...)
	}
	for name, test := range map[string]struct {
		runs        [][]string // the Secrets of each run without faults
		generated   []string
		found       []string // the Secrets of a further run
		differences []string
	}{
		"equal names": {runs: [][]string{{"a-1"}, {"a-1"}}, found: []string{"a-1"}},
		"another name in each run": {
			runs: [][]string{{"a-x", "a-b"}, {"a-y", "a-c"}}, generated: []string{"secrets ns/a-*"},
			found: []string{"a-z", "a-d"},
		},
		"another prefix of a generated name in each run": {
			runs: [][]string{{"a-x-*", "a-fixed-*"}, {"a-y-*", "a-fixed-*"}}, generated: []string{"secrets ns/a-*"}, found: []string{"a-z-*", "a-fixed-*"},
		},
		"one too many": {
			runs: [][]string{{"a-x"}, {"a-y"}}, generated: []string{"secrets ns/a-*"}, found: []string{"a-z", "a-d"},
			differences: []string{`secrets ns/a-*: found "2"; expected "1"`, "secrets ns/a-*: found 2 created, 0 deleted, 0 lost; expected 1 created, 0 deleted, 0 lost (created too often)"},
		},
		"two generated parts":  {runs: [][]string{{"a-x-1"}, {"a-y-2"}}, generated: []string{"secrets ns/a-*"}, found: []string{"a-z-3"}},
		"no common part":       {runs: [][]string{{"x"}, {"y"}}, generated: []string{"secrets ns/*"}, found: []string{"z"}},
		"an object of one run": {runs: [][]string{{"a"}, {"a", "b-1"}}, found: []string{"a"}},
		"a fixed name as well": {runs: [][]string{{"a-x", "a-fixed"}, {"a-y", "a-fixed"}}, generated: []string{"secrets ns/a-*"}, found: []string{"a-z", "a-fixed"}},
		"an object of one run, beside generated names": {
			runs: [][]string{{"a-x"}, {"a-y", "late"}}, generated: []string{"secrets ns/a-*"}, found: []string{"a-z", "other"},
			differences: []string{`secrets ns/other: found "1"; expected none`, "secrets ns/other: found 1 created, 0 deleted, 0 lost; expected 0 created, 0 deleted, 0 lost (created too often)"},
		},
		"only one run":           {runs: [][]string{{"a-x"}}, found: []string{"a-x"}},
		"another number of them": {runs: [][]string{{"a-x"}, {"a-y", "a-z"}}, generated: []string{"secrets ns/a-*"}, found: []string{"a-1", "a-2", "a-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			var runs []*Observer
			for _, names := range test.runs {
				runs = append(runs, runOf(names...))
			}
			learnt, found := Combine(runs), runOf(test.found...)
			if diff := cmp.Diff(test.generated, learnt.Generated); diff != "" {
				t.Errorf("generated names (-want +got):\n%s", diff)
			}
			got := slices.Concat(learnt.Differences(found, false), extraEffects(learnt, found))
			if diff := cmp.Diff(test.differences, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}
