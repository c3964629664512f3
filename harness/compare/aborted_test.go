package compare

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func (t *historyBuilder) step(index int, event history.StepEvent) {
	t.add(history.Record{Step: &history.Step{Index: index, Event: event, Detail: "scale"}})
}

// stepFails adds a step that begins and then fails while it waits for the named Deployment.
func (t *historyBuilder) stepFails(index int, awaited string) {
	t.step(index, history.StepBegun)
	step := &history.Step{Index: index, Event: history.StepFailed, Detail: "scale", Error: "not met"}
	if awaited != "" {
		step.Awaited = &history.Ref{Resource: deployments, Namespace: "ns", Name: awaited}
	}
	t.add(history.Record{Step: step})
}

// stepsDone adds a begin and an end for each of the given steps.
func (t *historyBuilder) stepsDone(indices ...int) {
	for _, i := range indices {
		t.step(i, history.StepBegun)
		t.step(i, history.StepDone)
	}
}

// stuckRollout returns a check's result with one violation: a Deployment whose rollout is stuck
// because of a known upstream issue.
func stuckRollout(verdict check.Verdict) check.Result {
	return check.Result{Check: "rollout-complete", Verdict: verdict, Evidence: []check.Evidence{
		{Object: &history.Ref{Resource: deployments, Namespace: "ns", Name: "web"}, KnownIssue: check.KnownIssues[0].Slug},
	}}
}

