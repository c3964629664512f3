package explore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/explore"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// TestScenarios adds the faults of each action to each scenario of the library. The resulting
// scenario must be valid.
func TestScenarios(t *testing.T) {
	write := &explore.Write{Verb: "update", Resource: "deployments.apps", Subresource: "status", Name: "web", Nth: 2, Committed: 1}
	event := &explore.Event{Resource: "pods", Type: history.Modified, Name: "web-*", Nth: 3}
	for _, s := range library.All() {
		for _, action := range explore.Actions {
			place := explore.Place{Action: action, Write: write, Event: event}
			switch action {
			case explore.Held, explore.Skipped:
				place.Write = nil
			case explore.Crash, explore.CrashBefore, explore.Lost:
				place.Event = nil
			}
			disturbed, err := place.Scenario(explore.WithoutFaults(s))
			if err == nil {
				err = run.Validate(disturbed)
			}
			if err != nil {
				t.Errorf("%s, %s: %v", s.Name, action, err)
			}
		}
	}
}

func TestParseActions(t *testing.T) {
	const want = `found fault "lots"; expected crash or lost; did you mean lost?`
	if _, err := explore.ParseActions([]string{"lots"}, explore.Crash, explore.Lost); err == nil || err.Error() != want {
		t.Errorf("error %v; want %s", err, want)
	}
	if _, err := explore.ParseActions(nil, explore.Crash); err == nil {
		t.Error("found no error for an empty list")
	}
}

// fakeRuns makes runs without a control plane. Their subject updates a ReplicaSet twice.
type fakeRuns struct {
	t       *testing.T
	mu      sync.Mutex
	started []string // faults of the runs in the order of their start, without the runs without faults
	// failing has the faults with which a check fails, and silent has the faults that do not fire.
	failing, silent map[string]bool
	// onStart is called before each run with faults. It may be nil.
	onStart func(n int)
}

