package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/mutant"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// notebookSource is the source file of the small operator in examples/.
const notebookSource = "examples/operators/notebook/main.go"

// createClaim is the source text with which the small operator creates a PersistentVolumeClaim.
const createClaim = `		_, err := client.Create(ctx, newClaim(notebook, size), metav1.CreateOptions{})
		return err
`

// notebookMutants are mutants of the small operator. Of all checks, only the one in Checks may
// detect the mutant.
var notebookMutants = []mutant.Mutant{
	{
		ID:        "notebook-lost-update",
		Edits:     []mutant.Edit{{File: notebookSource, Old: `, "resourceVersion": notebook.GetResourceVersion()`, New: ``}},
		Scenarios: []string{"lost-update"},
		Checks:    []string{"no-lost-update"},
	},
	{
		ID: "notebook-stale-delete",
		Edits: []mutant.Edit{{File: notebookSource, Old: `	live, err := o.client.Resource(notebooks).Namespace(notebook.GetNamespace()).Get(ctx, notebook.GetName(), metav1.GetOptions{})
	if err != nil || storage(live) != "" {
		return err
	}
`}},
		Scenarios: []string{"stale-delete"},
		Checks:    []string{"no-stale-delete"},
	},
	{
		ID: "notebook-lost-claim",
		Edits: []mutant.Edit{{File: notebookSource, Old: createClaim, New: strings.Replace(createClaim, "return err", "_ = err\n\t\treturn nil", 1)}, {File: notebookSource,
			Old: `	if err := o.reconcileClaim(`, New: `	if done, _, _ := unstructured.NestedInt64(notebook.Object, "status", "observedGeneration"); done == notebook.GetGeneration() {
		return nil
	}
	if err := o.reconcileClaim(`,
		}},
		Scenarios: []string{"lost-claim"},
		Checks:    []string{"same-end-state"},
	},
	{
		ID: "notebook-lost-status",
		Edits: []mutant.Edit{{File: notebookSource, Old: `	_, err := o.client.Resource(notebooks).Namespace(name.Namespace).UpdateStatus(ctx, notebook, metav1.UpdateOptions{})
	return err
`, New: `	_, _ = o.client.Resource(notebooks).Namespace(name.Namespace).UpdateStatus(ctx, notebook, metav1.UpdateOptions{})
	return nil
`}},
		Scenarios: []string{"lost-status"},
		Checks:    []string{"same-end-state"},
	},
	{
		ID: "notebook-replaced-claim",
		Edits: []mutant.Edit{{File: notebookSource, Old: createClaim, New: strings.Replace(createClaim, "return err", `if err != nil && strings.Contains(err.Error(), "already exists") {
			err = errors.Join(err, client.Delete(ctx, notebook.GetName()+claimSuffix, metav1.DeleteOptions{}))
		}
		return err`, 1)}, {File: notebookSource, Old: `	"encoding/json"
`, New: `	"encoding/json"
	"errors"
`}},
		Scenarios: []string{"replaced-claim"},
		Checks:    []string{"no-extra-effects"},
	},
}

// TestNotebookMutantsLive runs one scenario with each mutant of the small operator, and with the
// operator without a bug. Only the expected check must fail for a mutant. Without a bug, no check
// must fail.
func TestNotebookMutantsLive(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes: make test-slow has it")
	}
	tree, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	builder := &mutant.Builder{Tree: tree, Command: "examples/operators/notebook", Dir: t.TempDir()}
	for _, m := range notebookMutants {
		unmodified := mutant.Mutant{ID: "unmodified-" + m.ID, Base: mutant.Ours, Scenarios: m.Scenarios}
		var flags []string
		// The checks with a baseline also detect the bugs for which there are other checks. Therefore
		// only the runs for these checks have a baseline.
		if c, _ := check.Find(m.Checks[0]); c.NeedsBaseline {
			learnt := filepath.Join(t.TempDir(), "baseline.yaml")
			notebookCommand(t, builder, tree, &unmodified, "baseline", "--output="+learnt)
			flags = []string{"--baseline=" + learnt}
		}
		for _, built := range []mutant.Mutant{unmodified, m} {
			t.Run(built.ID, func(t *testing.T) {
				if diff := cmp.Diff(built.Checks, failedChecks(t, builder, tree, &built, flags...)); diff != "" {
					t.Errorf("failed checks: -want +got:\n%s", diff)
				}
			})
		}
	}
}

// notebookCommand builds the small operator and runs a command of gauntlet on the operator's
// scenario. It returns the directory of the runs.
func notebookCommand(t *testing.T, builder *mutant.Builder, tree string, m *mutant.Mutant, name string, flags ...string) (out string) {
	t.Helper()
	executable, err := builder.Build(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(tree, filepath.Dir(notebookSource))
	out = t.TempDir()
	subject := notebookSubject(t, dir, "notebook.yaml", executable)
	args := append([]string{name, filepath.Join(dir, m.Scenarios[0]+".yaml"), "--subject=" + subject, "--seed=1", "--out=" + out}, flags...)
	if _, err := command(t, args...); err != nil {
		t.Fatal(err)
	}
	return out
}

// notebookSubject writes a copy of one of the small operator's subject files, for another
// executable. It returns the path of the copy. The argument dir is the directory of the original.
func notebookSubject(t *testing.T, dir, name, executable string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(content), "../../../bin/notebook", executable)
	for _, manifest := range []string{"crd.yaml", "crd-versions.yaml", "webhooks.yaml"} {
		text = regexp.MustCompile(`([\[ ])`+regexp.QuoteMeta(manifest)).ReplaceAllString(text, "${1}"+filepath.Join(dir, manifest))
	}
	path := filepath.Join(t.TempDir(), "subject.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// failedChecks runs the small operator's scenario, and returns the IDs of the checks that failed.
func failedChecks(t *testing.T, builder *mutant.Builder, tree string, m *mutant.Mutant, flags ...string) (failed []string) {
	t.Helper()
	out := notebookCommand(t, builder, tree, m, "run", flags...)
	runs, err := filepath.Glob(filepath.Join(out, "*", "verdicts.json"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("found %d runs, %v; expected 1", len(runs), err)
	}
	kept, err := reports.ReadDirectory(filepath.Dir(runs[0]))
	if err != nil {
		t.Fatal(err)
	}
	if run := kept[0]; run.Verdict == check.Unknown {
		t.Errorf("the verdict is unknown: %s", run.Reason)
	}
	for _, result := range kept[0].Results {
		if result.Verdict == check.Fail {
			failed = append(failed, result.Check)
		}
	}
	return failed
}
