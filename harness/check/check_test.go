package check

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestAll(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range All {
		if seen[c.ID] {
			t.Errorf("%s is in All twice", c.ID)
		}
		seen[c.ID] = true
		if !strings.HasSuffix(c.Guarantee, ".") || c.Contract == "" || c.Property == "" || c.New == nil {
			t.Errorf("%s is incomplete: %+v", c.ID, c)
		}
		if found, ok := Find(c.ID); !ok || found.ID != c.ID {
			t.Errorf("%s is not found", c.ID)
		}
	}
	if _, ok := Find("no-such-check"); ok {
		t.Error("Find returned a check for an unknown ID")
	}
}

// convergedRun builds the history of a complete run without violations. The run does not
// exercise burst-limit.
func convergedRun() *historyBuilder {
	h := newHistoryBuilder()
	convergedReplicaSet(h)
	h.phase(history.PhaseQuiet)
	h.wait(testSettings.Quiet)
	return h.end()
}

// TestMalformedWrite tests that the checks continue after the subject sends an invalid patch.
func TestMalformedWrite(t *testing.T) {
	h := newHistoryBuilder()
	rs := deliveredReplicaSet(h, 2)
	h.patch(h.running(rs, 1)[0], `"nonsense"`).answered(400)
	h.creates(rs, 2)
	results, _, err := Run(testSettings, h.end().all())
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range results {
		if result.Check == "slow-start" && result.Verdict != Fail {
			t.Errorf("%s: got %s (%s), want fail", result.Check, result.Verdict, result.Reason)
		}
	}
}

