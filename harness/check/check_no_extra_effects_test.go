package check

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// deleteConfigMap records that the process deletes the given ConfigMap.
func deleteConfigMap(h *historyBuilder, o *history.Object) {
	step := h.request(history.Request{Verb: "delete", Resource: configMaps, Namespace: o.Namespace, Name: o.Name, PreconditionUID: o.UID})
	step.answered(200)
	h.deliverGone(h.commit(history.Deleted, *o))
}

func TestNoExtraEffects(t *testing.T) {
	for name, test := range map[string]struct {
		testCase
		learnt *baseline.Baseline
	}{
		"the create of the baseline": {learnt: oneConfigMap, testCase: testCase{want: Pass, build: func(h *historyBuilder) { createConfigMap(h, "1") }}},
		"the process replaces the object": {learnt: oneConfigMap, testCase: testCase{
			want: Fail, evidence: "configmaps ns/c: found 2 created, 1 deleted, 0 lost; expected 1 created, 0 deleted, 0 lost", build: func(h *historyBuilder) {
				deleteConfigMap(h, createConfigMap(h, "1"))
				createConfigMap(h, "1")
			},
		}},
		"a user deletes the object": {learnt: oneConfigMap, testCase: testCase{want: Pass, build: func(h *historyBuilder) {
			h.deliverGone(h.commit(history.Deleted, *createConfigMap(h, "1")))
			createConfigMap(h, "1")
		}}},
		"an object that no other run has": {learnt: oneConfigMap, testCase: testCase{
			want: Fail, evidence: "configmaps ns/other: found 1 created", build: func(h *historyBuilder) {
				h.apply("create", "", objectOf(configMaps, "other", `{}`))
			},
		}},
		"the runs of the baseline differ": {learnt: &baseline.Baseline{Runs: 3, Effects: baseline.Facts{"configmaps ns/c": baseline.Any}}, testCase: testCase{
			want: Pass, build: func(h *historyBuilder) { deleteConfigMap(h, createConfigMap(h, "1")) },
		}},
		"nothing was created": {learnt: oneConfigMap, testCase: testCase{want: NotExercised, build: func(*historyBuilder) {}}},
		"a fault of users": {learnt: oneConfigMap, testCase: testCase{want: NotExercised, build: func(h *historyBuilder) {
			createConfigMap(h, "1")
			h.fires("namespace-terminating")
		}}},
		"no baseline": {testCase: testCase{want: NotExercised, build: func(h *historyBuilder) { createConfigMap(h, "2") }}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistoryBuilderOf(widgets, configMaps)
			test.build(h)
			test.verify(t, h, withBaseline(test.learnt), "no-extra-effects")
		})
	}
}
