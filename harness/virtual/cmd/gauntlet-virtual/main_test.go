package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/mutant"
	mutants "github.com/kube-gauntlet/gauntlet/harness/mutant/library"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// gauntlet returns the path of the gauntlet executable beside a new gauntlet-virtual. The file
// gauntlet itself does not exist.
func gauntlet(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(bin, "gauntlet")
}

// checkVerdict runs a scenario in virtual time, as `gauntlet run --provider=virtual` does, and
// compares the verdict.
func checkVerdict(t *testing.T, gauntlet string, spec *scenario.Scenario, target subject.Target, want check.Verdict) {
	t.Helper()
	spec = spec.Clone()
	spec.Seed = 1
	result, err := run.Run(t.Context(), run.Options{
		Scenario: spec, Target: target, Provider: providers.Virtual, Out: t.TempDir(), Gauntlet: gauntlet,
	})
	if err != nil {
		t.Fatal(err)
	}
	if result.Verdict != want {
		t.Errorf("verdict %s, want %s: %s", result.Verdict, want, result.Reason)
	}
}

// TestLibrary runs scenarios of the library on both subjects.
func TestLibrary(t *testing.T) {
	program := gauntlet(t)
	for _, name := range []string{"crash", "failover", "services"} {
		spec, ok := library.Find(name)
		if !ok {
			t.Fatalf("no scenario %s", name)
		}
		for _, target := range []subject.Target{subject.Ours, subject.Upstream} {
			t.Run(name+" "+target.String(), func(t *testing.T) { checkVerdict(t, program, spec, target, check.Pass) })
		}
	}
}

// TestMutant builds a mutant of our controllers into the program. A check must detect the mutant.
func TestMutant(t *testing.T) {
	all := mutants.All()
	m := all[slices.IndexFunc(all, func(m mutant.Mutant) bool { return m.ID == "own-no-leftovers" })]
	builder := mutant.Builder{Tree: filepath.Join("..", "..", "..", ".."), Dir: t.TempDir(), Virtual: true}
	program, err := builder.Build(t.Context(), &m)
	if err != nil {
		t.Fatal(err)
	}
	spec, ok := library.Find(m.Scenarios[0])
	if !ok {
		t.Fatalf("no scenario %s", m.Scenarios[0])
	}
	checkVerdict(t, program, spec, subject.Ours, check.Fail)
	upstream := all[slices.IndexFunc(all, func(m mutant.Mutant) bool { return m.Base == mutant.Upstream && m.UnobservableReason == "" })]
	if _, err := builder.Build(t.Context(), &upstream); err == nil {
		t.Errorf("Build of %s succeeded, want an error: it is a mutant of upstream", upstream.ID)
	}
}

// TestKnownUpstreamIssues reproduces each known upstream issue. Some of them take minutes of virtual
// time.
func TestKnownUpstreamIssues(t *testing.T) {
	program := gauntlet(t)
	for _, issue := range check.KnownIssues {
		spec, err := scenario.Load(filepath.Join("..", "..", "..", "..", "suites", "regression", issue.Slug+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(issue.Slug+" upstream", func(t *testing.T) { checkVerdict(t, program, spec, subject.Upstream, check.KnownUpstream) })
		t.Run(issue.Slug+" ours", func(t *testing.T) { checkVerdict(t, program, spec, subject.Ours, check.Pass) })
	}
}
