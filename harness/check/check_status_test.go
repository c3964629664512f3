package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestStatus(t *testing.T) {
	// A ReplicaSet of three, with as many pods, that is all known, and was so when
	// the version of the ReplicaSet came that there is.
	renewed := func(s *story) *history.Object {
		s.wait(3 * time.Second)
		rs := s.revise("web", "status", nil)
		s.deliver(rs)
		return rs
	}
	three := func(s *story) *history.Object {
		s.running(told(s, 3), 3)
		return renewed(s)
	}
	counts := func(replicas, ready int) fields {
		return fields{
			"replicas": replicas, "fullyLabeledReplicas": replicas, "readyReplicas": ready, "availableReplicas": ready, "observedGeneration": 1,
		}
	}
	failing := func(status fields) fields {
		status["conditions"] = []any{fields{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}}
		return status
	}
	judge(t, "status", []tale{
		{name: "as it is", want: Pass, tell: func(s *story) {
			s.says(three(s), counts(3, 3)).answered(200)
		}},
		{name: "one pod too few", want: Fail, says: "wrote status.replicas 2", tell: func(s *story) {
			s.says(three(s), counts(2, 2)).answered(200)
		}},
		{name: "none below nothing", want: Fail, says: "wrote status.replicas -1", tell: func(s *story) {
			s.says(told(s, 0), counts(-1, 0)).answered(422)
		}},
		{name: "pods that are not ready", want: Fail, says: "wrote status.readyReplicas 3", tell: func(s *story) {
			rs := told(s, 3)
			s.running(rs, 2)
			unready := *s.pod(rs, "web")
			unready.Body = podBody("Running", false)
			s.deliver(s.commit(history.Modified, unready))
			s.says(renewed(s), counts(3, 3)).answered(200)
		}},
		{name: "a create has failed, and that is told", want: Pass, tell: func(s *story) {
			rs := told(s, 1)
			s.create(rs).answered(500)
			s.says(rs, failing(counts(0, 0))).answered(200)
		}},
		{name: "it is not told", want: Fail, says: "without the condition ReplicaFailure", tell: func(s *story) {
			rs := told(s, 1)
			s.create(rs).answered(500)
			s.says(rs, counts(0, 0)).answered(200)
		}},
		{name: "a delete has failed, and it is not told", want: Fail, says: "without the condition ReplicaFailure", tell: func(s *story) {
			pods := s.running(told(s, 1), 2)
			s.delete(pods[0]).answered(500)
			s.says(renewed(s), counts(2, 2)).answered(200)
		}},
		{name: "one has failed of a pod that may have been another's", want: Pass, tell: func(s *story) {
			rs, other := told(s, 1), s.replicaSet("other", 0)
			pods := s.running(rs, 2)
			s.deliver(other)
			handed := *pods[0]
			handed.Owners, handed.Labels = controlledBy(other), map[string]string{"app": "other"}
			s.deliver(s.commit(history.Modified, handed))
			s.delete(pods[0]).answered(500)
			s.says(other, counts(1, 1)).answered(200)
		}},
		{name: "it has been told, and pods are made since", want: Pass, tell: func(s *story) {
			rs := told(s, 1)
			s.create(rs).answered(500)
			s.says(rs, failing(counts(0, 0))).answered(200)
			s.deliver(succeed(s.create(rs))...)
			s.says(rs, counts(1, 1)).answered(200)
		}},
		{name: "it is told already", want: legal, tell: func(s *story) {
			told(s, 1)
			rs := s.revise("web", "status", failing(counts(0, 0)))
			s.deliver(rs)
			s.create(rs).answered(500)
			s.says(rs, counts(0, 0)).answered(200)
		}},
		{name: "its namespace is terminating (trap 18)", want: Pass, tell: func(s *story) {
			rs := told(s, 1)
			s.create(rs).answered(403)
			s.says(rs, counts(0, 0)).answered(200)
		}},
		{name: "a pod has just come", want: Pass, tell: func(s *story) {
			rs := three(s)
			s.deliver(s.pod(rs, "web"))
			s.says(rs, counts(3, 3)).answered(200)
		}},
		{name: "it has come long ago, and its coming was reported", want: Fail, says: "wrote status.replicas 3", tell: func(s *story) {
			rs := three(s)
			s.deliver(s.pod(rs, "web"))
			s.says(rs, counts(4, 4)).answered(200)
			s.says(renewed(s), counts(3, 3)).answered(200)
		}},
		{name: "it has come long ago, but a call of before may have hung as long", want: Pass, tell: func(s *story) {
			rs := three(s)
			s.deliver(s.pod(rs, "web"))
			s.wait(time.Minute)
			s.says(rs, counts(3, 3)).answered(200)
		}},
		{name: "from a version that is replaced, which the API server refuses", want: legal, tell: func(s *story) {
			rs := three(s)
			s.deliver(s.pod(rs, "web"))
			renewed(s)
			s.says(rs, counts(3, 3)).answered(409)
		}},
		{name: "an orphan that it has adopted and not been shown (trap 25)", want: legal, tell: func(s *story) {
			rs := three(s)
			orphan := s.pod(nil, "web")
			s.deliver(orphan)
			s.readLive(rs)
			s.adopt(orphan, rs).answered(200)
			s.says(rs, counts(4, 4)).answered(200)
		}},
		{name: "a list has come, half of which is in the cache", want: Pass, tell: func(s *story) {
			rs := three(s)
			s.terminate(s.find("web-1"))
			s.pod(rs, "web")
			s.list(podResource)
			s.says(rs, counts(4, 4)).answered(200)
		}},
	})
}