// TestAborted checks that differences after an abort by a known upstream issue are not compared.
// If a workload is aborted for another reason, the differences must be undeclared.
func TestAborted(t *testing.T) {
	passes := check.Result{Check: "rollout-complete", Verdict: check.Pass}
	larger := func(x *historyBuilder) {
		x.commit(history.Modified, deployments, "web", nil, `{"spec":{"replicas":9}}`)
	}
	const (
		short       = "workload step 1, scale: done; aborted: not met"
		replicas    = "end state deployments.apps web, spec.replicas: 9; 2"
		progressing = "end state deployments.apps web, status.conditions[Progressing]"
	)
	whole := func(x *historyBuilder) { x.stepsDone(0, 1, 2); larger(x); x.event("New") }
	for _, test := range []struct {
		name          string
		subject, base func(*historyBuilder)
		ours, theirs  check.Result
		want          map[string]Classification // the test ignores other differences
	}{
		{
			name: "by a known issue", subject: whole, ours: passes,
			base: func(x *historyBuilder) { x.stepsDone(0); x.stepFails(1, "web") }, theirs: stuckRollout(check.KnownUpstream),
			want: map[string]Classification{
				short: NotCompared, replicas: NotCompared,
				"milestone ReplicaSet, events: New; none":                             NotCompared,
				"verdict rollout-complete, verdict: pass; known-upstream":             Undeclared, // neither subject is ours
				progressing + ".message: none; ReplicaSet \"web-<>\" has progressed.": NotCompared,
			},
		},
		{
			name: "objects that no later step changed", ours: passes, theirs: stuckRollout(check.KnownUpstream),
			subject: func(x *historyBuilder) {
				x.commit(history.Added, deployments, "early", nil, `{"spec":{"replicas":1}}`)
				x.stepsDone(0, 1)
				x.commit(history.Added, deployments, "late", nil, `{"spec":{"replicas":1}}`)
			},
			base: func(x *historyBuilder) {
				x.stepsDone(0)
				x.commit(history.Added, deployments, "odd", nil, `{"spec":{"replicas":1}}`)
				x.stepFails(1, "web")
				x.pod("new", "v1", "")
			},
			want: map[string]Classification{
				short: NotCompared,
				"end state deployments.apps early, the object: spec.replicas: 1; none": Undeclared,
				"end state deployments.apps late, the object: spec.replicas: 1; none":  NotCompared,
				"end state deployments.apps odd, the object: none; spec.replicas: 1":   Undeclared,
				"end state pods of replicasets.apps web-<>, not ready: 2; 3":           NotCompared,
			},
		},
		{
			name: "by a known issue of the subject", base: whole, theirs: passes,
			subject: func(x *historyBuilder) { x.stepsDone(0); x.stepFails(1, "web") }, ours: stuckRollout(check.KnownUpstream),
			want: map[string]Classification{
				"workload step 1, scale: aborted: not met; done":          NotCompared,
				"end state deployments.apps web, spec.replicas: 2; 9":     NotCompared,
				"milestone ReplicaSet, events: none; New":                 NotCompared,
				"verdict rollout-complete, verdict: known-upstream; pass": Undeclared,
			},
		},
		{
			name: "by evidence like a known issue with the verdict fail", subject: whole, ours: passes,
			base: func(x *historyBuilder) { x.stepsDone(0); x.stepFails(1, "web") }, theirs: stuckRollout(check.Fail),
			want: map[string]Classification{short: Undeclared, replicas: Undeclared, "milestone ReplicaSet, events: New; none": Undeclared},
		},
		{
			name: "by a known issue of another object", subject: whole, ours: passes,
			base: func(x *historyBuilder) { x.stepsDone(0); x.stepFails(1, "shop") }, theirs: stuckRollout(check.KnownUpstream),
			want: map[string]Classification{short: Undeclared, replicas: Undeclared},
		},
		{
			name: "by an error", subject: whole, ours: passes,
			base: func(x *historyBuilder) { x.stepsDone(0); x.stepFails(1, "") }, theirs: stuckRollout(check.KnownUpstream),
			want: map[string]Classification{short: Undeclared, replicas: Undeclared},
		},
		{
			name: "both, at one step", ours: stuckRollout(check.KnownUpstream), theirs: stuckRollout(check.KnownUpstream),
			subject: func(x *historyBuilder) { larger(x); x.stepsDone(0); x.stepFails(1, "web") },
			base:    func(x *historyBuilder) { x.stepsDone(0); x.stepFails(1, "web") },
			want:    map[string]Classification{replicas: Undeclared},
		},
		{
			name: "both, by errors", ours: passes, theirs: passes,
			subject: func(x *historyBuilder) { x.stepsDone(0); x.stepFails(1, "") },
			base:    func(x *historyBuilder) { x.stepsDone(0); x.stepFails(1, "") },
			want:    map[string]Classification{"workload step 1, scale: aborted: not met; aborted: not met": BothWrong},
		},
		{
			name: "both, one by a known issue", ours: passes, theirs: stuckRollout(check.KnownUpstream),
			subject: func(x *historyBuilder) { x.stepsDone(0); x.stepFails(1, "") },
			base:    func(x *historyBuilder) { x.stepsDone(0); x.stepFails(1, "web") },
			want:    map[string]Classification{"workload step 1, scale: aborted: not met; aborted: not met": Undeclared},
		},
		{
			name: "the other earlier, for no reason", ours: passes, theirs: stuckRollout(check.KnownUpstream),
			subject: func(x *historyBuilder) { larger(x); x.stepFails(0, "web") },
			base:    func(x *historyBuilder) { x.stepsDone(0); x.stepFails(1, "web") },
			want: map[string]Classification{
				"workload step 0, scale: aborted: not met; done": Undeclared,
				"workload step 1, scale: none; aborted: not met": NotCompared,
				replicas: Undeclared,
			},
		},
		{
			name: "the other later, for no reason", ours: passes, theirs: stuckRollout(check.KnownUpstream),
			subject: func(x *historyBuilder) { larger(x); x.stepsDone(0, 1); x.stepFails(2, "web") },
			base:    func(x *historyBuilder) { x.stepsDone(0); x.stepFails(1, "web") },
			want: map[string]Classification{
				"workload step 2, scale: aborted: not met; none": Undeclared,
				short: NotCompared, replicas: NotCompared,
			},
		},
		{
			name: "milestones before the failed step", ours: passes, theirs: stuckRollout(check.KnownUpstream),
			subject: func(x *historyBuilder) { x.event("Early"); x.stepsDone(0, 1); x.event("Late") },
			base:    func(x *historyBuilder) { x.stepsDone(0); x.event("Odd"); x.stepFails(1, "web"); x.event("Stuck") },
			want: map[string]Classification{
				short: NotCompared,
				"milestone ReplicaSet, events: Early; none": Undeclared, "milestone ReplicaSet, events: Late; none": NotCompared,
				"milestone ReplicaSet, events: none; Odd": Undeclared, "milestone ReplicaSet, events: none; Stuck": NotCompared,
			},
		},
		{
			name: "in another order", ours: passes, theirs: stuckRollout(check.KnownUpstream),
			subject: func(x *historyBuilder) { x.set("v2", 0); x.set("v3", 0); x.stepsDone(0, 1) },
			base:    func(x *historyBuilder) { x.set("v3", 0); x.set("v2", 0); x.stepsDone(0); x.stepFails(1, "web") },
			want: map[string]Classification{
				short: NotCompared,
				"milestone deployments.apps web, rollout: replicasets.apps web-<>, replicasets.apps web-<>, replicasets.apps web-<>; " +
					"replicasets.apps web-<>, replicasets.apps web-<>, replicasets.apps web-<>": Undeclared,
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			side := func(seed string, build func(*historyBuilder), verdict check.Result) *Side {
				x := rollout(seed)
				build(x)
				return x.side(t, verdict)
			}
			got := map[string]Classification{}
			for _, d := range Differences(side("x7", test.subject, test.ours), side("qrs", test.base, test.theirs)) {
				name := templatePattern.ReplaceAllString(d.String(), "<>")
				if _, asked := test.want[name]; asked || d.Aspect == Workloads {
					got[name] = d.Classification
				}
				if d.Classification == NotCompared && d.Reason == "" {
					t.Errorf("%s: no reason", d)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("standings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnfinished checks that the differences of an incomplete run are its incompleteness and the
// failed checks, and nothing else.
func TestUnfinished(t *testing.T) {
	larger := func(x *historyBuilder) {
		x.commit(history.Modified, deployments, "web", nil, `{"spec":{"replicas":9}}`)
	}
	dies := func(x *historyBuilder) {
		x.add(history.Record{Process: &history.Process{Name: "subject-0", Event: history.ProcessDied, Detail: "exited with status 1"}})
	}
	misses := func(x *historyBuilder) {
		x.add(history.Record{Gap: &history.Gap{Source: "commits of pods", Detail: "the watch ended\nand a log"}})
	}
	side := func(seed string, build func(*historyBuilder), verdict check.Verdict, ended bool) *Side {
		x := rollout(seed)
		build(x)
		if ended {
			x.add(history.Record{Phase: &history.Phase{Name: history.PhaseEnd}})
		}
		s, err := SideOf(x.all(), []check.Result{{Check: "no-writes-when-settled", Verdict: check.Unknown}, {Check: "process-alive", Verdict: verdict}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	whole := side("x7", larger, check.Pass, true)
	for _, test := range []struct {
		name string
		base *Side
		want []string
	}{
		{"its subject died", side("qrs", dies, check.Fail, false), []string{
			"undeclared: workload the run, completion: complete; the run ended early: subject-0 died: exited with status 1",
			"undeclared: verdict process-alive, verdict: pass; fail",
		}},
		{"it was killed", side("qrs", func(*historyBuilder) {}, check.Unknown, false), []string{
			"undeclared: workload the run, completion: complete; the history ends before the last phase (end)",
		}},
		{"something was missed", side("qrs", misses, check.Unknown, true), []string{
			"undeclared: workload the run, completion: complete; commits of pods: the watch ended",
		}},
		{"it died and was started again", side("qrs", func(x *historyBuilder) { larger(x); dies(x) }, check.Pass, true), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, d := range Differences(whole, test.base) {
				got = append(got, string(d.Classification)+": "+d.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			if got, want := test.base.Cost.Unfinished, test.want != nil; got != want {
				t.Errorf("its cost is of an unfinished run: %v, want %v", got, want)
			}
		})
	}
}
