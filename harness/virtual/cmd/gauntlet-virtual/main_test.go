package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/runtimepatch"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/mutant"
	mutants "github.com/kube-gauntlet/gauntlet/harness/mutant/library"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// programs is the directory in which all tests of the process find gauntlet-virtual. buildOnce
// creates it, and TestMain removes it. It is empty before that.
var programs string

func TestMain(m *testing.M) {
	code := m.Run()
	if err := os.RemoveAll(programs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// gauntlet returns the path of the gauntlet executable beside a new gauntlet-virtual. The file
// gauntlet itself does not exist. With -short, gauntlet-virtual has no patched runtime, which would
// need minutes of compilation.
func gauntlet(t *testing.T) string {
	t.Helper()
	if err := buildOnce(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(programs, "gauntlet")
}

// buildOnce builds gauntlet-virtual when it is called for the first time.
var buildOnce = sync.OnceValue(func() (err error) {
	if programs, err = os.MkdirTemp("", "gauntlet-virtual-"); err != nil {
		return err
	}
	args := []string{"build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags=-s -w", "-o", programs}
	if !testing.Short() {
		patched := filepath.Join(programs, "runtime")
		if err := runtimepatch.WriteOverlay(context.Background(), patched); err != nil {
			return err
		}
		args = append(args, "-overlay="+filepath.Join(patched, "overlay.json"))
	}
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		return fmt.Errorf("building gauntlet-virtual: %w\n%s", err, out)
	}
	return nil
})

// checkVerdict runs a scenario in virtual time, as `gauntlet run --provider=virtual` does, and
// compares the verdict. It also checks that Options.OnRecord gets each record of the history. It
// returns the run directory.
func checkVerdict(t *testing.T, gauntlet string, spec *scenario.Scenario, target subject.Target, want check.Verdict) string {
	t.Helper()
	spec = spec.Clone()
	spec.Seed = 1
	out := t.TempDir()
	records := 0
	result, err := run.Run(t.Context(), run.Options{
		Scenario: spec, Target: target, Provider: providers.Virtual, Out: out, Gauntlet: gauntlet,
		OnRecord: func(*history.Record) { records++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := os.ReadFile(filepath.Join(result.Directory, "history.jsonl"))
	if want := bytes.Count(recorded, []byte("\n")); err != nil || records != want {
		t.Errorf("OnRecord got %d records, want %d: %v", records, want, err)
	}
	if result.Verdict != want {
		t.Errorf("verdict %s, want %s: %s", result.Verdict, want, result.Reason)
	}
	_, err = os.Stat(filepath.Join(result.Directory, "diagnostics"))
	if has := err == nil; !result.VirtualTime || has && want == check.Pass {
		t.Errorf("virtual time: %t, diagnostics: %t; want virtual time, and no diagnostics of a run that passed", result.VirtualTime, has)
	}
	return result.Directory
}

// TestOneSeedOneHistory runs scenarios several times with one seed. The histories must be equal to
// the last byte. The scenario burst-down also collects garbage and fills the run queue. In
// node-loss, further controllers start in the middle of the run.
func TestOneSeedOneHistory(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs the patched runtime, which takes minutes to compile")
	}
	program := gauntlet(t)
	for _, name := range []string{"failover", "burst-down", "node-loss"} {
		spec, ok := library.Find(name)
		if !ok {
			t.Fatalf("no scenario %s", name)
		}
		for _, target := range []subject.Target{subject.Ours, subject.Upstream} {
			t.Run(name+" "+target.String(), func(t *testing.T) {
				var first []byte
				for i := range 3 {
					history, err := os.ReadFile(filepath.Join(checkVerdict(t, program, spec, target, check.Pass), "history.jsonl"))
					if err != nil {
						t.Fatal(err)
					}
					if i == 0 {
						first = history
					} else if !bytes.Equal(history, first) {
						t.Fatalf("history %d differs from the first one", i+1)
					}
				}
			})
		}
	}
}

// TestLibrary runs gauntlet's own scenarios on our controllers and on kube-controller-manager.
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

// TestOneController tests each default controller alone. The control plane must run the others.
func TestOneController(t *testing.T) {
	program := gauntlet(t)
	for _, name := range kube.DefaultControllers() {
		spec, err := scenario.Parse(name+".yaml", []byte(`
name: one-controller
subject: {controllers: [`+name+`]}
workload:
  - create: {kind: ReplicationController, name: old, replicas: 2}
    await: {until: ready}
  - create: {kind: Deployment, name: web, replicas: 3}
    await: {until: complete}
  - create: {kind: Service, name: web, selector: {app: web}}
    await: {until: served}
  - scale: {kind: ReplicationController, name: old, replicas: 1}
  - rollout: {kind: Deployment, name: web, version: v2}
    await: {until: complete}
faults:
  - watch-delay: {resource: pods, delay: 50ms}
`))
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range []subject.Target{subject.Ours, subject.Upstream} {
			t.Run(name+" "+target.String(), func(t *testing.T) { checkVerdict(t, program, spec, target, check.Pass) })
		}
	}
}

// TestArguments checks which arguments gauntlet-virtual refuses.
func TestArguments(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "found 0 arguments; expected one, the run directory"},
		{[]string{dir, dir}, "found 2 arguments; expected one, the run directory"},
		{[]string{"--verbose"}, "unknown flag: --verbose; expected the run directory"},
		{[]string{dir}, dir + ": found no scenario.yaml; expected a run directory"},
	} {
		if err := checkArguments(test.args); err == nil || err.Error() != test.want {
			t.Errorf("arguments %v: error %v; want %q", test.args, err, test.want)
		}
	}
}

// TestDeath checks the reports of a run in which gauntlet-virtual dies. It dies before or after
// the first record of the history.
func TestDeath(t *testing.T) {
	program := filepath.Join(filepath.Dir(gauntlet(t)), "gauntlet-virtual")
	for _, test := range []struct{ name, script, want string }{
		{"before the history", "echo 'it begins'\necho 'panic: boom'\necho 'at main.go:7'\nexit 2\n", "the run: gauntlet-virtual exited with status 2: panic: boom"},
		{"with an empty history", ": > \"$1/history.jsonl\"\nkill -9 $$\n", "the run: gauntlet-virtual was terminated by SIGKILL"},
		{
			"with a history",
			program + " \"$1\"\nhead -n 200 \"$1/history.jsonl\" | head -c -9 > \"$1/cut\"\nmv \"$1/cut\" \"$1/history.jsonl\"\necho 'fatal error: all goroutines are asleep'\nexit 2\n",
			"the run: gauntlet-virtual exited with status 2: fatal error: all goroutines are asleep",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			bin := t.TempDir()
			if err := os.WriteFile(filepath.Join(bin, "gauntlet-virtual"), []byte("#!/bin/sh\n"+test.script), 0o755); err != nil {
				t.Fatal(err)
			}
			spec, _ := library.Find("crash")
			spec = spec.Clone()
			spec.Seed = 1
			result, err := run.Run(t.Context(), run.Options{
				Scenario: spec, Target: subject.Ours, Provider: providers.Virtual, Out: t.TempDir(), Gauntlet: filepath.Join(bin, "gauntlet"),
			})
			if result == nil || err == nil {
				t.Fatalf("result %v, error %v; want a result and an error", result, err)
			}
			for _, name := range []string{"verdicts.json", "report.html"} {
				if text, err := os.ReadFile(filepath.Join(result.Directory, name)); err != nil || !strings.Contains(string(text), test.want) {
					t.Errorf("%s: error %v, no %q; the reason is %s", name, err, test.want, result.Reason)
				}
			}
			again, err := run.Check(result.Directory)
			if err != nil || again.Verdict != check.Unknown || again.Reason != result.Reason {
				t.Errorf("checked again: %+v, error %v; want the reason %q", again, err, result.Reason)
			}
			if _, err := os.Stat(filepath.Join(result.Directory, "state")); !os.IsNotExist(err) {
				t.Errorf("the directory state: error %v; want that it does not exist", err)
			}
		})
	}
}

// TestMutant builds mutants, which have a deliberate bug, of our controllers and of
// kube-controller-manager into gauntlet-virtual. A check must detect the bug.
func TestMutant(t *testing.T) {
	all := mutants.All()
	builder := mutant.Builder{Tree: filepath.Join("..", "..", "..", ".."), Dir: t.TempDir(), Virtual: true}
	for id, target := range map[string]subject.Target{"own-no-leftovers": subject.Ours, "R7-upstream": subject.Upstream} {
		t.Run(id, func(t *testing.T) {
			m := all[slices.IndexFunc(all, func(m mutant.Mutant) bool { return m.ID == id })]
			program, err := builder.Build(t.Context(), &m)
			if err != nil {
				t.Fatal(err)
			}
			spec, ok := library.Find(m.Scenarios[0])
			if !ok {
				t.Fatalf("no scenario %s", m.Scenarios[0])
			}
			dir := checkVerdict(t, program, spec, target, check.Fail)
			for _, name := range []string{"pods.yaml", "events.yaml", "subject-0.metrics.txt"} {
				if _, err := os.Stat(filepath.Join(dir, "diagnostics", name)); err != nil {
					t.Errorf("the diagnostics of a failed run: %v", err)
				}
			}
		})
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
