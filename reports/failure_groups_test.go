package reports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestFailureGroups checks that each distinct failure has one line, even if several seeds and
// scenarios have it. The line must name the smallest scenario with the failure.
func TestFailureGroups(t *testing.T) {
	large, small, elsewhere, other := failed("watch-delay-pods"), failed("shrunk"), failed("everything"), failed("rollout")
	large.Size, small.Size, small.Seed, elsewhere.Size, other.Size = 20, 3, 43, 20, 1
	other.Results = []check.Result{{
		Check: "expectations", Verdict: check.Fail, Reason: "found 1 violation: an object of another kind",
		Evidence: []check.Evidence{{Summary: "something else", Object: &history.Ref{Resource: "replicationcontrollers"}}},
	}}
	small.Repeated = "on the provider embedded, the same scenario and seed have the verdict pass (out/second)"
	notPassed := []Run{
		run("api-errors", check.Unknown, "no injected fault had an effect (1 injected)", result("burst-limit", check.Pass, 3, "held")),
		other, large, small, elsewhere,
	}
	var got bytes.Buffer
	for name, write := range map[string]func(io.Writer, int, []Run) error{"failure-groups.md": FailureGroupsMarkdown, "failure-groups.txt": FailureGroups} {
		got.Reset()
		if err := write(&got, 120, notPassed); err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join("testdata", name), got.String())
	}

	for runs, want := range map[int]string{120: "120 runs, all passed\n", 1: "1 run, all passed\n", 0: "0 runs, no result\n"} {
		got.Reset()
		if err := FailureGroups(&got, runs, nil); err != nil || got.String() != want {
			t.Errorf("no failures in %d runs: %q, %v; want %q", runs, got.String(), err, want)
		}
	}
	if err := FailureGroups(failingWriter{errors.New("disk full")}, 1, nil); err == nil {
		t.Error("no error though the output is lost")
	}
}

// TestFailedChecks checks which run represents each failure group with a failed check. It also
// checks which other runs have the same failure.
func TestFailedChecks(t *testing.T) {
	violation := func(summaries ...string) Run {
		r := Run{Subject: "ours", Verdict: check.Fail, Size: 5, Results: []check.Result{{Check: "same-end-state", Verdict: check.Fail}}}
		for _, summary := range summaries {
			r.Results[0].Evidence = append(r.Results[0].Evidence, check.Evidence{Summary: summary})
		}
		return r
	}
	missing, small, other := violation("claims ns/a: found none; expected \"1\""), violation("claims ns/b: found none; expected \"2\""), violation("services ns/a type: found \"x\"; expected \"y\"")
	small.Size = 2
	failures := FailedChecks([]Run{missing, small, other, run("relist", check.Unknown, "incomplete")})
	if len(failures) != 2 || failures[0].Run.Size != 2 || failures[0].Check != "same-end-state" {
		t.Fatalf("failures %+v; want the smaller run of 2, and another", failures)
	}
	both := violation("pods ns/a: found none; expected \"1\"", "claims ns/c: found none; expected \"1\"")
	if f := failures[0]; !f.In(&missing) || !f.In(&both) || f.In(&other) {
		t.Errorf("the failure is in: %v, %v, %v; want it in the two runs without a claim", f.In(&missing), f.In(&both), f.In(&other))
	}
}

