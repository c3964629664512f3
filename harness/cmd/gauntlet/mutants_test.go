package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/mutant"
	mutants "github.com/kube-gauntlet/gauntlet/harness/mutant/library"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
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

// TestMutantsTiers checks that "gauntlet mutants tiers" prints the tiers of a source tree. With
// --write, it must write the tiers to that tree.
func TestMutantsTiers(t *testing.T) {
	tree, root := t.TempDir(), filepath.Join("..", "..", "..")
	for _, file := range []string{"harness/mutant/outcomes.json", "harness/mutant/matrix.json", "harness/scenario/library/tiers.txt"} {
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(tree, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, content, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(tree, "harness", "scenario", "library", "tiers.txt")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := command(t, "mutants", "tiers", "--tree="+tree)
	if err != nil || !strings.Contains(out, "\nquick catches ") || !strings.Contains(out, "\nquick    rollout ") {
		t.Fatalf("error %v, output %q; expected the scenario rollout in quick, and rates", err, out)
	}
	if content, err := os.ReadFile(file); err != nil || len(content) > 0 {
		t.Errorf("tiers.txt has %q, error %v; expected no change without --write", content, err)
	}
	if _, err := command(t, "mutants", "tiers", "--tree="+tree, "--write"); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(file); err != nil || !strings.Contains(string(content), "quick rollout\n") {
		t.Errorf("tiers.txt has %q, error %v; expected the scenario rollout in quick", content, err)
	}
}

// TestCoverageScenarios checks the totals, which are in the last line, for built-in, named and
// generated scenarios.
func TestCoverageScenarios(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"", fmt.Sprintf("scenarios: %d, combinations: 200 of 200\n", len(library.All())-len(unsupported()))},
		{"rollouts-prompt", "scenarios: 1, "},
		{"--seeds=3 --profile=storm", "scenarios: 3, "},
	} {
		out, err := command(t, append([]string{"coverage", "scenarios"}, strings.Fields(test.args)...)...)
		if err != nil || !strings.Contains(out, "\n"+test.want) {
			t.Errorf("%q: error %v, output %q; expected %q", test.args, err, out, test.want)
		}
	}
}

// unsupported returns the built-in scenarios that the embedded control plane does not support.
func unsupported() []*scenario.Scenario {
	return slices.DeleteFunc(library.All(), func(s *scenario.Scenario) bool { return run.Supported(s, "embedded") == nil })
}

// TestVirtualMutants checks which mutants run in virtual time, and in which scenarios.
func TestVirtualMutants(t *testing.T) {
	selected := new(mutantsFlags).virtualMutants(mutants.All())
	if len(selected) < 80 {
		t.Errorf("%d mutants can run in virtual time, want at least 80", len(selected))
	}
	for _, m := range selected {
		for _, name := range m.Scenarios {
			if s, ok := library.Find(name); !ok || run.Supported(s, providers.Virtual) != nil {
				t.Errorf("%s: scenario %s is not supported", m.ID, name)
			}
		}
	}
}

// TestGeneratedScenariosOfMutants checks that --seeds replaces the scenarios of mutants, and that
// a name gives the same scenario again.
func TestGeneratedScenariosOfMutants(t *testing.T) {
	flags := mutantsFlags{seeds: 3, generated: generateFlags{profile: "steady"}, runs: runFlags{provider: providers.Virtual}}
	all, err := flags.withGenerated(t.Context(), mutants.All())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.UnobservableReason != "" {
			continue
		}
		if want := []string{"seed-1", "seed-2", "seed-3"}; !slices.Equal(m.Scenarios, want) || len(m.Checks) == 0 {
			t.Fatalf("%s has the scenarios %q and %d checks, want %q and all checks", m.ID, m.Scenarios, len(m.Checks), want)
		}
	}
	s, err := flags.scenarioNamed("seed-3")
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.Marshal()
	if i := slices.IndexFunc(all, func(m mutant.Mutant) bool { return len(m.Texts) == 3 }); err != nil || s.Seed != 3 || string(text) != all[i].Texts[2] {
		t.Errorf("seed-3 has seed %d and another text than the mutants have, error %v", s.Seed, err)
	}
	flags.missing = true
	if _, err := flags.withGenerated(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "--missing and --seeds") {
		t.Errorf("error %v for --missing, want one that names both flags", err)
	}
}