func TestStatusGeneration(t *testing.T) {
	generation := func(g int) fields { return fields{"observedGeneration": g, "replicas": 0} }
	judge(t, "status", []tale{
		{name: "a generation that it has not been told of", want: Fail, says: "wrote status.observedGeneration 2", tell: func(s *story) {
			rs := told(s, 0)
			s.scale("web", 1)
			s.says(rs, generation(2)).answered(200)
		}},
		{name: "one that it has read live", want: legal, tell: func(s *story) {
			told(s, 0)
			s.scale("web", 1)
			s.readLive(s.find("web"))
			s.says(s.find("web"), generation(2)).answered(200)
		}},
		{name: "the one before, of which it has just been told the next", want: legal, tell: func(s *story) {
			rs := told(s, 0)
			s.deliver(s.scale("web", 1))
			s.says(rs, generation(1)).answered(409)
		}},
		{name: "an older one than it has reported", want: Fail, says: "wrote status.observedGeneration 1", tell: func(s *story) {
			told(s, 0)
			s.deliver(s.scale("web", 1))
			s.says(s.find("web"), generation(2)).answered(200)
			s.wait(3 * time.Second)
			s.deliver(s.revise("web", "status", generation(2)))
			s.says(s.find("web"), generation(1)).answered(200)
		}},
		{name: "another leader knows no better (trap 27)", want: Pass, tell: func(s *story) {
			old := told(s, 0)
			s.deliver(s.scale("web", 1))
			s.says(s.find("web"), generation(2)).answered(200)
			s.begin("subject-1")
			s.listPart(podResource, "", nil)
			s.listPart(replicaSets, "", []history.Object{*old})
			s.says(old, generation(1)).answered(409)
		}},
	})
}

func TestStatusAvailability(t *testing.T) {
	// A pod that became ready at the tenth second, of a ReplicaSet that takes it
	// for available after five more.
	fresh := func(s *story) *history.Object {
		s.replicaSet("web", 1)
		rs := s.revise("web", "spec", fields{"minReadySeconds": 5})
		s.deliver(rs)
		p := *s.pod(rs, "web")
		p.Body = fmt.Appendf(nil, `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":%q}]}}`,
			time.Unix(1e9+10, 0).UTC().Format(time.RFC3339))
		s.at = 10*time.Second + 900*time.Millisecond
		s.deliver(s.commit(history.Modified, p))
		return rs
	}
	available := fields{"replicas": 1, "fullyLabeledReplicas": 1, "readyReplicas": 1, "availableReplicas": 1, "observedGeneration": 2}
	judge(t, "status", []tale{
		{name: "too early", want: Fail, says: "wrote status.availableReplicas 1", tell: func(s *story) {
			rs := fresh(s)
			s.wait(3 * time.Second)
			s.says(rs, available).answered(200)
		}},
		{name: "by whole seconds, early by a part of one (trap 22)", want: Pass, tell: func(s *story) {
			rs := fresh(s)
			s.at = 15 * time.Second
			s.says(rs, available).answered(200)
		}},
	})
}

func TestReplicaFailure(t *testing.T) {
	failing := fields{
		"replicas": 0, "observedGeneration": 1, "conditions": []any{fields{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}},
	}
	judge(t, "status", []tale{
		{name: "after a create that failed", want: Pass, tell: func(s *story) {
			rs := told(s, 1)
			s.create(rs).answered(403)
			s.says(rs, failing).answered(200)
		}},
		{name: "nothing has failed, of what was seen to be sent", want: Pass, tell: func(s *story) {
			s.says(told(s, 1), failing).answered(200)
		}},
		{name: "a pod to delete was gone already (R17)", want: Fail, says: "wrote the condition ReplicaFailure", tell: func(s *story) {
			rs := told(s, 0)
			pods := s.running(rs, 1)
			s.delete(pods[0]).answered(404)
			s.deliverGone(pods[0])
			s.says(rs, failing).answered(200)
		}},
		{name: "it is there already (trap 26)", want: Pass, tell: func(s *story) {
			told(s, 1)
			s.deliver(s.revise("web", "status", failing))
			s.wait(3 * time.Second)
			s.says(s.find("web"), failing).answered(200)
		}},
	})
}
