package run

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// The tests in this file need the binaries that `gauntlet setup` and `make build` build.

// helperVariable is an environment variable that makes the test binary only run a scenario. Its
// value is the directory for the results.
const helperVariable = "GAUNTLET_RUN_TEST_DIR"

func TestMain(m *testing.M) {
	if os.Getenv(operatorVariable) != "" { // this process is the subject of TestOperator
		fmt.Println(operatorMain(context.Background()))
		os.Exit(1)
	}
	out := os.Getenv(helperVariable)
	if out == "" {
		os.Exit(m.Run())
	}
	spec, err := scenario.Parse("long", []byte(longScenario))
	if err != nil {
		panic(err)
	}
	_, err = Run(context.Background(), options(spec, subject.Ours, out, func(message string) { fmt.Println(message) }))
	fmt.Println(err)
}

// Scenarios. shortScenario contains steps with different operations and a fault. longScenario takes
// longer than the tests that abort it.
const (
	shortScenario = `
name: short
description: a few pods, some of whose creates fail
seed: 7
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 6}
    await: {until: ready}
  - create: {kind: ReplicationController, name: legacy, replicas: 3}
    await: {until: ready}
faults:
  - api-error: {verb: create, resource: pods, code: 500, every: 3}
settle: {within: 30s, quiet: 1s}
exercises: [slow-start, expectations, converged, no-writes-when-settled]
`
	longScenario = `
name: long
description: an endless wait
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 3}
    await: {until: ready}
  - scale: {kind: ReplicaSet, name: web, replicas: 4}
    after: 5m
faults:
  - pod-churn: {action: delete, every: 100ms}
`
)

func options(spec *scenario.Scenario, target subject.Target, out string, progress func(string)) Options {
	return Options{
		Scenario: spec,
		Target:   target,
		Provider: "embedded",
		Out:      out,
		Ours:     filepath.Join("..", "..", "bin", "workload-controller-manager"),
		Progress: progress,
		Clock:    clock.RealClock{},
		Revision: "test",
	}
}

func parse(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	spec, err := scenario.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestRun(t *testing.T) {
	for _, target := range []subject.Target{subject.Ours, subject.Upstream} {
		t.Run(target.String(), func(t *testing.T) {
			result, err := Run(t.Context(), options(parse(t, shortScenario), target, t.TempDir(), func(m string) { t.Log(m) }))
			if err != nil {
				t.Fatal(err)
			}
			if result.Verdict != check.Pass {
				t.Errorf("verdict %s (%s), want pass", result.Verdict, result.Reason)
			}
			again, err := Check(result.Directory)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(result, again); diff != "" {
				t.Errorf("second check (-first +second):\n%s", diff)
			}
			for _, name := range []string{"scenario.yaml", "environment.json", "history.jsonl", "verdicts.json", "junit.xml", "summary.md", "report.html", "logs/subject-0.log"} {
				if _, err := os.Stat(filepath.Join(result.Directory, name)); err != nil {
					t.Error(err)
				}
			}
			if spec, err := scenario.Load(filepath.Join(result.Directory, "scenario.yaml")); err != nil || spec.Seed != 7 {
				t.Errorf("the saved scenario: seed %v, error %v; want seed 7", spec, err)
			}
			requireNothingLeft(t, result.Directory)
			requireNoCredentials(t, result.Directory)
		})
	}
}

// TestRestart kills or terminates the leader. Another replica, or the restarted replica, must then
// continue the work. Such an exit must not count as a failure of the controllers under test.
func TestRestart(t *testing.T) {
	for _, test := range []struct {
		target   subject.Target
		replicas int
		params   string
		ends     int
	}{
		{subject.Ours, 1, "how: kill, downtime: 200ms", 1},
		{subject.Ours, 2, "how: kill, downtime: 200ms", 1},
		{subject.Upstream, 1, "how: terminate, downtime: 200ms, times: 3, every: 300ms", 3},
		{subject.Upstream, 2, "how: kill, downtime: 200ms", 1},
	} {
		t.Run(fmt.Sprintf("%s with %d that ends %d times", test.target, test.replicas, test.ends), func(t *testing.T) {
			spec := parse(t, fmt.Sprintf(`
name: restart
description: the leader ends while the controllers have work
subject: {replicas: %d, leaseDuration: 6s}
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 5}
    await: {until: ready}
  - scale: {kind: ReplicaSet, name: web, replicas: 9}
    after: 1s
    await: {until: ready, within: 30s}
faults:
  - restart: {%s}
    from: 500ms
settle: {within: 30s, quiet: 1s}
exercises: [process-alive, converged, no-writes-when-settled]
`, test.replicas, test.params))
			result, err := Run(t.Context(), options(spec, test.target, t.TempDir(), func(m string) { t.Log(m) }))
			if err != nil {
				t.Fatal(err)
			}
			if result.Verdict != check.Pass {
				t.Errorf("verdict %s (%s), want pass", result.Verdict, result.Reason)
			}
			requireEnded(t, result.Directory, test.replicas, test.ends)
			requireNothingLeft(t, result.Directory)
		})
	}
}

// requireEnded requires that exactly one replica exited, and that it exited the given number of
// times. The run must have restarted that replica each time. The controllers under test must also
// have created pods after the first exit.
func requireEnded(t *testing.T, dir string, replicas, times int) {
	t.Helper()
	starts, ends, wroteAfter := map[string]int{}, map[string]int{}, false
	for record, err := range history.ReadFile(filepath.Join(dir, "history.jsonl")) {
		switch {
		case err != nil:
			t.Fatal(err)
		case record.Phase != nil && record.Phase.Name == history.PhaseEnd:
			for replica, n := range ends {
				if n != times || starts[replica] != times+1 {
					t.Errorf("%s ended %d times and started %d times; want %d ends and one more start", replica, n, starts[replica], times)
				}
			}
			if len(ends) != 1 || len(starts) != replicas || !wroteAfter {
				t.Errorf("ended %v, started %v, creates after an end: %t; want one ended of %d replicas, and creates", ends, starts, wroteAfter, replicas)
			}
			return
		case record.Process != nil && record.Process.Event == history.ProcessStarted:
			starts[record.Process.Name]++
		case record.Process != nil:
			ends[record.Process.Name]++
		case record.Request != nil && record.Request.Verb == "create" && record.Request.Resource == "pods":
			wroteAfter = wroteAfter || len(ends) > 0
		}
	}
	t.Error("the history has no end phase")
}

// TestSubjectThatWillNotStart verifies the error for a subject (a program under test) that exits
// immediately. The error must contain the end of the subject's log.
func TestSubjectThatWillNotStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho no such flag\nexit 2\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	target, err := subject.ParseTarget("exec:" + path)
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	result, err := Run(t.Context(), options(parse(t, shortScenario), target, out, nil))
	if err == nil || !strings.Contains(err.Error(), "no such flag") || !strings.Contains(err.Error(), "setting up the subject") {
		t.Errorf("error %v, want one with the end of the subject's log", err)
	}
	if result == nil || result.Verdict == check.Pass {
		t.Errorf("got %+v, want a verdict other than pass", result)
	}
	requireNothingLeft(t, out)
}