// TestSharedReason checks how reports show the reasons of unknown verdicts. A reason that several
// checks share is shown once for the run. Any other reason is shown for its check.
func TestSharedReason(t *testing.T) {
	broken := run("relist", check.Unknown, "the API server did not come back",
		result("burst-limit", check.Unknown, 0, "the API server did not come back"),
		result("ownership", check.Unknown, 0, "the API server did not come back"),
		result("converged", check.Unknown, 0, "nothing was healed"),
	)
	var got []string
	for _, f := range groupFailures([]Run{broken, broken}) {
		got = append(got, f.title()+": "+f.reason+", "+countRuns(f.runs))
	}
	want := []string{"the run itself: the API server did not come back, 2 runs", "converged: nothing was healed, 2 runs"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

// TestFailureKeyOfObjects requires that the same failure of two objects belongs to one group.
func TestFailureKeyOfObjects(t *testing.T) {
	key := func(name string) failureKey {
		summary := fmt.Sprintf("step 5 (create Notebook %s, then await Notebook %s ready) failed: Notebook gauntlet/%s: a timeout", name, name, name)
		return failureKeyOf("ours", check.Result{Check: "same-end-state", Verdict: check.Fail, Evidence: []check.Evidence{{
			Summary: summary, Object: &history.Ref{Resource: "notebooks.example.com", Namespace: "gauntlet", Name: name},
		}}})
	}
	if a, b := key("a"), key("one"); a != b {
		t.Errorf("the failures of two objects have the keys\n%+v\n%+v", a, b)
	}
}

// TestSignature checks that reasons of the same failure have the same signature in every run.
// Reasons of different failures must have different signatures.
func TestSignature(t *testing.T) {
	const same = "ReplicaSet gauntlet/maps: subject-0 created pod 12 of 11: its cache had 0 active pods, the last maps-5f6bd2c4x9-x7bzk"
	if a, b := signature(same), signature("ReplicaSet gauntlet/jobs: subject-1 created pod 3 of 2: its cache had 1 active pods, the last jobs-wxptn"); a != b {
		t.Errorf("%q and %q", a, b)
	}
	if a, b := signature("scaled ReplicaSet cart-x54m7t9w62 up to 8"), signature("scaled ReplicaSet ads-9pf76p8c up to 2"); a != b {
		t.Errorf("signatures %q and %q; want the same", a, b)
	}
	if a, b := signature(same), signature("ReplicaSet gauntlet/maps: subject-0 deleted pod 12 of 11"); a == b {
		t.Errorf("both are %q", a)
	}
}

// TestWithoutFailuresOf checks which failures of a run remain after the failures of another run
// were removed.
func TestWithoutFailuresOf(t *testing.T) {
	result := func(id string, verdict check.Verdict, reason string) check.Result {
		return check.Result{Check: id, Verdict: verdict, Reason: reason}
	}
	other := Run{Subject: "ours", Results: []check.Result{
		result("max-surge", check.Fail, "found 3 pods"), result("status", check.Pass, ""), result("back-off", check.Pass, ""),
		{Check: "needless-writes", Verdict: check.Fail, Evidence: []check.Evidence{{Summary: "6 updates of secrets"}, {Summary: "6 updates of services"}}},
	}}
	tests := []struct {
		name    string
		results []check.Result
		want    check.Verdict
		left    int
	}{
		{"the same failure with another number", []check.Result{result("max-surge", check.Fail, "found 5 pods"), result("status", check.Pass, "")}, check.Pass, 1},
		{"the second violation in the other run", []check.Result{
			{Check: "needless-writes", Verdict: check.Fail, Evidence: []check.Evidence{{Summary: "3 updates of services"}}}, result("status", check.Pass, ""),
		}, check.Pass, 1},
		{"a second violation that the other run does not have", []check.Result{
			{Check: "needless-writes", Verdict: check.Fail, Evidence: []check.Evidence{{Summary: "6 updates of secrets"}, {Summary: "6 updates of pods"}}},
		}, check.Fail, 1},
		{"another failure of the same check", []check.Result{result("max-surge", check.Fail, "something else")}, check.Fail, 1},
		{"another check", []check.Result{result("max-surge", check.Fail, "found 3 pods"), result("status", check.Fail, "wrong")}, check.Fail, 1},
		{"an unknown verdict of a check that failed", []check.Result{result("max-surge", check.Unknown, "a gap"), result("status", check.Pass, "")}, check.Pass, 1},
		{"an unknown verdict of a check that failed, and no other check", []check.Result{result("max-surge", check.Unknown, "a gap")}, check.Unknown, 0},
		{"an unknown verdict of a check that passed", []check.Result{result("max-surge", check.Fail, "found 3 pods"), result("status", check.Unknown, "a gap")}, check.Unknown, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			run := Run{Subject: "ours", Verdict: check.Pass, Results: test.results}
			for _, r := range test.results {
				run.Verdict = check.Worst(run.Verdict, r.Verdict)
			}
			if got := run.WithoutFailuresOf([]Run{other}); got.Verdict != test.want || len(got.Results) != test.left {
				t.Errorf("verdict %s (%s), results %v; want %s and %d results", got.Verdict, got.Reason, got.Results, test.want, test.left)
			}
		})
	}
}

// TestInconclusive checks that an inconclusive run does not pass when its failures are removed.
func TestInconclusive(t *testing.T) {
	failed := check.Result{Check: "max-surge", Verdict: check.Fail, Reason: "found 3 pods"}
	run := Run{Subject: "ours", Verdict: check.Fail, Inconclusive: "fault 0 failed", Results: []check.Result{failed, {Check: "status", Verdict: check.Pass}}}
	if got := run.WithoutFailuresOf([]Run{{Subject: "ours", Results: []check.Result{failed}}}); got.Verdict != check.Unknown || got.Reason != run.Inconclusive {
		t.Errorf("verdict %s (%s), want unknown (%s)", got.Verdict, got.Reason, run.Inconclusive)
	}
}
