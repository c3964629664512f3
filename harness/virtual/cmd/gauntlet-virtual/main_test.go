package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// TestRun runs scenarios in virtual time on both subjects, as `gauntlet run --provider=virtual` does.
func TestRun(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"crash", "failover", "services"} {
		for _, target := range []subject.Target{subject.Ours, subject.Upstream} {
			t.Run(name+" "+target.String(), func(t *testing.T) {
				spec, ok := library.Find(name)
				if !ok {
					t.Fatalf("no scenario %s", name)
				}
				spec.Seed = 1
				result, err := run.Run(t.Context(), run.Options{
					Scenario: spec, Target: target, Provider: providers.Virtual, Out: t.TempDir(), Gauntlet: filepath.Join(bin, "gauntlet"),
				})
				if err != nil {
					t.Fatal(err)
				}
				if result.Verdict != check.Pass {
					t.Errorf("verdict %s, want pass: %s", result.Verdict, result.Reason)
				}
			})
		}
	}
}
