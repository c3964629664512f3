package check

import (
	"maps"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// rolledOut delivers a Deployment with ten replicas after a complete rollout from v1 to v2. It
// then starts the phase settle.
func rolledOut(h *historyBuilder) {
	h.deployment("web", 10, rollingUpdate(3, 2))
	h.replicaSetOf("web", "v1", 0, 0)
	h.replicaSetOf("web", "v2", 10, 10)
	h.rollTo("web", "v2")
	for range 10 {
		h.podOf(h.find("web-v2"), "Running")
	}
	h.settledStatus(10)
	h.phase(history.PhaseSettle)
}

// settledStatus delivers a status of the Deployment web that says that all n replicas are
// updated and available. The Deployment gets the revision 2, that of the ReplicaSet web-v2.
func (h *historyBuilder) settledStatus(n int) {
	h.annotate(h.find("web"), objects.RevisionAnnotation, "2")
	h.deliver(h.revise("web", "status", fields{
		"observedGeneration": h.find("web").Generation, "replicas": n, "updatedReplicas": n, "readyReplicas": n,
		"availableReplicas": n, "unavailableReplicas": 0, "conditions": []any{
			fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
			fields{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
		},
	}))
}

// pausedHalfway pauses the Deployment of except, while the old ReplicaSet wants 2 replicas. The
// argument available is the number of available replicas of the new ReplicaSet, which has 10.
func pausedHalfway(h *historyBuilder, available int) {
	h.revise("web", "spec", fields{"paused": true})
	for _, name := range []string{"web-v1", "web-v2"} {
		h.annotate(h.find(name), objects.DesiredReplicasAnnotation, "10")
	}
	h.scale("web-v1", 2)
	h.revise("web-v2", "status", fields{"readyReplicas": available, "availableReplicas": available})
	h.settledStatus(10)
	h.revise("web", "status", fields{
		"readyReplicas": available, "availableReplicas": available, "unavailableReplicas": 12 - available, "conditions": []any{
			fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
			fields{"type": "Progressing", "status": "Unknown", "reason": "DeploymentPaused"},
		},
	})
}

// annotate commits a version of an object with another value of an annotation.
func (h *historyBuilder) annotate(object *history.Object, key, value string) {
	o := *object
	o.Annotations = maps.Clone(o.Annotations)
	if o.Annotations == nil {
		o.Annotations = map[string]string{}
	}
	o.Annotations[key] = value
	h.commit(history.Modified, o)
}

func TestRolloutComplete(t *testing.T) {
	// except returns a function that builds a history with a complete rollout, applies the given
	// change, and waits a minute.
	except := func(change func(h *historyBuilder)) func(h *historyBuilder) {
		return func(h *historyBuilder) {
			rolledOut(h)
			change(h)
			h.wait(time.Minute)
		}
	}
	runTestCases(t, "rollout-complete", []testCase{
		{name: "complete rollout", want: Pass, build: except(func(*historyBuilder) {})},
		{name: "an old ReplicaSet has a replica", want: Fail, evidence: "old ReplicaSet web-v1: spec.replicas is 1, expected 0", build: except(func(h *historyBuilder) {
			h.scale("web-v1", 1)
		})},
		{name: "the new ReplicaSet has too few replicas", want: Fail, evidence: "ReplicaSet web-v2: spec.replicas is 9, expected 10", build: except(func(h *historyBuilder) {
			h.scale("web-v2", 9)
		})},
		{name: "no ReplicaSet has the template (mutants D1, D7)", want: Fail, evidence: "0 ReplicaSets have the Deployment's spec.template", build: except(func(h *historyBuilder) {
			h.rollTo("web", "v3")
			h.settledStatus(10)
		})},
		{name: "two ReplicaSets have the template (mutants D3, D5, D25)", want: Fail, evidence: "2 ReplicaSets have the Deployment's spec.template, expected 1", build: except(func(h *historyBuilder) {
			twin := *h.find("web-v2")
			twin.Name, twin.UID = "web-twin", "web-twin-uid"
			h.commit(history.Added, twin)
		})},
		{name: "the Deployment has adopted a ReplicaSet with the template", want: Pass, build: except(func(h *historyBuilder) {
			twin := edited(edited(*h.find("web-v2"), "spec", fields{"replicas": 0}), "status", fields{"replicas": 0, "readyReplicas": 0, "availableReplicas": 0})
			twin.Name, twin.UID, twin.Created = "web-twin", "web-twin-uid", twin.Created.Add(time.Second)
			twin.Annotations = map[string]string{objects.RevisionAnnotation: "1"}
			owners := twin.Owners
			twin.Owners = nil
			h.commit(history.Added, twin)
			twin.Owners = owners
			h.deliver(h.commit(history.Modified, twin))
		})},
		{name: "the Deployment has an old revision", want: Fail, evidence: "annotation deployment.kubernetes.io/revision is 1, expected 2, the revision of ReplicaSet web-v2", build: except(func(h *historyBuilder) {
			h.annotate(h.find("web"), objects.RevisionAnnotation, "1")
		})},
		{name: "status.availableReplicas is wrong", want: Fail, evidence: "status.availableReplicas is 9, expected 10, the sum over its ReplicaSets", build: except(func(h *historyBuilder) {
			h.revise("web", "status", fields{"availableReplicas": 9})
		})},
		{name: "negative unavailableReplicas (mutant D20)", want: Fail, evidence: "status.unavailableReplicas is -1", build: except(func(h *historyBuilder) {
			h.revise("web", "status", fields{"unavailableReplicas": -1})
		})},
		{name: "ReplicaFailure that no ReplicaSet has", want: Fail, evidence: "no ReplicaSet has this condition", build: except(func(h *historyBuilder) {
			h.revise("web", "status", fields{"conditions": []any{
				fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
				fields{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
				fields{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"},
			}})
		})},
		{name: "ReplicaFailure of a ReplicaSet is missing", want: Fail, evidence: "condition ReplicaFailure is not True, although one of its ReplicaSets has this condition", build: except(func(h *historyBuilder) {
			h.revise("web-v1", "status", fields{"conditions": []any{fields{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}}})
		})},
		{name: "stuck without ProgressDeadlineExceeded (mutant D11)", want: Fail, evidence: "expected ProgressDeadlineExceeded after the deadline of 1s", build: except(func(h *historyBuilder) {
			h.revise("web-v2", "status", fields{"readyReplicas": 9, "availableReplicas": 9})
			h.revise("web", "spec", fields{"progressDeadlineSeconds": 1})
			h.revise("web", "status", fields{
				"observedGeneration": 3, "readyReplicas": 9, "availableReplicas": 9, "unavailableReplicas": 1, "conditions": []any{
					fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
					condition("Progressing", "True", objects.ReplicaSetUpdatedReason, 1),
				},
			})
		})},
		{name: "stuck with ProgressDeadlineExceeded", want: Pass, build: except(func(h *historyBuilder) {
			h.revise("web-v2", "status", fields{"readyReplicas": 9, "availableReplicas": 9})
			h.revise("web", "spec", fields{"progressDeadlineSeconds": 1})
			h.revise("web", "status", fields{
				"observedGeneration": 3, "readyReplicas": 9, "availableReplicas": 9, "unavailableReplicas": 1, "conditions": []any{
					fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
					condition("Progressing", "False", objects.DeadlineExceededReason, 3),
				},
			})
		})},
		{name: "stuck without the condition Progressing", want: Fail, evidence: "condition Progressing is absent, expected one because progressDeadlineSeconds is set", build: except(func(h *historyBuilder) {
			h.revise("web-v2", "status", fields{"readyReplicas": 9, "availableReplicas": 9})
			h.revise("web", "status", fields{"readyReplicas": 9, "availableReplicas": 9, "unavailableReplicas": 1, "conditions": []any{
				fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
			}})
		})},
		{name: "the rollback annotation remains (mutant D8)", want: Fail, evidence: "annotation deprecated.deployment.rollback.to is 1", build: except(func(h *historyBuilder) {
			h.annotate(h.find("web"), objects.RollbackAnnotation, "1")
		})},
		{name: "generation not observed", want: Fail, evidence: "observedGeneration is 2, expected 3", build: except(func(h *historyBuilder) {
			h.revise("web", "spec", fields{"x": 1})
		})},
		{name: "Progressing does not say NewReplicaSetAvailable", want: Fail, evidence: "condition Progressing is True (ReplicaSetUpdated), expected True (NewReplicaSetAvailable)", build: except(func(h *historyBuilder) {
			h.revise("web", "status", fields{"conditions": []any{
				fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
				fields{"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"},
			}})
		})},
		{name: "condition Available is missing", want: Fail, evidence: "condition Available is absent", build: except(func(h *historyBuilder) {
			h.revise("web", "status", fields{"conditions": []any{
				fields{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
			}})
		})},
		{name: "the new ReplicaSet does not have the highest revision", want: Fail, evidence: "has revision 2, expected more than revision 3 of old ReplicaSet web-v1", build: except(func(h *historyBuilder) {
			h.annotate(h.find("web-v1"), objects.RevisionAnnotation, "3")
		})},
		{name: "more old ReplicaSets than revisionHistoryLimit (mutant D19)", want: Fail, evidence: "1 old ReplicaSets, expected at most 0", build: except(func(h *historyBuilder) {
			h.revise("web", "spec", fields{"revisionHistoryLimit": 0})
			h.settledStatus(10)
		})},
		{name: "minReadySeconds not copied to the ReplicaSet (mutant D24)", want: Fail, evidence: "spec.minReadySeconds is 0, expected 5", build: except(func(h *historyBuilder) {
			h.revise("web", "spec", fields{"minReadySeconds": 5})
			h.settledStatus(10)
		})},
		{name: "a matching ReplicaSet is not adopted", want: Fail, evidence: "ReplicaSet web-v7 matches spec.selector and has no controllerRef", build: except(func(h *historyBuilder) {
			o := newReplicaSetOf("web", "v7", 0, 10)
			o.Owners = nil
			h.commit(history.Added, o)
		})},
		{name: "an annotation not copied to the ReplicaSet", want: Fail, evidence: `ReplicaSet web-v2 has no annotation team, expected "paint"`, build: except(func(h *historyBuilder) {
			h.annotate(h.find("web"), "team", "paint")
		})},
		{name: "an extra annotation of the ReplicaSet (deleted-annotations-remain)", want: Pass, build: except(func(h *historyBuilder) {
			o := *h.find("web-v2")
			o.Annotations = maps.Clone(o.Annotations)
			o.Annotations["team"] = "paint"
			h.commit(history.Modified, o)
		})},
		{name: "last-applied-configuration is not copied", want: Pass, build: except(func(h *historyBuilder) {
			h.annotate(h.find("web"), objects.LastAppliedAnnotation, "{}")
		})},
		{name: "a template that never becomes ready stops the rollout at its limits", want: Pass, build: func(h *historyBuilder) {
			h.deployment("web", 10, rollingUpdate(3, 2))
			h.replicaSetOf("web", "v1", 8, 8)
			h.replicaSetOf("web", "v2", 5, 0)
			h.rollTo("web", "v2")
			h.settledStatus(10)
			h.revise("web", "status", fields{
				"replicas": 13, "updatedReplicas": 5, "readyReplicas": 8, "availableReplicas": 8, "unavailableReplicas": 5,
			})
			h.phase(history.PhaseSettle)
			h.wait(time.Minute)
		}},
		{name: "old pods that are not ready stop the rollout (mutant D15)", want: Fail, evidence: "spec.replicas is 5, expected 10", build: func(h *historyBuilder) {
			h.deployment("web", 10, rollingUpdate(3, 2))
			h.replicaSetOf("web", "v1", 8, 3)
			h.replicaSetOf("web", "v2", 5, 5)
			h.rollTo("web", "v2")
			h.settledStatus(10)
			h.revise("web", "status", fields{
				"replicas": 13, "updatedReplicas": 5, "readyReplicas": 8, "availableReplicas": 8, "unavailableReplicas": 5,
			})
			h.phase(history.PhaseSettle)
			h.wait(time.Minute)
		}},
		{name: "failed pods stop a Recreate rollout (mutant D7)", want: Fail, evidence: "spec.replicas is 0, expected 1", build: func(h *historyBuilder) {
			h.deployment("web", 1, fields{"type": "Recreate"})
			h.podOf(h.replicaSetOfSize("web", "v1", 0, 0, 1), "Failed")
			h.replicaSetOfSize("web", "v2", 0, 0, 1)
			h.rollTo("web", "v2")
			h.settledStatus(0)
			h.phase(history.PhaseSettle)
			h.wait(time.Minute)
		}},
		{name: "an old pod that has not ended stops a Recreate rollout", want: Pass, build: func(h *historyBuilder) {
			h.deployment("web", 1, fields{"type": "Recreate"})
			h.podOf(h.replicaSetOfSize("web", "v1", 0, 0, 1), "Running")
			h.rollTo("web", "v2")
			h.settledStatus(0)
			h.revise("web", "status", fields{"conditions": []any{
				fields{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"},
				condition("Progressing", "True", objects.ReplicaSetUpdatedReason, 1),
			}})
			h.phase(history.PhaseSettle)
			h.wait(time.Minute)
		}},
		{name: "paused without a new ReplicaSet", want: Pass, build: except(func(h *historyBuilder) {
			h.revise("web", "spec", fields{"paused": true, "template": podTemplate("web", "v3", "")})
			h.settledStatus(10)
			h.revise("web", "status", fields{"updatedReplicas": 0, "conditions": []any{
				fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
				fields{"type": "Progressing", "status": "Unknown", "reason": "DeploymentPaused"},
			}})
		})},
		{name: "paused and not scaled", want: Fail, evidence: "not scaled to spec.replicas 12", build: except(func(h *historyBuilder) {
			h.revise("web", "spec", fields{"paused": true, "replicas": 12})
			h.settledStatus(10)
		})},
		{name: "paused, and the new ReplicaSet is not saturated", want: Pass, build: except(func(h *historyBuilder) { pausedHalfway(h, 9) })},
		{name: "paused, and the old ReplicaSet has replicas although the new one is saturated", want: Fail, evidence: "not scaled to spec.replicas 10", build: except(func(h *historyBuilder) { pausedHalfway(h, 10) })},
		{name: "the ReplicaSet lacks an annotation without a value", want: Fail, evidence: `ReplicaSet web-v2 has no annotation note, expected ""`, build: except(func(h *historyBuilder) {
			h.annotate(h.find("web"), "note", "")
		})},
		{name: "paused and not scaled from zero", want: Fail, evidence: "not scaled to spec.replicas 3", build: func(h *historyBuilder) {
			h.deployment("web", 3, fields{"type": "Recreate"})
			h.replicaSetOfSize("web", "v1", 0, 0, 0)
			h.revise("web", "spec", fields{"paused": true})
			h.settledStatus(0)
			h.phase(history.PhaseSettle)
			h.wait(time.Minute)
		}},
		{name: "paused and a new ReplicaSet created", want: Fail, evidence: "created ReplicaSet web-v3 while the Deployment was paused", build: except(func(h *historyBuilder) {
			h.deliver(h.revise("web", "spec", fields{"paused": true}))
			h.rollTo("web", "v3")
			h.createReplicaSet("web", "v3", 3).applyAndAnswer()
		})},
		{name: "a terminating Deployment does not count", want: Pass, build: except(func(h *historyBuilder) {
			h.scale("web-v2", 9)
			h.terminate(h.find("web"))
		})},
		{name: "the run ends before the bound", want: Unknown, build: func(h *historyBuilder) {
			rolledOut(h)
			h.scale("web-v1", 1)
		}},
		{name: "no Deployment", want: NotExercised, build: func(h *historyBuilder) { h.phase(history.PhaseSettle) }},
	})
}
