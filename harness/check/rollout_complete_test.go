package check

import (
	"maps"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// rolledOut tells of a Deployment of ten replicas that has been rolled out from
// v1 to v2, the faults healed, with a status that says so.
func rolledOut(s *story) {
	s.deployment("web", 10, rollingUpdate(3, 2))
	s.set("web", "v1", 0, 0)
	s.set("web", "v2", 10, 10)
	s.rollTo("web", "v2")
	for range 10 {
		s.podOf(s.find("web-v2"), "Running")
	}
	s.settledStatus(10)
	s.phase(history.PhaseSettle)
}

// settledStatus commits the status of a Deployment that is complete.
func (s *story) settledStatus(n int) {
	s.deliver(s.revise("web", "status", fields{
		"observedGeneration": s.find("web").Generation, "replicas": n, "updatedReplicas": n, "readyReplicas": n,
		"availableReplicas": n, "unavailableReplicas": 0, "conditions": []any{
			fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
			fields{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
		},
	}))
}

func (s *story) annotate(object *history.Object, key, value string) {
	o := *object
	o.Annotations = map[string]string{key: value}
	s.commit(history.Modified, o)
}

func TestRolloutComplete(t *testing.T) {
	// Each tale spoils one thing of a rollout that is complete.
	spoilt := func(spoil func(s *story)) func(s *story) {
		return func(s *story) {
			rolledOut(s)
			spoil(s)
			s.wait(time.Minute)
		}
	}
	judge(t, "rollout-complete", []tale{
		{name: "all as it should be", want: Pass, tell: spoilt(func(*story) {})},
		{name: "an old pod is left", want: Fail, says: "its old ReplicaSet web-v1 still asks for 1 replicas", tell: spoilt(func(s *story) {
			s.scale("web-v1", 1)
		})},
		{name: "not all replicas are of the new one", want: Fail, says: "its ReplicaSet web-v2 asks for 9 of 10 replicas", tell: spoilt(func(s *story) {
			s.scale("web-v2", 9)
		})},
		{name: "no ReplicaSet has the template (D1, D7)", want: Fail, says: "0 ReplicaSets with its template", tell: spoilt(func(s *story) {
			s.rollTo("web", "v3")
			s.settledStatus(10)
		})},
		{name: "two have it (D3, D5, D25)", want: Fail, says: "2 ReplicaSets with its template, expected one", tell: spoilt(func(s *story) {
			twin := *s.find("web-v2")
			twin.Name, twin.UID = "web-twin", "web-twin-uid"
			s.commit(history.Added, twin)
		})},
		{name: "the status lies", want: Fail, says: "status.availableReplicas is 9, by its ReplicaSets 10", tell: spoilt(func(s *story) {
			s.revise("web", "status", fields{"availableReplicas": 9})
		})},
		{name: "unavailable pods, though none is (D20)", want: Fail, says: "status.unavailableReplicas is -1", tell: spoilt(func(s *story) {
			s.revise("web", "status", fields{"unavailableReplicas": -1})
		})},
		{name: "a failure that is none of its ReplicaSets'", want: Fail, says: "none of its ReplicaSets has it", tell: spoilt(func(s *story) {
			s.revise("web", "status", fields{"conditions": []any{
				fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
				fields{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
				fields{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"},
			}})
		})},
		{name: "stuck, and its deadline is never said to be missed (D11)", want: Fail, says: "and its deadline of 1s is long past", tell: spoilt(func(s *story) {
			s.revise("web-v2", "status", fields{"readyReplicas": 9, "availableReplicas": 9})
			s.revise("web", "spec", fields{"progressDeadlineSeconds": 1})
			s.revise("web", "status", fields{
				"observedGeneration": 3, "readyReplicas": 9, "availableReplicas": 9, "unavailableReplicas": 1, "conditions": []any{
					fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
					condition("Progressing", "True", setUpdated, 1),
				},
			})
		})},
		{name: "stuck, and said to be so", want: Pass, tell: spoilt(func(s *story) {
			s.revise("web-v2", "status", fields{"readyReplicas": 9, "availableReplicas": 9})
			s.revise("web", "spec", fields{"progressDeadlineSeconds": 1})
			s.revise("web", "status", fields{
				"observedGeneration": 3, "readyReplicas": 9, "availableReplicas": 9, "unavailableReplicas": 1, "conditions": []any{
					fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
					condition("Progressing", "False", deadlineExceeded, 3),
				},
			})
		})},
		{name: "the wish to roll back stays (D8)", want: Fail, says: "it has not been rolled back to revision 1", tell: spoilt(func(s *story) {
			s.annotate(s.find("web"), rollbackAnnotation, "1")
		})},
		{name: "a generation not observed", want: Fail, says: "observedGeneration is 2 at generation 3", tell: spoilt(func(s *story) {
			s.revise("web", "spec", fields{"x": 1})
		})},
		{name: "said to be still on its way", want: Fail, says: "the condition Progressing is True (ReplicaSetUpdated), expected True (NewReplicaSetAvailable)", tell: spoilt(func(s *story) {
			s.revise("web", "status", fields{"conditions": []any{
				fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
				fields{"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"},
			}})
		})},
		{name: "no condition says that it is available", want: Fail, says: "the condition Available is  ()", tell: spoilt(func(s *story) {
			s.revise("web", "status", fields{"conditions": []any{
				fields{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
			}})
		})},
		{name: "the revision is not the highest", want: Fail, says: "has revision 2, the old web-v1 has 3", tell: spoilt(func(s *story) {
			s.annotate(s.find("web-v1"), revisionAnnotation, "3")
		})},
		{name: "more history than its limit (D19)", want: Fail, says: "1 old ReplicaSets, expected at most 0", tell: spoilt(func(s *story) {
			s.revise("web", "spec", fields{"revisionHistoryLimit": 0})
			s.settledStatus(10)
		})},
		{name: "minReadySeconds not passed on (D24)", want: Fail, says: "has minReadySeconds 0, expected 5", tell: spoilt(func(s *story) {
			s.revise("web", "spec", fields{"minReadySeconds": 5})
			s.settledStatus(10)
		})},
		{name: "a ReplicaSet that matches is left without an owner", want: Fail, says: "its ReplicaSet web-v7 is nobody's, and to be adopted", tell: spoilt(func(s *story) {
			o := setOf("web", "v7", 0, 10)
			o.Owners = nil
			s.commit(history.Added, o)
		})},
		{name: "an annotation not passed on", want: Fail, says: `has the annotation team="", expected "paint"`, tell: spoilt(func(s *story) {
			s.annotate(s.find("web"), "team", "paint")
		})},
		{name: "an annotation of the ReplicaSet's alone (trap 30)", want: Pass, tell: spoilt(func(s *story) {
			o := *s.find("web-v2")
			o.Annotations = maps.Clone(o.Annotations)
			o.Annotations["team"] = "paint"
			s.commit(history.Modified, o)
		})},
		{name: "what is the Deployment's own is not passed on", want: Pass, tell: spoilt(func(s *story) {
			s.annotate(s.find("web"), appliedAnnotation, "{}")
		})},
		{name: "a template that is never ready stops the rollout where it may", want: Pass, tell: func(s *story) {
			s.deployment("web", 10, rollingUpdate(3, 2))
			s.set("web", "v1", 8, 8)
			s.set("web", "v2", 5, 0)
			s.rollTo("web", "v2")
			s.settledStatus(10)
			s.revise("web", "status", fields{
				"replicas": 13, "updatedReplicas": 5, "readyReplicas": 8, "availableReplicas": 8, "unavailableReplicas": 5,
			})
			s.phase(history.PhaseSettle)
			s.wait(time.Minute)
		}},
		{name: "unhealthy old pods must not stop it (D15)", want: Fail, says: "asks for 5 of 10 replicas", tell: func(s *story) {
			s.deployment("web", 10, rollingUpdate(3, 2))
			s.set("web", "v1", 8, 3)
			s.set("web", "v2", 5, 5)
			s.rollTo("web", "v2")
			s.settledStatus(10)
			s.revise("web", "status", fields{
				"replicas": 13, "updatedReplicas": 5, "readyReplicas": 8, "availableReplicas": 8, "unavailableReplicas": 5,
			})
			s.phase(history.PhaseSettle)
			s.wait(time.Minute)
		}},
		{name: "failed pods must not stop a recreation (D7)", want: Fail, says: "asks for 0 of 1 replicas", tell: func(s *story) {
			s.deployment("web", 1, fields{"type": "Recreate"})
			s.podOf(s.setFor("web", "v1", 0, 0, 1), "Failed")
			s.setFor("web", "v2", 0, 0, 1)
			s.rollTo("web", "v2")
			s.settledStatus(0)
			s.phase(history.PhaseSettle)
			s.wait(time.Minute)
		}},
		{name: "paused: it keeps what it has", want: Pass, tell: spoilt(func(s *story) {
			s.revise("web", "spec", fields{"paused": true, "template": podTemplate("web", "v3", "")})
			s.settledStatus(10)
			s.revise("web", "status", fields{"updatedReplicas": 0, "conditions": []any{
				fields{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
				fields{"type": "Progressing", "status": "Unknown", "reason": "DeploymentPaused"},
			}})
		})},
		{name: "paused, and scaling is forgotten", want: Fail, says: "not scaled to 12 replicas", tell: spoilt(func(s *story) {
			s.revise("web", "spec", fields{"paused": true, "replicas": 12})
			s.settledStatus(10)
		})},
		{name: "paused, and rolled out all the same", want: Fail, says: "created ReplicaSet web-v3, though the Deployment was paused", tell: spoilt(func(s *story) {
			s.deliver(s.revise("web", "spec", fields{"paused": true}))
			s.rollTo("web", "v3")
			s.make("web", "v3", 3).takes()
		})},
		{name: "one that is being deleted is nobody's", want: Pass, tell: spoilt(func(s *story) {
			s.scale("web-v2", 9)
			s.terminate(s.find("web"))
		})},
		{name: "the run gave up before the bound", want: Unknown, tell: func(s *story) {
			rolledOut(s)
			s.scale("web-v1", 1)
		}},
		{name: "nothing there", want: NotExercised, tell: func(s *story) { s.phase(history.PhaseSettle) }},
	})
}

func TestSameTemplate(t *testing.T) {
	read := func(v any) *template {
		t.Helper()
		pods, err := readTemplate(encoded(v))
		if err != nil {
			t.Fatal(err)
		}
		return pods
	}
	plain := read(podTemplate("web", "v1", ""))
	for _, c := range []struct {
		name  string
		other fields
		same  bool
	}{
		{"the hash label is no part of it", podTemplate("web", "v1", "abc"), true},
		{"a null timestamp says nothing", fields{
			"spec": fields{"image": "v1"}, "metadata": fields{"creationTimestamp": nil, "labels": fields{"app": "web"}},
		}, true},
		{"another image", podTemplate("web", "v2", ""), false},
		{"another label", podTemplate("shop", "v1", ""), false},
		{"no labels", fields{"spec": fields{"image": "v1"}}, false},
	} {
		if got := plain.same(read(c.other)); got != c.same {
			t.Errorf("%s: same is %t", c.name, got)
		}
	}
}
