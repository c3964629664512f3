package check

import (
	"strings"
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

// TestEvidenceOfEffects checks that the evidence has the record of the extra create. It must also say
// whether a fault had acted before.
func TestEvidenceOfEffects(t *testing.T) {
	const early = "no fault had acted yet"
	for name, test := range map[string]struct {
		faultFirst bool
		want       bool // the evidence says that no fault had acted
	}{
		"before the first fault": {want: true},
		"after a fault":          {faultFirst: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistoryBuilderOf(widgets, configMaps)
			if test.faultFirst {
				h.fires("crash")
			}
			createConfigMap(h, "1")
			h.apply("create", "", objectOf(configMaps, "other", `{}`))
			created := int64(len(h.records))
			if !test.faultFirst {
				h.fires("crash")
			}
			result := verdictsWith(t, withBaseline(oneConfigMap), h.end())["no-extra-effects"]
			if result.Verdict != Fail {
				t.Fatalf("verdict %s; want fail", result.Verdict)
			}
			e := result.Evidence[0]
			if got := strings.Contains(e.Expected, early); got != test.want || len(e.Records) != 1 || e.Records[0] > created {
				t.Errorf("records %v, expected %q; want the response to the create, and %q: %v", e.Records, e.Expected, early, test.want)
			}
		})
	}
}
