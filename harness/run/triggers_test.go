package run

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// runWithTriggers runs a scenario on the subjects ours and upstream. Each run must pass.
// runWithTriggers calls look with the records of each run.
func runWithTriggers(t *testing.T, text string, look func(*testing.T, []*history.Record)) {
	for _, target := range []subject.Target{subject.Ours, subject.Upstream} {
		t.Run(target.String(), func(t *testing.T) {
			result, err := Run(t.Context(), options(parse(t, text), target, t.TempDir(), func(m string) { t.Log(m) }))
			if err != nil {
				t.Fatal(err)
			}
			if result.Verdict != check.Pass {
				t.Errorf("verdict %s (%s), want pass", result.Verdict, result.Reason)
			}
			var records []*history.Record
			for record, err := range history.ReadFile(filepath.Join(result.Directory, "history.jsonl")) {
				if err != nil {
					t.Fatal(err)
				}
				records = append(records, record)
			}
			look(t, records)
		})
	}
}

// TestLateStep tests a step whose awaited condition cannot be met while a fault is active. The fault must
// then end, and the remaining steps must follow.
func TestLateStep(t *testing.T) {
	runWithTriggers(t, `
name: late-step
description: a step is late because of a fault that lasts as long as the workload
seed: 3
subject: {leaseDuration: 3s}
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 3}
    await: {until: scaled, within: 2s}
  - scale: {kind: ReplicaSet, name: web, replicas: 4}
    await: {until: ready}
faults:
  - api-error: {verb: create, resource: pods, code: 500}
settle: {within: 60s, quiet: 1s}
`, func(t *testing.T, records []*history.Record) {
		var events []string
		for _, record := range records {
			switch {
			case record.Step != nil:
				events = append(events, fmt.Sprint(record.Step.Index, " ", record.Step.Event))
			case record.Fault != nil && record.Fault.Event == history.FaultHealed:
				events = append(events, "healed")
			}
		}
		if diff := cmp.Diff([]string{"0 begun", "0 late", "healed", "0 done", "1 begun", "1 done"}, events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// TestCrash tests crashes of the subject (the controllers under test). It crashes between a commit
// and the response, and before a request reaches the API server. Between the match of the trigger
// and the crash, the subject must get no response.
func TestCrash(t *testing.T) {
	runWithTriggers(t, `
name: crash
description: a crash at a create, before its answer
seed: 3
subject: {leaseDuration: 3s}
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 6}
    await: {until: ready}
  - create: {kind: Deployment, name: app, replicas: 2}
    await: {until: ready}
faults:
  - crash: {downtime: 100ms}
    when: {request: {verb: create, resource: pods, nth: 3, phase: committed}}
    for: 1s
  - crash: {downtime: 100ms}
    when: {request: {verb: create, resource: replicasets.apps}}
    for: 1s
settle: {within: 60s, quiet: 1s}
`, func(t *testing.T, records []*history.Record) {
		var injected []*history.Record
		answers, crashes := map[uint64]*history.Record{}, 0
		for _, r := range records {
			switch {
			case r.Fault != nil && r.Fault.Event == history.FaultInjected:
				injected = append(injected, r)
			case r.Response != nil:
				answers[r.Response.ID] = r
			case r.Process != nil && r.Process.Event == history.ProcessStopped && crashes < len(injected):
				crashes++
			}
		}
		if len(injected) != 2 || crashes != 2 {
			t.Fatalf("%d faults injected, subject killed %d times; want 2 and 2", len(injected), crashes)
		}
		committed, sent := answers[injected[0].Fault.Request], answers[injected[1].Fault.Request]
		if committed == nil || committed.Response.ServerCode != 201 || committed.Seq > injected[0].Seq {
			t.Errorf("response to the request of the first crash: %+v; want 201 from the API server", committed)
		}
		if sent == nil || sent.Response.Reached {
			t.Errorf("response to the request of the second crash: %+v; want one that did not reach the API server", sent)
		}
	})
}

// TestFreeze verifies that a paused leader writes nothing and that another replica takes over. The
// paused replica must then resume, or restart if it has exited.
func TestFreeze(t *testing.T) {
	if testing.Short() {
		t.Skip("flaky on upstream: the paused replica sometimes resumes before another one takes over")
	}
	runWithTriggers(t, `
name: freeze
description: the leader is paused until another replica has taken over
seed: 3
subject: {replicas: 2, leaseDuration: 3s}
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 12}
    await: {until: ready}
faults:
  - freeze: {}
    when: {request: {verb: create, resource: pods, nth: 4, phase: committed}}
    until: {state: {resource: pods, is: ready, atLeast: 12}}
    for: 30s
settle: {within: 60s, quiet: 1s}
`, func(t *testing.T, records []*history.Record) {
		paused, others := "", 0
		resumed := false
		for _, r := range records {
			switch {
			case r.Process != nil && r.Process.Event == history.ProcessPaused:
				paused = r.Process.Name
			case r.Process != nil && r.Process.Event == history.ProcessResumed:
				resumed = r.Process.Name == paused
				paused = ""
			case paused != "" && r.Request != nil && r.Request.Subject != paused && r.Request.IsWrite():
				others++
			}
		}
		if !resumed || others == 0 {
			t.Errorf("resumed: %t; other replicas wrote %d times during the pause, want at least 1", resumed, others)
		}
	})
}
