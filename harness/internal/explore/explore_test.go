package explore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
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
			case explore.Crash, explore.CrashBefore, explore.Lost, explore.Refused, explore.Late:
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

// TestDelay checks how long events and responses are late.
func TestDelay(t *testing.T) {
	calm := parse(t, "name: x\ndescription: y\nworkload:\n  - create: {kind: ReplicaSet, name: web, replicas: 3}\n")
	write := &explore.Write{Verb: "update", Resource: "replicasets.apps", Name: "web", Nth: 1, Committed: 1}
	event := &explore.Event{Resource: "replicasets.apps", Type: history.Added, Name: "web", Nth: 1}
	for _, test := range []struct {
		place explore.Place
		want  string
	}{
		{explore.Place{Action: explore.Held, Event: event}, "watch-delay: {resource: replicasets.apps, type: ADDED, name: web, nth: 1, delay: 15s}"},
		{explore.Place{Action: explore.Late, Write: write}, "for: 16s"},
		{explore.Place{Action: explore.Stale, Write: write, Event: event}, "for: 15s"},
	} {
		disturbed, err := explore.ScenarioWith(test.place, calm, 15*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		text, err := disturbed.Marshal()
		if err != nil || !strings.Contains(string(text), test.want) {
			t.Errorf("%s: error %v, scenario\n%s\nwant one with %q", test.place, err, text, test.want)
		}
	}
}

func TestParseActions(t *testing.T) {
	const want = `found unknown fault "lots"; expected crash or lost; did you mean lost?`
	if _, err := explore.ParseActions([]string{"lots"}, explore.Crash, explore.Lost); err == nil || err.Error() != want {
		t.Errorf("error %v; want %s", err, want)
	}
	if _, err := explore.ParseActions(nil, explore.Crash); err == nil {
		t.Error("found no error for an empty list")
	}
}

// fakeRuns makes runs without a control plane. In them, the controllers under test update a
// ReplicaSet twice.
type fakeRuns struct {
	t       *testing.T
	mu      sync.Mutex
	started []string // faults of the runs in the order of their start, without the runs without faults
	// failing has the faults with which a check fails, and silent has the faults that do not fire.
	failing, silent map[string]bool
	// stuck has the faults with which a step of the workload fails.
	stuck map[string]bool
	// different has the faults with which a Secret is there at the end that the baseline does not have.
	different map[string]bool
	// hurried is like different, but only if no step of the workload awaits that the subject is quiet.
	hurried map[string]bool
	// patientRun changes the history and the results of the runs with such a step. It may be nil.
	patientRun func(l *story, result *reports.Run)
	// onCheck changes the history and the results of the run that checks the baseline. It may be nil.
	onCheck  func(l *story, result *reports.Run)
	lateStep bool // a step is late in each run without faults
	// lastStepBefore is true if the last step begins before the faults fire.
	lastStepBefore bool
	// onStart is called before each run with faults. It may be nil.
	onStart func(n int)
}

// start makes one fake run of a scenario.
func (f *fakeRuns) start(_ context.Context, s *scenario.Scenario, b *baseline.Baseline, out string, onRecord func(*history.Record)) (*reports.Run, error) {
	dir := filepath.Join(out, fmt.Sprintf("run-%d", time.Now().UnixNano()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	result := &reports.Run{Scenario: s.Name, Subject: "fake", Provider: "virtual", Directory: dir, Verdict: check.Pass, Results: []check.Result{{Check: "status", Verdict: check.Pass}}}
	l := begin().deliver(history.Added, replicaSet(10, 1)).write("update", "", replicaSet(10, 1), replicaSet(11, 2)).write("update", "", replicaSet(11, 2), replicaSet(12, 3))
	if len(s.Faults) > 0 && b == nil || b != nil && b.Scenario != s.Name {
		f.t.Errorf("run of %s with %d faults: found baseline %v; expected one of this scenario", s.Name, len(s.Faults), b)
	}
	if len(s.Faults) == 0 && f.lateStep {
		l.add(history.Record{Step: &history.Step{Index: 1, Event: history.StepLate, Detail: "await web"}})
	}
	restarts := len(s.Faults) == 1 && s.Faults[0].When != nil && s.Faults[0].When.Step != nil
	if restarts && f.onCheck != nil {
		f.onCheck(l, result)
	}
	if len(s.Faults) > 0 && !restarts {
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
		if !f.lastStepBefore {
			l.add(history.Record{Step: &history.Step{Index: 0, Event: history.StepBegun}})
		}
		if f.stuck[fault] {
			l.add(history.Record{Step: &history.Step{Index: 1, Event: history.StepFailed, Detail: "await web", Error: "late"}})
		}
		patient := slices.ContainsFunc(s.Workload, func(step scenario.Step) bool { return step.Await != nil && step.Await.Until == scenario.Quiet })
		if f.different[fault] || f.hurried[fault] && !patient {
			l.add(history.Record{Commit: &history.Commit{Type: history.Added, Object: object("secrets", "late", 20, `{}`)}})
			result.Verdict = check.Fail
			result.Results = []check.Result{{Check: "same-end-state", Verdict: check.Fail, Reason: "different", Evidence: []check.Evidence{{Summary: `secrets ns/late: found "1"; expected none`}}}}
		}
		if patient {
			result.Results = append(result.Results, check.Result{Check: "same-end-state", Verdict: check.Pass})
			if f.patientRun != nil {
				f.patientRun(l, result)
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
	recorder, err := history.Create(filepath.Join(dir, "history.jsonl"), history.Start{Scenario: s.Name}, clock.RealClock{})
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
	outcome, err := explore.Run(ctx, f.options(dir))
	if err != nil {
		f.t.Fatal(err)
	}
	return outcome
}

// options returns the options of a search in the given directory.
func (f *fakeRuns) options(dir string) explore.Options {
	s := parse(f.t, "name: x\ndescription: y\nworkload:\n  - create: {kind: ReplicaSet, name: web, replicas: 3}\n")
	return explore.Options{
		Scenario: s, Subject: "fake", Provider: "virtual", Actions: []explore.Action{explore.Crash, explore.Lost}, Delay: explore.DefaultDelay, Directory: dir, Baseline: 2, Parallel: campaign.Fixed(1),
		Clock: clock.RealClock{}, Start: f.start, Progress: func(string) {},
	}
}

// TestRemovedDirectory checks that a search ends with an error if its directory is removed.
func TestRemovedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "search")
	f := &fakeRuns{t: t, onStart: func(n int) {
		if n == 2 {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		}
	}}
	outcome, err := explore.Run(t.Context(), f.options(dir))
	if err == nil || !strings.Contains(err.Error(), explore.PlanName+": no such file or directory; the directory was removed") {
		t.Errorf("error %v; want that the directory was removed", err)
	}
	if len(f.started) != 2 || outcome.Runs() != 1 {
		t.Errorf("%d runs started, %d with a result; want 2 and 1", len(f.started), outcome.Runs())
	}
	if left, err := filepath.Glob(filepath.Join(dir, "runs", "*")); err != nil || len(left) > 0 {
		t.Errorf("found the directories of runs %q, error %v; want none", left, err)
	}
}

// TestLateStepWithoutFaults checks that a search says that a step is late in runs without faults.
func TestLateStepWithoutFaults(t *testing.T) {
	f := &fakeRuns{t: t, lateStep: true}
	options := f.options(t.TempDir())
	var messages []string
	options.Progress = func(message string) { messages = append(messages, message) }
	if _, err := explore.Run(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(messages, "\n"); strings.Count(got, "step 1 (await web) was late in a run without faults") != 1 {
		t.Errorf("messages:\n%s\nwant the late step once, although it is late in both runs", got)
	}
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
	if outcome.TriedPairs.Tried != 1 || !outcome.Complete || outcome.Runs() != 4 {
		t.Errorf("pairs %+v, complete: %v, %d runs that say something; want 1 pair, and 4 runs", outcome.TriedPairs, outcome.Complete, outcome.Runs())
	}
	const pairs = `found 6 pairs of places; pruned 5; 1 left to try
  pruned    3  the fault at one of the two places causes a failure without the other fault
  pruned    2  the fault at one of the two places did not fire`
	if diff := cmp.Diff(pairs, outcome.Pairs); diff != "" {
		t.Errorf("pairs (-want +got):\n%s", diff)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "runs", "*", "*"))
	if err != nil || len(kept) != 1 {
		t.Errorf("kept the runs %v, error %v; want the failed one", kept, err)
	}
}

// TestUnknown checks that the table counts a run with a failed step as unknown, not as failed.
func TestUnknown(t *testing.T) {
	f := &fakeRuns{t: t, failing: map[string]bool{"response-lost 2": true}, stuck: map[string]bool{"crash 1": true, "response-lost 1": true}, silent: map[string]bool{"response-lost 1": true}}
	outcome := f.explore(t.Context(), t.TempDir())
	const want = `
fault          places   tried   fired  failed unknown   known
crash               2       2       2       0       1       0
lost                2       2       1       1       0       0
pairs               0       0       0       0       0       0
`
	if got := outcome.String(); !strings.Contains(got, want) || len(outcome.Failed) != 2 {
		t.Errorf("%d runs did not pass, table\n%s\nwant 2, and\n%s", len(outcome.Failed), got, want)
	}
}

// twoOperations is a scenario in which the second operation may come before the subject is quiet.
const twoOperations = "name: x\ndescription: y\nworkload:\n  - create: {kind: ReplicaSet, name: web, replicas: 3}\n  - scale: {kind: ReplicaSet, name: web, replicas: 2}\n"

// TestPatientUser checks what a search does with a run that differs from the baseline. It makes the run
// again with a user who waits until the subject is quiet. If that run does not differ, the verdict is
// unknown. The search must keep only the directory of the first run.
func TestPatientUser(t *testing.T) {
	f := &fakeRuns{t: t, hurried: map[string]bool{"crash 1": true}, different: map[string]bool{"response-lost 1": true}}
	o := f.options(t.TempDir())
	o.Scenario = parse(t, twoOperations)
	outcome, err := explore.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	const want = `
fault          places   tried   fired  failed unknown   known
crash               2       2       2       0       1       0
lost                2       2       2       1       0       0
`
	if got := outcome.String(); !strings.Contains(got, want) {
		t.Errorf("table\n%s\nwant\n%s", got, want)
	}
	unknown := slices.IndexFunc(outcome.Failed, func(r reports.Run) bool { return r.Verdict == check.Unknown })
	if unknown < 0 || !strings.Contains(outcome.Failed[unknown].Reason, "the user waits") {
		t.Errorf("runs %v; want one with the verdict unknown, because it passes if the user waits", outcome.Failed)
	}
	if kept, err := filepath.Glob(filepath.Join(o.Directory, "runs", "*", "patient")); err != nil || len(kept) > 0 {
		t.Errorf("kept the directories %v, error %v; want none of a patient user", kept, err)
	}
}

// TestPatientUserIsNoProof checks which repeated runs prove nothing, so that the run stays failed.
func TestPatientUserIsNoProof(t *testing.T) {
	repetitions := 0
	for name, f := range map[string]*fakeRuns{
		"no operation follows the fault": {lastStepBefore: true},
		"a step is late": {patientRun: func(l *story, _ *reports.Run) {
			l.add(history.Record{Step: &history.Step{Index: 1, Event: history.StepLate, Detail: "await quiet"}})
		}},
		"the fault is silent": {patientRun: func(l *story, _ *reports.Run) { l.records = nil }},
		"another check fails": {patientRun: func(_ *story, r *reports.Run) {
			r.Verdict, r.Results = check.Fail, append(r.Results, check.Result{Check: "no-lost-update", Verdict: check.Fail})
		}},
		"the second repetition differs": {patientRun: func(_ *story, r *reports.Run) {
			if repetitions++; repetitions == 2 {
				r.Results = []check.Result{{Check: "same-end-state", Verdict: check.Fail, Reason: "different"}}
			}
		}},
		"a check is exercised no more": {patientRun: func(_ *story, r *reports.Run) {
			r.Results = []check.Result{{Check: "same-end-state", Verdict: check.NotExercised}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f.t, f.hurried = t, map[string]bool{"crash 1": true}
			o := f.options(t.TempDir())
			o.Scenario = parse(t, twoOperations)
			outcome, err := explore.Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if len(outcome.Failed) != 1 || outcome.Failed[0].Verdict != check.Fail {
				t.Errorf("runs %v; want one that failed", outcome.Failed)
			}
		})
	}
}

// TestDifferentWithoutFault checks that a run in which no fault fired is no failure if it differs from the
// baseline. The baseline must then ignore what differs, also in a continued search.
func TestDifferentWithoutFault(t *testing.T) {
	f := &fakeRuns{t: t, different: map[string]bool{"crash 1": true, "response-lost 1": true}, silent: map[string]bool{"crash 1": true}}
	dir := t.TempDir()
	for range 2 {
		outcome := f.explore(t.Context(), dir)
		if n := len(outcome.Passed); n != 2 || outcome.Passed[0].Scenario == "" || outcome.Passed[0].Subject != "fake" {
			t.Errorf("passed runs %v; want 2, with their trials and subject", outcome.Passed)
		}
		if n := len(outcome.Failed); n != 1 || !strings.Contains(outcome.Failed[0].Scenario, "lost") {
			t.Errorf("%d failed runs; want only that with the lost response, whose fault fired", n)
		}
		if got := outcome.Plan.Baseline.End["secrets ns/late"]; got != baseline.Any {
			t.Errorf("the baseline has the Secret %q; want %q", got, baseline.Any)
		}
	}
}

// TestStability checks what a search does with the result of the run that checks the baseline.
func TestStability(t *testing.T) {
	secret := &history.Record{Commit: &history.Commit{Type: history.Added, Object: object("secrets", "late", 20, `{}`)}}
	for name, test := range map[string]struct {
		onCheck  func(l *story, result *reports.Run)
		progress string // the message about the baseline; empty if there must be none
		masked   bool
	}{
		"the run is equal": {},
		"an object appears late": {
			onCheck: func(l *story, result *reports.Run) {
				l.add(*secret)
				result.Results = []check.Result{
					{Check: "same-end-state", Verdict: check.Fail, Violations: 7, Evidence: []check.Evidence{{Summary: `secrets ns/late: found "1"; expected none`}, {Summary: `secrets ns/late spec/x: found "1"; expected "2"`}}},
					{Check: "no-extra-effects", Verdict: check.Fail, Violations: 1, Evidence: []check.Evidence{{Summary: "secrets ns/late: found 1 created, 0 deleted, 0 lost; expected 0 created, 0 deleted, 0 lost"}}},
				}
			},
			progress: "the baseline is not stable; the search ignores what differs in a further run with a restart at its end: secrets ns/late, secrets ns/late spec/x and others; see ",
			masked:   true,
		},
		"another check fails": {onCheck: func(l *story, result *reports.Run) {
			l.add(*secret)
			result.Results = []check.Result{{Check: "needless-writes", Verdict: check.Fail, Violations: 1, Reason: "twice"}}
		}},
		"a step fails": {
			onCheck: func(l *story, _ *reports.Run) {
				l.add(history.Record{Step: &history.Step{Index: 1, Event: history.StepFailed, Detail: "await web", Error: "late"}})
			},
			progress: "the baseline is not stable: in a further run with a restart at its end, step 1 (await web) failed: late; see ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeRuns{t: t, onCheck: test.onCheck}
			o := f.options(t.TempDir())
			var messages []string
			o.Progress = func(message string) { messages = append(messages, message) }
			outcome, err := explore.Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(o.Directory, "stability")
			found := ""
			for _, message := range messages {
				if strings.Contains(message, "not stable") {
					found += message
				}
			}
			if test.progress == "" && found != "" || !strings.HasPrefix(found, test.progress) || test.progress != "" && !strings.Contains(found, dir) {
				t.Errorf("message %q; want %q and the directory", found, test.progress)
			}
			if _, err := os.Stat(dir); (err == nil) != (test.progress != "") {
				t.Errorf("directory of the run: error %v; want a directory only if the baseline is not stable", err)
			}
			if got := outcome.Plan.Baseline.End["secrets ns/late"]; (got == baseline.Any) != test.masked || outcome.Plan.Baseline.Runs != 2 {
				t.Errorf("the baseline has the Secret %q and %d runs; want it masked: %v, and 2 runs", got, outcome.Plan.Baseline.Runs, test.masked)
			}
			if lines := outcome.FailuresWithoutFaults(); len(lines) > 0 {
				t.Errorf("failures without faults %q; want none", lines)
			}
			if again := f.explore(t.Context(), o.Directory); !again.Complete {
				t.Error("the search did not continue")
			}
		})
	}
}

// TestAbortedRun checks that a run that ends with an error before its fault has no result. A continued
// search makes it again. The runs of a killed search without a plan do not count.
func TestAbortedRun(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "baseline", "killed"), 0o755); err != nil {
		t.Fatal(err)
	}
	f := &fakeRuns{t: t, silent: map[string]bool{"crash 2": true}}
	options := f.options(dir)
	options.Start = func(ctx context.Context, s *scenario.Scenario, b *baseline.Baseline, out string, onRecord func(*history.Record)) (*reports.Run, error) {
		run, err := f.start(ctx, s, b, out, onRecord)
		if n := len(f.started); n > 0 && f.started[n-1] == "crash 2" {
			err = errors.New("the subject did not start")
		}
		return run, err
	}
	outcome, err := explore.Run(t.Context(), options)
	if err != nil || outcome.Complete || outcome.Tried[explore.Crash].Tried != 1 || outcome.Tried[explore.Lost].Tried != 2 || outcome.FailedStarts != 1 {
		t.Fatalf("error %v, complete %v, crash %+v; want no result of the aborted run", err, outcome.Complete, outcome.Tried[explore.Crash])
	}
	f.started, f.silent = nil, nil
	if outcome := f.explore(t.Context(), dir); !outcome.Complete || len(outcome.Baseline) != 2 || f.started[0] != "crash 2" {
		t.Errorf("complete %v, %d runs without faults, runs %v; want 2 runs without faults, and first the aborted run", outcome.Complete, len(outcome.Baseline), f.started)
	}
}

// TestKnownUpstream checks that a known upstream issue is no failure, but that its run is kept.
func TestKnownUpstream(t *testing.T) {
	f := &fakeRuns{t: t}
	options := f.options(filepath.Join(t.TempDir(), "a[b]"))
	options.Start = func(ctx context.Context, s *scenario.Scenario, b *baseline.Baseline, out string, onRecord func(*history.Record)) (*reports.Run, error) {
		run, err := f.start(ctx, s, b, out, onRecord)
		if n := len(f.started); n > 0 && f.started[n-1] == "crash 1" && len(s.Faults) == 1 {
			run.Verdict, run.Results[0].Verdict = check.KnownUpstream, check.KnownUpstream
		}
		return run, err
	}
	outcome, err := explore.Run(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	if c := outcome.Tried[explore.Crash]; c.Failed != 0 || c.Known != 1 || len(outcome.Failed) != 1 || strings.Contains(outcome.Pairs, "causes a failure") {
		t.Errorf("crash %+v, %d kept runs, pairs %s; want 1 known issue, 1 kept run, and pairs with it", c, len(outcome.Failed), outcome.Pairs)
	}
	if again := f.explore(t.Context(), options.Directory); len(again.Baseline) != 2 {
		t.Errorf("a continued search in %s found %d runs without faults; want 2", options.Directory, len(again.Baseline))
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

// TestForeignDirectory checks that a search refuses a directory with other files, and leaves it unchanged.
func TestForeignDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := explore.Run(t.Context(), (&fakeRuns{t: t}).options(dir))
	if err == nil || !strings.Contains(err.Error(), "found notes.txt and no plan.json") {
		t.Errorf("error %v; want one about notes.txt", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the directory has %v, error %v; want only notes.txt", entries, err)
	}
}

// TestDamagedState checks that a search refuses damaged files of an earlier call, and starts no
// run.
func TestDamagedState(t *testing.T) {
	dir := t.TempDir()
	(&fakeRuns{t: t}).explore(t.Context(), dir)
	for _, test := range []struct{ file, old, damaged, want string }{
		{"plan.json", `(?s)"baseline": \{.*\n  \},\n  "places"`, `"baseline": null, "places"`, "plan.json: field baseline: found no value"},
		{"plan.json", `(?s)"end": \{.*?\}`, `"end": {}`, "plan.json: field baseline: fields end and effects: found no objects"},
		{"plan.json", `"runs": 2`, `"runs": -5`, "plan.json: field baseline: field runs: found -5"},
		{"plan.json", `"runs": 2`, `"runs": 3`, "plan.json: found the plan of a search with --baseline=3; expected --baseline=2; choose another directory with --dir"},
		{"plan.json", `"places": \[`, `"places": [null, `, `plan.json: field places[0].action: found ""; expected crash, `},
		{"plan.json", `"write": \{`, `"wrote": {`, "plan.json: field places[0].write: found no value"},
		{"plan.json", `"nth": 1`, `"nth": 0`, "plan.json: field places[0].write.nth: found 0; expected at least 1"},
		{"plan.json", `^\{`, `[`, "plan.json:2:11: expected a plan of a search"},
		{"results.jsonl", `^\{.*\n\{`, "{\"trial\": \"x\", \"verdict\": \"pass\"}\n[", "results.jsonl:2: the line is not a valid result of a run"},
		{"results.jsonl", `"verdict":"pass"`, `"verdict":"good"`, `results.jsonl:1: the line is not a valid result of a run: field verdict: found "good"`},
		{"results.jsonl", `"verdict":"pass"`, `"verdict":"fail"`, `results.jsonl:1: the line is not a valid result of a run: field directory: found no value`},
	} {
		t.Run(test.want, func(t *testing.T) {
			damaged := t.TempDir()
			if err := os.CopyFS(damaged, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(damaged, test.file)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			first := regexp.MustCompile(test.old).FindString(string(text))
			if first == "" {
				t.Fatalf("found no %s in\n%s", test.old, text)
			}
			if err := os.WriteFile(path, []byte(strings.Replace(string(text), first, test.damaged, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			f := &fakeRuns{t: t}
			_, err = explore.Run(t.Context(), f.options(damaged))
			if state := new(explore.StateError); !errors.As(err, &state) || !strings.Contains(err.Error(), test.want) || len(f.started) > 0 {
				t.Errorf("error %v, %d runs; want a StateError with %q, and no run", err, len(f.started), test.want)
			}
		})
	}
}

// TestObstructedDirectory checks that a search starts no run if it cannot use the names in its
// directory.
func TestObstructedDirectory(t *testing.T) {
	file := func(path string) error { return os.WriteFile(path, nil, 0o600) }
	pipe := func(path string) error { return syscall.Mkfifo(path, 0o600) }
	for _, test := range []struct {
		name   string
		create func(path string) error
		want   string
	}{
		{"runs", file, "runs: found a file; expected a directory"},
		{"runs", pipe, "runs: found a pipe; expected a directory"},
		{"runs", func(path string) error { return os.Symlink("absent", path) }, "runs: found a symbolic link that leads nowhere (to absent); expected a directory"},
		{"baseline", file, "baseline: found a file; expected a directory"},
		{"results.jsonl", pipe, "results.jsonl: found a pipe; expected a regular file"},
	} {
		t.Run(test.want, func(t *testing.T) {
			dir := t.TempDir()
			if err := test.create(filepath.Join(dir, test.name)); err != nil {
				t.Fatal(err)
			}
			f := &fakeRuns{t: t}
			_, err := explore.Run(t.Context(), f.options(dir))
			if state := new(explore.StateError); !errors.As(err, &state) || !strings.Contains(err.Error(), test.want) || len(f.started) > 0 {
				t.Errorf("error %v, %d runs; want a StateError with %q, and no run", err, len(f.started), test.want)
			}
		})
	}
}

// TestOtherSearch checks that a search refuses the plan of another search, and says what differs.
func TestOtherSearch(t *testing.T) {
	dir := t.TempDir()
	f := &fakeRuns{t: t}
	f.explore(t.Context(), dir)
	for _, test := range []struct {
		change func(*explore.Options)
		want   string
	}{
		{func(o *explore.Options) { o.Subject = "other" }, "the subject fake; expected other"},
		{func(o *explore.Options) { o.Provider = "kind" }, "with --provider=virtual; expected --provider=kind"},
		{func(o *explore.Options) { o.Actions = o.Actions[:1] }, "the faults [crash lost]; expected [crash]"},
		{func(o *explore.Options) { o.Delay = time.Second }, "the delay 3s; expected 1s"},
		{func(o *explore.Options) { o.Scenario.Seed = 7 }, "the seed 0; expected 7"},
		{func(o *explore.Options) { o.Scenario.Name = "z" }, "the scenario x; expected z"},
		{func(o *explore.Options) { o.Scenario.Description = "z" }, "another workload of the scenario x"},
	} {
		o := f.options(dir)
		test.change(&o)
		if _, err := explore.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v; want %q", err, test.want)
		}
	}
}

// TestUnreadableRun checks that a failed run whose directory is gone still counts as failed.
func TestUnreadableRun(t *testing.T) {
	dir := t.TempDir()
	f := &fakeRuns{t: t, failing: map[string]bool{"response-lost 2": true}}
	f.explore(t.Context(), dir)
	if err := os.RemoveAll(filepath.Join(dir, "runs")); err != nil {
		t.Fatal(err)
	}
	outcome := f.explore(t.Context(), dir)
	if len(outcome.Failed) != 1 || outcome.Failed[0].Verdict != check.Fail || outcome.ReadError() == nil {
		t.Errorf("failed runs %v, error %v; want one failed run, and an error about its directory", outcome.Failed, outcome.ReadError())
	}
}

// TestPruneReason checks for which reasons a search does not try two places together.
func TestPruneReason(t *testing.T) {
	place := func(action explore.Action, order int64, object string, related ...string) explore.Place {
		return explore.Place{Action: action, Order: order, Object: object, Related: related, Write: &explore.Write{Verb: "update", Resource: "x", Name: object, Nth: int(order)}}
	}
	first, dependent := place(explore.Crash, 1, "a", "a"), place(explore.Crash, 2, "b", "a", "b")
	for name, test := range map[string]struct {
		second explore.Place
		failed bool
		want   string
	}{
		"the second depends on the first": {second: dependent},
		"the same write":                  {second: place(explore.Lost, 1, "a", "a"), want: "both faults are at the same write or event"},
		"another object":                  {second: place(explore.Crash, 3, "c", "b", "c"), want: "the later write or event does not depend on the object of the earlier one"},
		"several faults":                  {second: place(explore.Stale, 2, "b", "a", "b"), want: "one of the two faults is stale, which is a combination of faults"},
		"a failure of its own":            {second: dependent, failed: true, want: "the fault at one of the two places causes a failure without the other fault"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := explore.PruneReason(first, test.second, test.failed); got != test.want {
				t.Errorf("reason %q; want %q", got, test.want)
			}
		})
	}
}
