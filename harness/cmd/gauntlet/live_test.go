package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// The live tests run commands on control planes, with controllers that have a deliberate bug.

// startsOnce returns a value of --subject for our controllers with a deliberate bug: they cannot
// start a second time.
func startsOnce(t *testing.T) string {
	t.Helper()
	ours, err := filepath.Abs(filepath.Join("..", "..", "..", "bin", "workload-controller-manager"))
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`#!/bin/sh
for argument; do
	case $argument in --kubeconfig=*) started=${argument#*=}.started ;; esac
done
if [ -e "$started" ]; then
	echo "it does not start a second time" >&2
	exit 1
fi
: > "$started"
exec %s "$@"
`, ours)
	path := filepath.Join(t.TempDir(), "starts-once")
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return "exec:" + path
}

// file writes a scenario to a YAML file and returns the path of the file.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scenario.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// failedIn returns the path of the only run directory in out. The test fails if the given check
// did not fail in that run.
func failedIn(t *testing.T, out, id string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(out, "*", "scenario.yaml"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%d runs are left, %v; want 1", len(found), err)
	}
	dir := filepath.Dir(found[0])
	kept, err := reports.ReadDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range kept[0].Results {
		if result.Check == id && result.Verdict == check.Fail {
			return dir
		}
	}
	t.Fatalf("%s: %s, %s; want that %s failed", dir, kept[0].Verdict, kept[0].Reason, id)
	return ""
}

// TestSweepCrashLive checks "gauntlet sweep crash" with a program under test that does not survive
// a crash. A crash at a write must make a passing workload fail, but a lost response must not. The
// command must keep only the directories of failed runs.
func TestSweepCrashLive(t *testing.T) {
	out := t.TempDir()
	small := file(t, `name: small
description: Little happens.
cluster: {nodes: 1}
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 1}
settle: {within: 30s}
`)
	printed, err := command(t, "sweep", "crash", small, "--subjects="+startsOnce(t), "--from=1", "--to=1", "--out="+out)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(printed, "2 runs, 1 did not pass\n") || !strings.Contains(printed, ", process-alive: in 1 run of small-crash,") {
		t.Errorf("it says\n%s", printed)
	}
	failedIn(t, out, "process-alive")
}

// TestExploreLive checks that a search finds the crash that makes a passing workload fail. The
// command must print how many places it found.
func TestExploreLive(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute or more: make test-slow has it")
	}
	small := file(t, `name: small
description: Little happens.
cluster: {nodes: 1}
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 1}
settle: {within: 30s}
`)
	dir := t.TempDir()
	printed, err := command(t, "explore", small, "--subject="+startsOnce(t), "--at=crash,lost", "--baseline=1", "--budget=40s", "--dir="+dir)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(printed, "found ") || !strings.Contains(printed, " places in 1 runs without faults; pruned ") || !strings.Contains(printed, ", process-alive: in ") {
		t.Errorf("it says\n%s", printed)
	}
	if kept, err := filepath.Glob(filepath.Join(dir, "runs", "*-lost", "*")); err != nil || len(kept) > 0 {
		t.Errorf("kept the runs %v, error %v; want none that passed", kept, err)
	}
}

// TestShrinkLive checks that "gauntlet shrink" removes the parts of a scenario that a failure does
// not need. The same check must fail in a new run of the smallest scenario.
func TestShrinkLive(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute or more: make test-slow has it")
	}
	subject, out := startsOnce(t), t.TempDir()
	large := file(t, `name: large
description: Much happens, and the subject is killed.
cluster: {nodes: 2}
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 6}
  - create: {kind: Deployment, name: shop, replicas: 4}
  - create: {kind: Service, name: shop, selector: {app: shop}}
  - scale: {kind: ReplicaSet, name: web, replicas: 9}
    after: 300ms
  - rollout: {name: shop, version: v2}
    after: 300ms
faults:
  - api-error: {verb: create, resource: pods, code: 500, every: 3, times: 2}
    for: 1s
  - restart: {how: kill, downtime: 100ms}
    from: 400ms
    for: 1s
  - watch-delay: {resource: pods, delay: 100ms}
    for: 1s
settle: {within: 10s}
`)
	if _, err := command(t, "run", large, "--subject="+subject, "--seed=7", "--out="+out); err != nil {
		t.Fatal(err)
	}
	failed := failedIn(t, out, "process-alive")
	if _, err := command(t, "shrink", failed); err != nil {
		t.Fatal(err)
	}
	smallest := filepath.Join(failed, "shrink", "smallest.yaml")
	small, err := scenario.Load(smallest)
	if err != nil {
		t.Fatal(err)
	}
	if len(small.Faults) != 1 || small.Faults[0].Name != "restart" || len(small.Workload) > 1 || small.Seed != 7 {
		t.Errorf("%d steps, faults %v and seed %d are left; want the restart, at most one step, and seed 7", len(small.Workload), small.Faults, small.Seed)
	}
	if !strings.HasPrefix(small.Description, "The check process-alive failed in 5 of 5 runs on starts-once. Shrunk from large: ") {
		t.Errorf("found the description %q; expected the failed runs and the name of the original", small.Description)
	}
	fresh := t.TempDir()
	if _, err := command(t, "run", smallest, "--subject="+subject, "--out="+fresh); err != nil {
		t.Fatal(err)
	}
	failedIn(t, fresh, "process-alive")
}
