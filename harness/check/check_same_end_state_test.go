package check

import (
	"maps"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestSameEndState(t *testing.T) {
	for name, test := range map[string]struct {
		testCase
		learnt        *baseline.Baseline
		lastOperation int
	}{
		"the objects of the baseline": {learnt: oneConfigMap, testCase: testCase{want: Pass, build: func(h *historyBuilder) { createConfigMap(h, "1") }}},
		"another value": {learnt: oneConfigMap, testCase: testCase{
			want: Fail, evidence: `configmaps ns/c data/size: found "2"; expected "1"`,
			build: func(h *historyBuilder) { createConfigMap(h, "2") },
		}},
		"a missing object": {learnt: oneConfigMap, testCase: testCase{
			want: Fail, evidence: `configmaps ns/c: found none; expected "1"`, build: func(*historyBuilder) {},
		}},
		"another object": {learnt: oneConfigMap, testCase: testCase{
			want: Fail, evidence: `configmaps ns/other: found "1"; expected none`, build: func(h *historyBuilder) {
				createConfigMap(h, "1")
				h.apply("create", "", objectOf(configMaps, "other", `{}`))
			},
		}},
		"a fault of users": {learnt: oneConfigMap, testCase: testCase{want: NotExercised, build: func(h *historyBuilder) { h.fires("user-edit") }}},
		"another fault":    {learnt: oneConfigMap, testCase: testCase{want: Fail, evidence: "configmaps ns/c", build: func(h *historyBuilder) { h.fires("crash") }}},
		"a failed step": {learnt: oneConfigMap, testCase: testCase{want: NotExercised, build: func(h *historyBuilder) {
			h.append(history.Record{Step: &history.Step{Event: history.StepFailed, Detail: "await c"}})
		}}},
		"an await failed, and the objects are right": {learnt: oneConfigMap, testCase: testCase{want: Pass, build: func(h *historyBuilder) {
			createConfigMap(h, "1")
			h.append(history.Record{Step: &history.Step{Event: history.StepFailed, Detail: "await c", Awaited: &history.Ref{Resource: configMaps, Name: "c"}}})
		}}},
		"an await failed, and an object is missing": {learnt: oneConfigMap, testCase: testCase{want: Fail, evidence: "configmaps ns/c", build: func(h *historyBuilder) {
			h.append(history.Record{Step: &history.Step{Event: history.StepFailed, Detail: "await c", Awaited: &history.Ref{Resource: configMaps, Name: "c"}}})
		}}},
		"operations are missing, because an await failed": {learnt: oneConfigMap, lastOperation: 1, testCase: testCase{want: NotExercised, build: func(h *historyBuilder) {
			h.unmet(false)
		}}},
		"operations are missing, because an await failed after the faults": {learnt: oneConfigMap, lastOperation: 1, testCase: testCase{
			want: Fail, evidence: "step 0 (await c) failed: not ready", build: func(h *historyBuilder) { h.unmet(true) },
		}},
		"the awaited object has conditions": {learnt: oneConfigMap, lastOperation: 1, testCase: testCase{
			want: Fail, evidence: "not ready; conditions: Issued=False (Denied), Ready=False", build: func(h *historyBuilder) {
				h.commit(history.Added, objectOf(configMaps, "c", `{"status":{"conditions":[{"type":"Ready","status":"False"},{"type":"Issued","status":"False","reason":"Denied"}]}}`))
				h.unmet(true)
			},
		}},
		"an await failed after pods were deleted": {learnt: oneConfigMap, lastOperation: 1, testCase: testCase{want: NotExercised, build: func(h *historyBuilder) {
			h.fires("pod-churn")
			h.unmet(true)
		}}},
		"an await of another step was late": {learnt: oneConfigMap, lastOperation: 2, testCase: testCase{want: NotExercised, build: func(h *historyBuilder) {
			h.append(history.Record{Step: &history.Step{Index: 1, Event: history.StepLate, Detail: "await d"}})
			h.append(history.Record{Step: &history.Step{Index: 1, Event: history.StepDone, Detail: "await d"}})
			h.unmet(false)
		}}},
		"the last await failed after the faults, and the objects are right": {learnt: oneConfigMap, testCase: testCase{want: Pass, build: func(h *historyBuilder) {
			createConfigMap(h, "1")
			h.unmet(true)
		}}},
		"another status": {learnt: readyConfigMap, testCase: testCase{
			want: Fail, evidence: `configmaps ns/c status/ready: found "false"; expected "true"`,
			build: func(h *historyBuilder) {
				h.apply("create", "", objectOf(configMaps, "c", `{"status":{"ready":false}}`))
			},
		}},
		"another status after pods were deleted": {learnt: readyConfigMap, testCase: testCase{want: Pass, build: func(h *historyBuilder) {
			h.apply("create", "", objectOf(configMaps, "c", `{"status":{"ready":false}}`))
			h.fires("pod-churn")
		}}},
		"a pod of another controller was deleted": {learnt: withPod(), testCase: testCase{want: Pass, build: func(h *historyBuilder) {
			createConfigMap(h, "1")
			h.fires("pod-churn")
		}}},
		"a pod of another controller is missing": {learnt: withPod(), testCase: testCase{want: Fail, evidence: "pods ns/guarded-0: found none", build: func(h *historyBuilder) {
			createConfigMap(h, "1")
			h.fires("crash")
		}}},
		"the subject did not create its pod again": {learnt: withPod("pods ns/guarded-0"), testCase: testCase{want: Fail, evidence: "pods ns/guarded-0: found none", build: func(h *historyBuilder) {
			createConfigMap(h, "1")
			h.fires("pod-churn")
		}}},
		"no baseline": {testCase: testCase{want: NotExercised, build: func(h *historyBuilder) { createConfigMap(h, "2") }}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistoryBuilderOf(widgets, configMaps)
			test.build(h)
			settings := withBaseline(test.learnt)
			settings.LastOperation = test.lastOperation
			test.verify(t, h, settings, "same-end-state")
		})
	}
}

// withPod returns the baseline oneConfigMap with a pod of a fixed name. The parameter created names
// further objects that the subject creates.
func withPod(created ...string) *baseline.Baseline {
	b := *oneConfigMap
	b.End, b.Effects = maps.Clone(b.End), maps.Clone(b.Effects)
	b.End["pods ns/guarded-0"] = "1"
	for _, key := range created {
		b.Effects[key] = "1 created, 0 deleted, 0 lost"
	}
	return &b
}
