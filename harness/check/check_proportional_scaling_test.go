package check

import (
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// pausedAtZero delivers a paused Deployment of 10 replicas, whose two ReplicaSets have none. The older
// one has the Deployment's template.
func pausedAtZero(h *historyBuilder) {
	h.deployment("web", 10, rollingUpdate(2, 2))
	h.replicaSetOf("web", "v1", 0, 0)
	h.replicaSetOf("web", "v2", 0, 0)
	h.rollTo("web", "v1")
	h.deliver(h.revise("web", "spec", fields{"paused": true}))
	h.wait(3 * time.Second)
}

func TestProportionalScaling(t *testing.T) {
	// halfway delivers a Deployment with ten replicas: six of v1 and four of the new v2.
	// The ReplicaSets were last scaled for ten replicas and have the max-replicas
	// annotation 12.
	halfway := func(h *historyBuilder) {
		h.deployment("web", 10, rollingUpdate(2, 2))
		for version, replicas := range map[string]int{"v1": 6, "v2": 4} {
			o := h.replicaSetOf("web", version, replicas, replicas)
			o.Annotations[objects.MaxReplicasAnnotation] = "12"
			h.deliver(h.commit(history.Modified, *o))
		}
		h.rollTo("web", "v2")
	}
	changed := func(h *historyBuilder, spec fields) {
		halfway(h)
		h.deliver(h.revise("web", "spec", spec))
		h.wait(3 * time.Second)
	}
	runTestCases(t, "proportional-scaling", []testCase{
		{name: "the new ReplicaSet scales up", want: Pass, build: func(h *historyBuilder) {
			halfway(h)
			h.resize(h.find("web-v2"), 6).applyAndAnswer()
		}},
		{name: "an old ReplicaSet scales down", want: Pass, build: func(h *historyBuilder) {
			halfway(h)
			h.resize(h.find("web-v1"), 4).applyAndAnswer()
		}},
		{name: "an old ReplicaSet scales up", want: Fail, evidence: "scaled ReplicaSet web-v1 from 6 to 7", build: func(h *historyBuilder) {
			halfway(h)
			h.resize(h.find("web-v1"), 7).applyAndAnswer()
		}},
		{name: "the new ReplicaSet scales down", want: Fail, evidence: "scaled ReplicaSet web-v2 from 4 to 3", build: func(h *historyBuilder) {
			halfway(h)
			h.resize(h.find("web-v2"), 3).applyAndAnswer()
		}},
		{name: "a ReplicaSet that was the new one within the lag scales up", want: Pass, build: func(h *historyBuilder) {
			halfway(h)
			h.deliver(h.revise("web", "spec", fields{"template": podTemplate("web", "v3", "")}))
			h.resize(h.find("web-v2"), 6).applyAndAnswer()
		}},
		{name: "each ReplicaSet gets its share (mutant D17)", want: Pass, build: func(h *historyBuilder) {
			changed(h, fields{"replicas": 20})
			h.resize(h.find("web-v1"), 15).applyAndAnswer()
			h.resize(h.find("web-v2"), 7).applyAndAnswer()
		}},
		{name: "the smaller ReplicaSet gets more than its share", want: Fail, evidence: "scaled ReplicaSet web-v2 from 4 to 16", build: func(h *historyBuilder) {
			changed(h, fields{"replicas": 20})
			h.resize(h.find("web-v2"), 16).applyAndAnswer()
		}},
		{name: "the larger ReplicaSet gets all missing replicas", want: Fail, evidence: "scaled ReplicaSet web-v1 from 6 to 18", build: func(h *historyBuilder) {
			changed(h, fields{"replicas": 20})
			h.resize(h.find("web-v1"), 18).applyAndAnswer()
		}},
		{name: "the larger ReplicaSet gets more than the missing replicas", want: Fail, evidence: "scaled ReplicaSet web-v1 from 6 to 20", build: func(h *historyBuilder) {
			changed(h, fields{"replicas": 20})
			h.resize(h.find("web-v1"), 20).applyAndAnswer()
		}},
		{name: "the new ReplicaSet has all replicas, and a status with more", want: Pass, build: func(h *historyBuilder) {
			changed(h, fields{"replicas": 3})
			h.deliver(h.scale("web-v2", 3)) // status.replicas is still 4
			h.wait(3 * time.Second)
			h.resize(h.find("web-v1"), 0).applyAndAnswer()
		}},
		{name: "the new ReplicaSet has all replicas, and not all are available", want: Fail, evidence: "scaled ReplicaSet web-v1 from 6 to 0", build: func(h *historyBuilder) {
			changed(h, fields{"replicas": 3})
			h.deliver(h.scale("web-v2", 3))
			h.deliver(h.status("web-v2", 2))
			h.wait(3 * time.Second)
			h.resize(h.find("web-v1"), 0).applyAndAnswer()
		}},
		{name: "rolls on while paused", want: Fail, evidence: "scaled ReplicaSet web-v1 from 6 to 2", build: func(h *historyBuilder) {
			changed(h, fields{"paused": true})
			h.resize(h.find("web-v1"), 2).applyAndAnswer()
		}},
		{name: "rolls on just after the pause", want: Pass, build: func(h *historyBuilder) {
			halfway(h)
			h.deliver(h.revise("web", "spec", fields{"paused": true}))
			h.resize(h.find("web-v1"), 4).applyAndAnswer()
		}},
		{name: "scales the new ReplicaSet from zero while paused", want: Pass, build: func(h *historyBuilder) {
			pausedAtZero(h)
			h.resize(h.find("web-v1"), 10).applyAndAnswer()
		}},
		{name: "scales an old ReplicaSet from zero while paused", want: Fail, evidence: "scaled ReplicaSet web-v2 from 0 to 10", build: func(h *historyBuilder) {
			pausedAtZero(h)
			h.resize(h.find("web-v2"), 10).applyAndAnswer()
		}},
		{name: "scales proportionally while paused", want: Pass, build: func(h *historyBuilder) {
			changed(h, fields{"paused": true, "replicas": 20})
			h.resize(h.find("web-v2"), 7).applyAndAnswer()
		}},
		{name: "does not record the new size of the Deployment", want: Fail, evidence: `set spec.replicas of ReplicaSet web-v1 to 15, with annotations deployment.kubernetes.io/desired-replicas="10" and deployment.kubernetes.io/max-replicas="12"`, build: func(h *historyBuilder) {
			changed(h, fields{"replicas": 20})
			step := h.resize(h.find("web-v1"), 15)
			maps.Copy(step.request.Object.Annotations, map[string]string{objects.DesiredReplicasAnnotation: "10", objects.MaxReplicasAnnotation: "12"})
			step.applyAndAnswer()
		}},
		{name: "creates a ReplicaSet without the size of the Deployment", want: Fail, evidence: `set spec.replicas of ReplicaSet web-v3 to 0, with annotations deployment.kubernetes.io/desired-replicas="10" and deployment.kubernetes.io/max-replicas=""`, build: func(h *historyBuilder) {
			halfway(h)
			h.rollTo("web", "v3")
			step := h.createReplicaSet("web", "v3", 0)
			delete(step.request.Object.Annotations, objects.MaxReplicasAnnotation)
			step.applyAndAnswer()
		}},
		{name: "a single active ReplicaSet takes all replicas", want: Pass, build: func(h *historyBuilder) {
			halfway(h)
			h.deliver(h.scale("web-v1", 0))
			h.deliver(h.revise("web", "spec", fields{"paused": true, "replicas": 20}))
			h.wait(3 * time.Second)
			h.resize(h.find("web-v2"), 20).applyAndAnswer()
		}},
	})
}

// scaledReplicaSet delivers a ReplicaSet of the Deployment web. All its pods are available.
//
// The parameter second is the ReplicaSet's creation time, and most is its max-replicas
// annotation.
func (h *historyBuilder) scaledReplicaSet(version string, replicas, second, most int) {
	o := *h.replicaSetOf("web", version, replicas, replicas)
	o.Created = time.Unix(1e9+int64(second), 0)
	o.Annotations = maps.Clone(o.Annotations)
	o.Annotations[objects.MaxReplicasAnnotation] = strconv.Itoa(most)
	h.deliver(h.commit(history.Modified, o))
}

func TestProportionalShares(t *testing.T) {
	// resized delivers two ReplicaSets with the max-replicas annotation 12, and then changes the
	// Deployment's spec.replicas. It then waits until a checker no longer counts this change as
	// recent.
	//
	// The parameter older is the size of the older ReplicaSet, and replicas is the new
	// spec.replicas.
	resized := func(h *historyBuilder, older, replicas int) {
		h.deployment("web", 10, rollingUpdate(2, 2))
		h.scaledReplicaSet("v1", older, 1, 12)
		h.scaledReplicaSet("v2", 12-older, 2, 12)
		h.rollTo("web", "v2")
		h.deliver(h.revise("web", "spec", fields{"replicas": replicas}))
		h.wait(3 * time.Second)
	}
	// thirds delivers three ReplicaSets of equal size. The parameter second is the creation time
	// of v2.
	thirds := func(h *historyBuilder, second int) {
		h.deployment("web", 10, rollingUpdate(2, 2))
		h.scaledReplicaSet("v1", 4, 1, 12)
		h.scaledReplicaSet("v2", 4, second, 12)
		h.scaledReplicaSet("v3", 4, 3, 12)
		h.rollTo("web", "v3")
		h.deliver(h.revise("web", "spec", fields{"replicas": 11}))
		h.wait(3 * time.Second)
	}
	runTestCases(t, "proportional-scaling", []testCase{
		{name: "rounds halves up, largest first", want: Pass, build: func(h *historyBuilder) {
			resized(h, 9, 16)
			h.resize(h.find("web-v1"), 14).applyAndAnswer()
			h.resize(h.find("web-v2"), 4).applyAndAnswer()
		}},
		{name: "the smallest ReplicaSet gets its share first", want: Fail, evidence: "scaled ReplicaSet web-v2 from 3 to 5", build: func(h *historyBuilder) {
			resized(h, 9, 16)
			h.resize(h.find("web-v2"), 5).applyAndAnswer()
		}},
		{name: "the largest ReplicaSet gets only the rest", want: Fail, evidence: "scaled ReplicaSet web-v1 from 9 to 13", build: func(h *historyBuilder) {
			resized(h, 9, 16)
			h.resize(h.find("web-v1"), 13).applyAndAnswer()
		}},
		{name: "the second write follows long after the first", want: Pass, build: func(h *historyBuilder) {
			resized(h, 9, 16)
			h.deliver(h.scaledFor("web-v1", 14, 18))
			h.wait(3 * time.Second)
			h.resize(h.find("web-v2"), 4).applyAndAnswer()
		}},
		{name: "scale-down: the largest loses too little", want: Fail, evidence: "scaled ReplicaSet web-v1 from 9 to 7", build: func(h *historyBuilder) {
			resized(h, 9, 6)
			h.resize(h.find("web-v1"), 7).applyAndAnswer()
		}},
		{name: "scale-down in proportion", want: Pass, build: func(h *historyBuilder) {
			resized(h, 9, 6)
			h.resize(h.find("web-v1"), 6).applyAndAnswer()
			h.resize(h.find("web-v2"), 2).applyAndAnswer()
		}},
		{name: "scale-down to 0", want: Pass, build: func(h *historyBuilder) {
			resized(h, 9, 0)
			h.resize(h.find("web-v1"), 0).applyAndAnswer()
			h.resize(h.find("web-v2"), 0).applyAndAnswer()
		}},
		{name: "of equal ReplicaSets the newest scales up", want: Pass, build: func(h *historyBuilder) {
			thirds(h, 2)
			h.resize(h.find("web-v3"), 5).applyAndAnswer()
		}},
		{name: "of equal ReplicaSets another one scales up", want: Fail, evidence: "scaled ReplicaSet web-v2 from 4 to 5", build: func(h *historyBuilder) {
			thirds(h, 2)
			h.resize(h.find("web-v2"), 5).applyAndAnswer()
		}},
		{name: "of equal ReplicaSets with the same creation second another one scales up", want: Pass, build: func(h *historyBuilder) {
			thirds(h, 3)
			h.resize(h.find("web-v2"), 5).applyAndAnswer()
		}},
		{name: "one ReplicaSet has no max-replicas annotation", want: Pass, build: func(h *historyBuilder) {
			h.deployment("web", 10, rollingUpdate(2, 2))
			h.scaledReplicaSet("v1", 9, 1, 12)
			h.scaledReplicaSet("v2", 3, 2, 0)
			h.deliver(h.revise("web", "spec", fields{"replicas": 16}))
			h.wait(3 * time.Second)
			h.resize(h.find("web-v1"), 13).applyAndAnswer()
		}},
		{name: "two ReplicaSets were last scaled for a lower and a higher total", want: Pass, build: func(h *historyBuilder) {
			resized(h, 9, 16)
			h.deliver(h.scaledFor("web-v2", 5, 30))
			h.wait(3 * time.Second)
			h.resize(h.find("web-v1"), 11).applyAndAnswer() // 11 is neither the share of v1 nor this share plus the remainder
		}},
	})
}

// scaledFor commits a new version of a ReplicaSet. The parameters are its name, its new
// spec.replicas and its new max-replicas annotation.
func (h *historyBuilder) scaledFor(name string, replicas, most int) *history.Object {
	o := *h.scale(name, replicas)
	o.Annotations = maps.Clone(o.Annotations)
	o.Annotations[objects.MaxReplicasAnnotation] = strconv.Itoa(most)
	return h.commit(history.Modified, o)
}

func TestOldestReplicaSetFirst(t *testing.T) {
	// between delivers a Deployment in a rollout with three ReplicaSets: v1 with four replicas,
	// v2 with three, and the new v3 with five. The parameter second is the creation time of v2.
	between := func(h *historyBuilder, second int) {
		h.deployment("web", 10, rollingUpdate(2, 2))
		h.scaledReplicaSet("v1", 4, 1, 12)
		h.scaledReplicaSet("v2", 3, second, 12)
		h.scaledReplicaSet("v3", 5, 9, 12)
		h.rollTo("web", "v3")
	}
	runTestCases(t, "proportional-scaling", []testCase{
		{name: "the oldest scales down", want: Pass, build: func(h *historyBuilder) {
			between(h, 5)
			h.resize(h.find("web-v1"), 1).applyAndAnswer()
		}},
		{name: "the second oldest scales down first", want: Fail, evidence: "scaled ReplicaSet web-v2 down to 1, which removes available pods, while the older ReplicaSet web-v1 has spec.replicas 4", build: func(h *historyBuilder) {
			between(h, 5)
			h.resize(h.find("web-v2"), 1).applyAndAnswer()
		}},
		{name: "the oldest scales to 0, then the second oldest", want: Pass, build: func(h *historyBuilder) {
			between(h, 5)
			h.resize(h.find("web-v1"), 0).applyAndAnswer() // this change is not in the cache yet
			h.resize(h.find("web-v2"), 2).applyAndAnswer()
		}},
		{name: "the oldest scales to 1, then the second oldest", want: Fail, evidence: "while the older ReplicaSet web-v1 has spec.replicas 1", build: func(h *historyBuilder) {
			between(h, 5)
			h.deliver(h.resize(h.find("web-v1"), 1).applyAndAnswer())
			h.wait(3 * time.Second)
			h.resize(h.find("web-v2"), 2).applyAndAnswer()
		}},
		{name: "pods that are not available go first", want: Pass, build: func(h *historyBuilder) {
			between(h, 5)
			h.deliver(h.revise("web-v2", "status", fields{"availableReplicas": 1}))
			h.resize(h.find("web-v2"), 1).applyAndAnswer()
		}},
		{name: "more pods go than are not available", want: Fail, evidence: "scaled ReplicaSet web-v2 down to 0", build: func(h *historyBuilder) {
			between(h, 5)
			h.deliver(h.revise("web-v2", "status", fields{"availableReplicas": 1}))
			h.resize(h.find("web-v2"), 0).applyAndAnswer()
		}},
		{name: "two old ReplicaSets with the same creation second", want: Pass, build: func(h *historyBuilder) {
			between(h, 1)
			h.resize(h.find("web-v2"), 1).applyAndAnswer()
		}},
		{name: "the older ReplicaSet was the new one within the lag", want: Pass, build: func(h *historyBuilder) {
			between(h, 5)
			h.rollTo("web", "v1")
			h.deliver(h.revise("web", "spec", fields{"template": podTemplate("web", "v3", "")}))
			h.resize(h.find("web-v2"), 1).applyAndAnswer()
		}},
		{name: "the new ReplicaSet scales down", want: Pass, build: func(h *historyBuilder) {
			h.deployment("web", 3, rollingUpdate(2, 2))
			h.scaledReplicaSet("v1", 1, 1, 5)
			h.scaledReplicaSet("v2", 4, 5, 5)
			for _, name := range []string{"web-v1", "web-v2"} {
				o := *h.find(name)
				o.Annotations = maps.Clone(o.Annotations)
				o.Annotations[objects.DesiredReplicasAnnotation] = "3"
				h.deliver(h.commit(history.Modified, o))
			}
			h.rollTo("web", "v2")
			h.resize(h.find("web-v2"), 3).applyAndAnswer()
		}},
		{name: "all scale to 0 for Recreate", want: Pass, build: func(h *historyBuilder) {
			h.deployment("web", 10, fields{"type": "Recreate"})
			h.scaledReplicaSet("v1", 4, 1, 10)
			h.scaledReplicaSet("v2", 6, 5, 10)
			h.rollTo("web", "v3")
			h.resize(h.find("web-v2"), 0).applyAndAnswer()
		}},
		{name: "all scale proportionally", want: Pass, build: func(h *historyBuilder) {
			between(h, 5)
			h.deliver(h.revise("web", "spec", fields{"replicas": 6}))
			h.resize(h.find("web-v2"), 2).applyAndAnswer()
		}},
	})
}
