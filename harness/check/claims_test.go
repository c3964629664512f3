package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestClaims(t *testing.T) {
	// renewed is a version of the owner that the subject has just been told of.
	renewed := func(s *story) *history.Object {
		s.wait(3 * time.Second)
		rs := s.revise("web", "status", nil)
		s.deliver(rs)
		return rs
	}
	counts := func(n int) fields {
		return fields{"replicas": n, "fullyLabeledReplicas": n, "readyReplicas": n, "availableReplicas": n, "observedGeneration": 1}
	}
	stray := func(s *story, pod *history.Object) { s.deliver(s.relabel(pod, "other")) }
	judge(t, "adopt-and-release", []tale{
		{name: "nothing to claim", want: Pass, tell: func(s *story) {
			s.running(told(s, 1), 1)
			s.says(renewed(s), counts(1)).answered(200)
		}},
		{name: "a pod that matches no more is left", want: Fail, says: "had not tried to release pod web-1", tell: func(s *story) {
			stray(s, s.running(told(s, 1), 1)[0])
			s.says(renewed(s), counts(0)).answered(200)
		}},
		{name: "it is released", want: Pass, tell: func(s *story) {
			rs := told(s, 1)
			pod := s.running(rs, 1)[0]
			stray(s, pod)
			s.release(pod, rs).answered(200)
			s.says(renewed(s), counts(0)).answered(200)
		}},
		{name: "its release was refused", want: Pass, tell: func(s *story) {
			rs := told(s, 1)
			pod := s.running(rs, 1)[0]
			stray(s, pod)
			s.release(pod, rs).answered(500)
			s.says(renewed(s), counts(0)).answered(200)
		}},
		{name: "it was released once, and has strayed again", want: Fail, says: "had not tried to release pod web-1", tell: func(s *story) {
			rs := told(s, 1)
			pod := s.running(rs, 1)[0]
			stray(s, pod)
			s.release(pod, rs).answered(422)
			s.wait(time.Second)
			s.deliver(s.relabel(pod, "web"))
			s.wait(time.Second)
			stray(s, pod)
			s.says(renewed(s), counts(0)).answered(200)
		}},
		{name: "it has strayed only now", want: Pass, tell: func(s *story) {
			pod := s.running(told(s, 1), 1)[0]
			rs := renewed(s)
			stray(s, pod)
			s.says(rs, counts(1)).answered(200)
		}},
		{name: "an orphan is left", want: Fail, says: "had not tried to adopt pod web-1", tell: func(s *story) {
			told(s, 1)
			s.deliver(s.pod(nil, "web"))
			s.says(renewed(s), counts(0)).answered(200)
		}},
		{name: "an orphan that has failed (trap 21)", want: Pass, tell: func(s *story) {
			told(s, 1)
			s.deliver(s.fail(s.pod(nil, "web")))
			s.says(renewed(s), counts(0)).answered(200)
		}},
		{name: "an owner that is being deleted claims nothing", want: legal, tell: func(s *story) {
			stray(s, s.running(told(s, 1), 1)[0])
			s.deliver(s.terminate(s.find("web")))
			s.says(renewed(s), counts(0)).answered(200)
		}},
	})
}
