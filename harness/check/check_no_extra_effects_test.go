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

// TestEvidenceOfEffects checks which records the evidence has: the first extra create, and the first
// extra delete. It must also say whether a fault had acted before.
func TestEvidenceOfEffects(t *testing.T) {
	const early = "no fault had acted yet"
	for name, test := range map[string]struct {
		build func(h *historyBuilder) (extra []int64) // returns the last record of each extra effect
		early bool                                    // the evidence says that no fault had acted
	}{
		"before the first fault": {early: true, build: func(h *historyBuilder) []int64 {
			createConfigMap(h, "1")
			h.apply("create", "", objectOf(configMaps, "other", `{}`))
			extra := int64(len(h.records))
			h.fires("crash")
			return []int64{extra}
		}},
		"after a fault": {build: func(h *historyBuilder) []int64 {
			h.fires("crash")
			createConfigMap(h, "1")
			h.apply("create", "", objectOf(configMaps, "other", `{}`))
			return []int64{int64(len(h.records))}
		}},
		"the second create, not the last delete": {build: func(h *historyBuilder) []int64 {
			h.fires("crash")
			first := createConfigMap(h, "1")
			deleteConfigMap(h, first)
			deleted := int64(len(h.records))
			second := createConfigMap(h, "2")
			created := int64(len(h.records))
			deleteConfigMap(h, second)
			return []int64{deleted, created}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistoryBuilderOf(widgets, configMaps)
			extra := test.build(h)
			result := verdictsWith(t, withBaseline(oneConfigMap), h.end())["no-extra-effects"]
			if result.Verdict != Fail {
				t.Fatalf("verdict %s; want fail", result.Verdict)
			}
			e := result.Evidence[0]
			if got := strings.Contains(e.Expected, early); got != test.early || len(e.Records) != len(extra) {
				t.Fatalf("records %v, expected %q; want %d records, and %q: %v", e.Records, e.Expected, len(extra), early, test.early)
			}
			for i, last := range extra {
				if e.Records[i] > last || i > 0 && e.Records[i] <= extra[i-1] {
					t.Errorf("records %v; want those of the effects that end with %v", e.Records, extra)
				}
			}
		})
	}
}