// start makes one fake run of a scenario.
func (f *fakeRuns) start(_ context.Context, s *scenario.Scenario, out string, onRecord func(*history.Record)) (*reports.Run, error) {
	dir := filepath.Join(out, fmt.Sprintf("run-%d", time.Now().UnixNano()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	result := &reports.Run{Scenario: s.Name, Subject: "fake", Directory: dir, Verdict: check.Pass}
	l := begin().deliver(history.Added, replicaSet(10, 1)).write("update", "", replicaSet(10, 1), replicaSet(11, 2)).write("update", "", replicaSet(11, 2), replicaSet(12, 3))
	if len(s.Faults) > 0 {
		fault := s.Faults[0].Name
		if when := s.Faults[0].When; when != nil {
			fault += fmt.Sprint(" ", when.Request.Nth)
		}
		f.mu.Lock()
		f.started = append(f.started, fault)
		n := len(f.started)
		f.mu.Unlock()
		if f.onStart != nil {
			f.onStart(n)
		}
		for i := range s.Faults {
			if !f.silent[fault] {
				l.add(history.Record{Fault: &history.Fault{Index: i, Event: history.FaultFired}})
			}
		}
		if f.failing[fault] {
			result.Verdict = check.Fail
			result.Results = []check.Result{{Check: "some-check", Verdict: check.Fail, Reason: "broken"}}
		}
	}
	for _, r := range l.records {
		onRecord(r)
	}
	recorder, err := history.Create(filepath.Join(dir, "history.jsonl"), history.Start{}, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	for _, r := range l.records {
		recorder.Append(*r)
	}
	return result, errors.Join(recorder.Close(), reports.WriteFiles(dir, *result))
}

// explore runs a search in the given directory.
func (f *fakeRuns) explore(ctx context.Context, dir string) *explore.Outcome {
	f.t.Helper()
	s := parse(f.t, "name: x\ndescription: y\nworkload:\n  - create: {kind: ReplicaSet, name: web, replicas: 3}\n")
	outcome, err := explore.Run(ctx, explore.Options{
		Scenario: s, Subject: "fake", Actions: []explore.Action{explore.Crash, explore.Lost}, Directory: dir, Baseline: 2, Parallel: 1,
		Clock: clock.RealClock{}, Start: f.start, Progress: func(string) {},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return outcome
}

// TestRun checks which runs a search makes, and which numbers the outcome has.
func TestRun(t *testing.T) {
	f := &fakeRuns{t: t, failing: map[string]bool{"response-lost 2": true}, silent: map[string]bool{"crash 1": true}}
	dir := t.TempDir()
	outcome := f.explore(t.Context(), dir)
	// The search tries the places in the order of the plan. Then it tries the pair of the places
	// that were reached and passed.
	want := "crash 1, response-lost 1, crash 2, response-lost 2, response-lost 1"
	if got := strings.Join(f.started, ", "); got != want {
		t.Errorf("runs %s; want %s", got, want)
	}
	if c := *outcome.Tried[explore.Crash]; c.Places != 2 || c.Tried != 2 || c.Fired != 1 || c.Failed != 0 {
		t.Errorf("crash: %+v; want 2 tried, of which 1 fired", c)
	}
	if c := *outcome.Tried[explore.Lost]; c.Tried != 2 || c.Fired != 2 || c.Failed != 1 || len(outcome.Failed) != 1 {
		t.Errorf("lost: %+v, %d failed runs; want 2 tried, of which 1 failed", c, len(outcome.Failed))
	}
	if outcome.Pairs != 1 || outcome.TriedPairs.Tried != 1 || !outcome.Complete || outcome.Runs() != 4 {
		t.Errorf("%d pairs, %+v, complete: %v, %d runs that say something; want 1 pair, and 4 runs", outcome.Pairs, outcome.TriedPairs, outcome.Complete, outcome.Runs())
	}
	kept, err := filepath.Glob(filepath.Join(dir, "runs", "*", "*"))
	if err != nil || len(kept) != 1 {
		t.Errorf("kept the runs %v, error %v; want the failed one", kept, err)
	}
}

// TestInterrupt checks that a search continues after an interrupt. The interrupted run must leave
// no directory.
func TestInterrupt(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	f := &fakeRuns{t: t, onStart: func(n int) {
		if n == 3 {
			cancel()
		}
	}}
	if outcome := f.explore(ctx, dir); outcome.Complete || outcome.Runs() != 2 {
		t.Errorf("complete: %v, %d runs; want 2 runs before the interrupt", outcome.Complete, outcome.Runs())
	}
	if left, err := filepath.Glob(filepath.Join(dir, "runs", "*")); err != nil || len(left) > 0 {
		t.Errorf("the interrupted run left %v, error %v", left, err)
	}
	f.started, f.onStart = nil, nil
	outcome := f.explore(t.Context(), dir)
	if got := strings.Join(f.started, ", "); !strings.HasPrefix(got, "crash 2, response-lost 2, ") || !outcome.Complete {
		t.Errorf("runs %s, complete: %v; want only those without a result", got, outcome.Complete)
	}
}

// TestEndState checks that a run fails if the objects at its end differ from those of the runs
// without faults.
func TestEndState(t *testing.T) {
	f := &fakeRuns{t: t}
	start := f.start
	outcome := func() *explore.Outcome {
		s := parse(t, "name: x\ndescription: y\nworkload:\n  - create: {kind: ReplicaSet, name: web, replicas: 3}\n")
		outcome, err := explore.Run(t.Context(), explore.Options{
			Scenario: s, Actions: []explore.Action{explore.Crash}, Directory: t.TempDir(), Baseline: 1, Parallel: 1, Clock: clock.RealClock{}, Progress: func(string) {},
			Start: func(ctx context.Context, s *scenario.Scenario, out string, onRecord func(*history.Record)) (*reports.Run, error) {
				run, err := start(ctx, s, out, onRecord)
				if len(s.Faults) == 1 {
					onRecord(&history.Record{Commit: &history.Commit{Type: history.Modified, Object: replicaSet(20, 7)}})
				}
				return run, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return outcome
	}()
	const want = "the objects at the end are not those of the runs without faults: replicasets.apps ns/web spec/replicas: found \"7\"; expected \"3\""
	if len(outcome.Failed) != 2 || outcome.Failed[0].Verdict != check.Fail || outcome.Failed[0].Reason != want {
		t.Errorf("failed runs %+v; want 2 with the reason %s", outcome.Failed, want)
	}
}