func TestInterruptedRun(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out := t.TempDir()
	result, err := Run(ctx, options(parse(t, longScenario), subject.Ours, out, func(message string) {
		if strings.HasPrefix(message, "chaos") {
			time.AfterFunc(500*time.Millisecond, interrupt)
		}
	}))
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("error %v, want one that says interrupted", err)
	}
	if result == nil || result.Verdict != check.Unknown {
		t.Errorf("got %+v, want verdict unknown", result)
	}
	requireNothingLeft(t, out)
}

// TestKilledRun verifies that no process and no state directory of a run remains after gauntlet
// gets SIGKILL.
func TestKilledRun(t *testing.T) {
	out := t.TempDir()
	gauntlet := exec.CommandContext(t.Context(), os.Args[0])
	gauntlet.Env = append(os.Environ(), helperVariable+"="+out)
	output, err := gauntlet.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := gauntlet.Start(); err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	for chunk := make([]byte, 1024); !strings.Contains(printed.String(), "chaos"); {
		n, err := output.Read(chunk)
		printed.Write(chunk[:n])
		if err != nil {
			t.Fatalf("the run ended before the chaos phase: %v\n%s", err, printed.String())
		}
	}
	if len(processesOf(t, out)) == 0 {
		t.Fatal("no process has the run directory in its command line, so this test would detect nothing")
	}
	if err := gauntlet.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = gauntlet.Wait() // ignore the error: the test has killed the process
	requireNothingLeft(t, out)
}

// requireNothingLeft waits until no process and no state directory of the runs in dir exists.
func requireNothingLeft(t *testing.T, dir string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		left := processesOf(t, dir)
		states, err := filepath.Glob(filepath.Join(dir, "*", "state"))
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, states...)
		if _, err := os.Stat(filepath.Join(dir, "state")); err == nil {
			left = append(left, filepath.Join(dir, "state"))
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left behind:\n%s", strings.Join(left, "\n"))
		}
		<-time.After(20 * time.Millisecond)
	}
}

// processesOf returns the command lines that contain a path below dir, of all processes of this
// machine.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && bytes.Contains(line, []byte(dir+"/")) { // an error means that the process has ended
			all = append(all, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return all
}

// credential matches private keys in PEM or base64, ServiceAccount tokens, authorization headers
// and Secrets.
var credential = regexp.MustCompile(`PRIVATE KEY|LS0tLS1CRUdJTi[A-Za-z0-9+/]*|client-key-data|eyJ[\w-]{8,}\.[\w-]{8,}\.|Bearer |token:|"?kind"?: ?"?Secret\b`)

// requireNoCredentials requires that no file in a run directory contains a credential.
func requireNoCredentials(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if found := credential.Find(content); found != nil {
			t.Errorf("%s contains %q", path, found)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
