package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// told makes a ReplicaSet called web that the subject has been told of.
func told(s *story, replicas int) *history.Object {
	rs := s.replicaSet("web", replicas)
	s.deliver(rs)
	return rs
}

func TestBurstLimit(t *testing.T) {
	judge(t, "burst-limit", []tale{
		{name: "500 creates not observed", want: Pass, tell: func(s *story) {
			s.createAll(told(s, 1200), 500)
		}},
		{name: "501 creates not observed", want: Fail, says: "501 pods being created", tell: func(s *story) {
			s.createAll(told(s, 1200), 501)
		}},
		{name: "500 creates, observed, and 500 more", want: Pass, tell: func(s *story) {
			rs := told(s, 1200)
			s.deliver(s.createAll(rs, 500)...)
			s.deliver(s.createAll(rs, 500)...)
		}},
		{name: "the 501st replaces one that was refused", want: Pass, tell: func(s *story) {
			rs := told(s, 1200)
			s.create(rs).answered(500)
			s.createAll(rs, 500)
		}},
		{name: "a bookmark shows that the pods came and went (relist)", want: Pass, tell: func(s *story) {
			rs := told(s, 1200)
			s.createAll(rs, 500)
			s.bookmark(podResource, false)
			s.createAll(rs, 500)
		}},
		{name: "a new process owes nothing of the old one", want: Pass, tell: func(s *story) {
			rs := told(s, 1200)
			s.createAll(rs, 400)
			s.restart("subject-0")
			s.createAll(rs, 500)
		}},
		{name: "after five minutes, one more burst (trap 17)", want: Pass, tell: func(s *story) {
			rs := told(s, 1200)
			s.createAll(rs, 500)
			s.wait(5 * time.Minute)
			s.createAll(rs, 500)
		}},
		{name: "501 deletes not observed", want: Fail, says: "501 pods being deleted", tell: func(s *story) {
			rs := told(s, 600)
			pods := s.running(rs, 600)
			s.deliver(s.scale("web", 0))
			for _, p := range pods[:501] {
				s.delete(p).answered(200)
			}
		}},
		{name: "500 deletes not observed", want: Pass, tell: func(s *story) {
			rs := told(s, 600)
			pods := s.running(rs, 600)
			s.deliver(s.scale("web", 0))
			for _, p := range pods[:500] {
				s.delete(p).answered(200)
			}
		}},
		{name: "nobody wants so many", want: NotExercised, tell: func(s *story) {
			s.createAll(told(s, 10), 10)
		}},
	})
}
