package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/mutant"
)

func TestReadOutcomes(t *testing.T) {
	all := []mutant.Mutant{{ID: "same"}, {ID: "newer"}, {ID: "changed"}, {ID: "alone"}}
	of := func(id, of string, second int64, state mutant.State) mutant.Outcome {
		return mutant.Outcome{Mutant: id, Fingerprint: of, When: time.Unix(second, 0), State: state}
	}
	is := all[0].Fingerprint() // of every mutant here, because a fingerprint does not depend on the ID
	dir := t.TempDir()
	write := func(name string, found ...mutant.Outcome) string {
		outcomes := map[string]mutant.Outcome{}
		for _, o := range found {
			outcomes[o.Mutant] = o
		}
		path := filepath.Join(dir, name)
		if err := writeJSON(path, outcomes); err != nil {
			t.Fatal(err)
		}
		return path
	}
	out := write("out.json", of("same", is, 1, mutant.Detected), of("newer", is, 1, mutant.NotDetected), of("changed", "other", 3, mutant.NotDetected))
	tree := write("tree.json", of("same", is, 1, mutant.NotDetected), of("newer", is, 2, mutant.Detected), of("changed", is, 2, mutant.Detected), of("alone", is, 1, mutant.Detected))
	outcomes, err := readOutcomes(all, out, filepath.Join(dir, "missing.json"), tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if got := outcomes[m.ID].State; got != mutant.Detected {
			t.Errorf("%s: state %q; expected the latest outcome with the current fingerprint", m.ID, got)
		}
	}
}
