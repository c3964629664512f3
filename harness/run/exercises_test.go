package run

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
)

// TestValidateBeforeStart requires that ValidateBeforeStart accepts all scenarios of this
// repository.
func TestValidateBeforeStart(t *testing.T) {
	for _, s := range library.All() {
		if err := ValidateBeforeStart(s); err != nil {
			t.Error(err)
		}
	}
	var paths []string
	for _, pattern := range []string{"../mutant/library/scenarios/*.yaml", "../../suites/regression/*.yaml", "../../suites/regression/*/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	if len(paths) == 0 {
		t.Fatal("found no scenario files")
	}
	for _, path := range paths {
		if _, err := scenario.Load(path, ValidateBeforeStart); err != nil {
			t.Error(err)
		}
	}
}

// TestValidateBeforeStartErrors checks the end of the error for each kind of invalid scenario.
func TestValidateBeforeStartErrors(t *testing.T) {
	const (
		replicaSet = "name: x\nworkload:\n  - create: {kind: ReplicaSet, name: web, replicas: 1}\n"
		deployment = "name: x\nworkload:\n  - create: {kind: Deployment, name: web, replicas: 1}\n"
	)
	for _, test := range []struct{ name, text, want string }{
		{"a check of ReplicaSets", replicaSet + "exercises: [slow-start, no-writes-when-settled]\n", ""},
		{"a check of ReplicaSets, by a Deployment", deployment + "exercises: [slow-start, max-surge]\n", ""},
		{"a Deployment of another user", replicaSet + "exercises: [max-surge]\nfaults:\n  - user-edit: {steps: [{create: {kind: Deployment, name: web, replicas: 1}}]}\n", ""},
		{"no Deployment", replicaSet + "exercises: [max-surge]\n", "found check max-surge, which nothing in the scenario exercises; expected a step that creates a Deployment, or another check"},
		{"no Service", deployment + "exercises: [endpoints-exact]\n", "found check endpoints-exact, which nothing in the scenario exercises; expected a step that creates a Service, or another check"},
		{"no terminating namespace", deployment + "exercises: [terminating-namespace]\n", "found check terminating-namespace, which nothing in the scenario exercises; expected the fault namespace-terminating, or another check"},
		{"a terminating namespace", deployment + "exercises: [terminating-namespace]\nfaults:\n  - namespace-terminating: {}\n", ""},
		{"no rollback", deployment + "exercises: [rollback]\n", "expected a rollback step, or another check"},
		{"a rollback of another user", deployment + "exercises: [rollback]\nfaults:\n  - user-edit: {steps: [{rollback: {name: web}}]}\n", ""},
		{"no rollout", deployment + "  - scale: {kind: Deployment, name: web, replicas: 2}\nexercises: [revision-history-limit]\n", "expected a step such as rollout, after which a Deployment has an old ReplicaSet, or another check"},
		{"a rollout", deployment + "  - rollout: {name: web, version: v2}\nexercises: [revision-history-limit]\n", ""},
		{"no controller", replicaSet + "subject: {controllers: [endpoints-controller]}\nexercises: [slow-start]\n", "scope of the check: Contract (trait slow-start)"},
		{"an unknown controller", replicaSet + "subject: {controllers: [replicaset]}\nexercises: [slow-start]\n", "did you mean replicaset-controller?"},
		{"a misspelled workload", strings.Replace(replicaSet, "workload", "wrokload", 1) + "exercises: [slow-start]\n", "did you mean workload?"},
		{"a misspelled kind", "name: x\nworkload:\n  - create: {kind: Replicaset, name: web}\nexercises: [slow-start]\n", "did you mean ReplicaSet?"},
		{"an edit without a name", replicaSet + "faults:\n  - user-edit: {steps: [{scale: {kind: ReplicaSet, replicas: 1}}]}\n", "scale.name: found nothing; expected a name"},
		{"an edit with an invalid name", replicaSet + "faults:\n  - user-edit: {steps: [{scale: {kind: ReplicaSet, name: ' ', replicas: 1}}]}\n", "with no - at either end"},
		{"no apiVersion of a kind", replicaSet + "operator: {kinds: [{kind: Widget}]}\nfaults:\n  - watch-skip: {resource: widgets.example.com}\n", "expected a group and a version such as apps/v1, or v1"},
		{"two mistakes", replicaSet + "exercises: [slow-stat]\nfaults:\n  - api-eror: {}\n", "did you mean api-error?"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := scenario.Parse("x.yaml", []byte(test.text), ValidateBeforeStart)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case test.want != "" && (err == nil || !strings.HasSuffix(err.Error(), test.want)):
				t.Errorf("error %v, want one that ends with %q", err, test.want)
			}
			if lines := strings.Count(fmt.Sprint(err), "\n") + 1; (lines == 2) != (test.name == "two mistakes") {
				t.Errorf("error %v, want one line for each mistake", err)
			}
		})
	}
}