func TestIncompleteHistory(t *testing.T) {
	complete := convergedRun()
	broken := newHistoryBuilder()
	broken.creates(deliveredReplicaSet(broken, 2), 2)
	broken.end()

	cut := func(h *historyBuilder, at int, then *history.Record, err error) iter.Seq2[*history.Record, error] {
		return func(yield func(*history.Record, error) bool) {
			for _, r := range h.records[:at] {
				if !yield(r, nil) {
					return
				}
			}
			if then != nil || err != nil {
				yield(then, err)
			}
		}
	}
	gap := &history.Record{Seq: 99, At: time.Hour, Gap: &history.Gap{Source: "commits of pods", Detail: "too old"}}
	death := &history.Record{Seq: 99, At: time.Hour, Process: &history.Process{Name: "subject-1", Event: history.ProcessDied, Detail: "subject-1 exited with status 1; last lines of its log"}}
	aborted := &history.Record{Seq: int64(len(complete.records)) + 1, At: time.Hour, Gap: &history.Gap{Source: history.SourceRun, Detail: "no space left on device"}}
	last := func(h *historyBuilder) int { return len(h.records) - 1 }
	for _, c := range []struct {
		name    string
		records iter.Seq2[*history.Record, error]
		id      string
		want    Verdict
		reason  string
	}{
		{"complete", complete.all(), "slow-start", Pass, "held"},
		{"no end", cut(complete, last(complete), nil, nil), "slow-start", Unknown, "ends before the last phase (end)"},
		{"no end, the check converged", cut(complete, last(complete), nil, nil), "converged", Unknown, "ends before the last phase (end)"},
		{"no end after a process died", cut(complete, last(complete), death, nil), "slow-start", Unknown, "the run ended early: subject-1 exited with status 1"},
		{"truncated", cut(complete, 8, nil, fmt.Errorf("line 9: %w", history.ErrTruncated)), "slow-start", Unknown, "the end of the history is missing"},
		{"a gap", cut(complete, last(complete), gap, nil), "slow-start", Unknown, "commits of pods: too old"},
		{"a gap, not exercised", cut(complete, last(complete), gap, nil), "burst-limit", Unknown, "too old"},
		{"a gap after the end", cut(complete, len(complete.records), gap, nil), "slow-start", Pass, "held"},
		{"aborted after the end", cut(complete, len(complete.records), aborted, nil), "slow-start", Unknown, "the run: no space left on device"},
		{"a violation before the gap", cut(broken, last(broken), gap, nil), "slow-start", Fail, "violated once"},
		{"not exercised", complete.all(), "burst-limit", NotExercised, "this run never exercised the guarantee"},
		{"not exercised, although the scenario declares it", complete.all(), "back-off", Unknown, "the scenario lists this check in exercises"},
	} {
		t.Run(c.name, func(t *testing.T) {
			settings := testSettings
			settings.Exercises = []string{"back-off"}
			results, _, err := Run(settings, c.records)
			if err != nil {
				t.Fatal(err)
			}
			if len(results) != len(All) {
				t.Fatalf("%d results of %d checks", len(results), len(All))
			}
			for _, r := range results {
				if r.Check == c.id && (r.Verdict != c.want || !strings.Contains(r.Reason, c.reason)) {
					t.Errorf("got %s (%s), want %s (%s)", r.Verdict, r.Reason, c.want, c.reason)
				}
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	readError := errors.New("line 2: expected a record")
	_, _, err := Run(testSettings, func(yield func(*history.Record, error) bool) { yield(nil, readError) })
	if !errors.Is(err, readError) {
		t.Errorf("got %v, want the reader's error", err)
	}

	h := newHistoryBuilder()
	bad := *h.replicaSet("web", 1)
	bad.Body = []byte(`{"spec":{"replicas":"many"}}`)
	h.commit(history.Modified, bad)
	if _, _, err := Run(testSettings, h.all()); err == nil || !strings.Contains(err.Error(), "replicasets.apps ns/web") {
		t.Errorf("got %v, want an error that names the object", err)
	}
}

// panickingChecker is a checker that panics in Observe or in Result.
type panickingChecker struct {
	onResult bool
}

func (c *panickingChecker) Observe(*Model, *history.Record) {
	if !c.onResult {
		panic("panic in Observe")
	}
}

func (c *panickingChecker) Result() Result { panic("panic in Result") }

func TestCheckerPanics(t *testing.T) {
	third, ok := Find("slow-start")
	if !ok {
		t.Fatal("no check slow-start")
	}
	checks := []Check{
		{ID: "a", New: func(Settings) Checker { return &panickingChecker{} }},
		{ID: "b", New: func(Settings) Checker { return &panickingChecker{onResult: true} }},
		third,
	}
	results, _, err := run(checks, testSettings, convergedRun().all())
	if err != nil {
		t.Fatal(err)
	}
	for i, reason := range []string{"panic in Observe", "panic in Result"} {
		if results[i].Verdict != Unknown || !strings.Contains(results[i].Reason, reason) {
			t.Errorf("got %s (%s), want unknown with the panic", results[i].Verdict, results[i].Reason)
		}
	}
	if results[2].Verdict != Pass {
		t.Errorf("the third checker: got %s, want pass", results[2].Verdict)
	}
}

func TestOverall(t *testing.T) {
	busy := Activity{Writes: 10, Injected: 1, Fired: 3}
	failed := Activity{Writes: 10, Fired: 1, Failures: []string{"fault 0 (pod-churn) failed: forbidden"}}
	result := func(v Verdict) Result { return Result{Check: string(v) + "-check", Verdict: v, Reason: "so it is"} }
	for _, c := range []struct {
		name     string
		results  []Result
		activity Activity
		want     Verdict
		reason   string
	}{
		{"all passed", []Result{result(Pass), result(NotExercised)}, busy, Pass, "1 checks passed, 1 not exercised"},
		{"one failed", []Result{result(Pass), result(Unknown), result(Fail)}, busy, Fail, "1 of 3 checks failed; fail-check: so it is"},
		{"one failed, no fault", []Result{result(Fail)}, Activity{Writes: 1}, Fail, "1 of 1 checks failed; fail-check: so it is"},
		{"no fault injected", []Result{result(Pass)}, Activity{Writes: 1}, Unknown, "no fault was injected"},
		{"no fault fired", []Result{result(Pass)}, Activity{Writes: 1, Injected: 2}, Unknown, "no fault fired (2 injected); an injected fault fires when it changes something"},
		{"a fault failed", []Result{result(Pass)}, failed, Unknown, "fault 0 (pod-churn) failed: forbidden"},
		{"no writes", []Result{result(Pass)}, Activity{Fired: 1}, Unknown, "the subject sent no write request"},
		{"one unknown", []Result{result(Pass), result(Unknown)}, busy, Unknown, "unknown-check: so it is"},
		{"a known upstream issue", []Result{result(Pass), result(KnownUpstream)}, busy, KnownUpstream, "known-upstream-check: so it is"},
		{"a known upstream issue and a failed fault", []Result{result(KnownUpstream)}, failed, KnownUpstream, "known-upstream-check: so it is"},
		{"a known upstream issue and an unknown", []Result{result(KnownUpstream), result(Unknown)}, busy, Unknown, "unknown-check: so it is"},
		{"none exercised", []Result{result(NotExercised)}, busy, Unknown, "this run exercised no check"},
	} {
		t.Run(c.name, func(t *testing.T) {
			verdict, reason := Overall(c.results, c.activity)
			if diff := cmp.Diff([]string{string(c.want), c.reason}, []string{string(verdict), reason}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestActivity(t *testing.T) {
	h := newHistoryBuilder()
	rs := deliveredReplicaSet(h, 1)
	h.create(rs).answered(500)
	h.request(history.Request{Verb: "update", Resource: leaseResource})
	h.request(history.Request{Verb: "create", Resource: "events"})
	fault := func(event history.FaultEvent) {
		h.append(history.Record{Fault: &history.Fault{Name: "api-error", Event: event, Detail: "why"}})
	}
	fault(history.FaultInjected)
	fault(history.FaultFired)
	fault(history.FaultFired)
	fault(history.FaultFailed)
	h.append(history.Record{Step: &history.Step{Index: 2, Event: history.StepFailed, Detail: "scale web to 3", Error: "forbidden"}})
	_, got, err := Run(testSettings, h.end().all())
	if err != nil {
		t.Fatal(err)
	}
	want := Activity{Writes: 1, Injected: 1, Fired: 2, Faults: map[int]FaultCount{0: {Name: "api-error", Injected: 1, Fired: 2}}, Failures: []string{
		"fault 0 (api-error) failed: why", "step 2 (scale web to 3) failed: forbidden",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
