package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestNotBelowDesired(t *testing.T) {
	judge(t, "not-below-desired", []tale{
		{name: "deletes the excess", want: Pass, tell: func(s *story) {
			rs := told(s, 5)
			pods := s.running(rs, 5)
			s.deliver(s.scale("web", 3))
			s.delete(pods[0]).answered(200)
			s.delete(pods[1]).answered(200)
		}},
		{name: "deletes one more", want: Fail, says: "left 2 of 3 active", tell: func(s *story) {
			rs := told(s, 5)
			pods := s.running(rs, 5)
			s.deliver(s.scale("web", 3))
			s.delete(pods[0]).answered(200)
			s.delete(pods[1]).answered(200)
			s.delete(pods[2])
		}},
		{name: "counts terminating pods again (R2)", want: Fail, says: "left 2 of 3 active", tell: func(s *story) {
			rs := told(s, 6)
			pods := s.running(rs, 6)
			s.deliver(s.scale("web", 5))
			s.delete(pods[0]).answered(200)
			s.deliver(s.terminate(pods[0]))
			s.wait(2 * time.Second)
			s.deliver(s.scale("web", 3)) // 5 active and one terminating: 2 to go, not 3
			s.delete(pods[1]).answered(200)
			s.delete(pods[2]).answered(200)
			s.delete(pods[3]).answered(200)
		}},
		{name: "the next scale-down counts right", want: Pass, tell: func(s *story) {
			rs := told(s, 6)
			pods := s.running(rs, 6)
			s.deliver(s.scale("web", 5))
			s.delete(pods[0]).answered(200)
			s.deliver(s.terminate(pods[0]))
			s.wait(2 * time.Second)
			s.deliver(s.scale("web", 3))
			s.delete(pods[1]).answered(200)
			s.delete(pods[2]).answered(200)
		}},
		{name: "a pod dies of itself meanwhile", want: Pass, tell: func(s *story) {
			rs := told(s, 5)
			pods := s.running(rs, 5)
			s.deliver(s.scale("web", 3))
			s.deliver(s.fail(pods[4]))
			s.delete(pods[0]).answered(200)
			s.delete(pods[1]).answered(200)
		}},
		{name: "the lost answer to a delete, and another delete", want: Pass, tell: func(s *story) {
			rs := told(s, 5)
			pods := s.running(rs, 5)
			s.deliver(s.scale("web", 4))
			s.delete(pods[0]).lost()
			s.delete(pods[1]).answered(200)
			s.deliver(s.terminate(pods[0]))
		}},
		{name: "a ghost in its view, gone in truth", want: Pass, tell: func(s *story) {
			rs := told(s, 4)
			pods := s.running(rs, 5)
			s.commit(history.Deleted, *pods[0])
			s.delete(pods[0]).answered(404)
			s.delete(pods[1]).answered(200)
		}},
		{name: "the event comes before the answer", want: Pass, tell: func(s *story) {
			rs := told(s, 5)
			pods := s.running(rs, 5)
			s.deliver(s.scale("web", 3))
			a, b := s.delete(pods[0]), s.delete(pods[1])
			s.deliver(s.terminate(pods[0]))
			a.answered(200)
			s.deliver(s.terminate(pods[1]))
			b.answered(200)
		}},
		{name: "the event before the answer counts once", want: Fail, tell: func(s *story) {
			rs := told(s, 5)
			pods := s.running(rs, 5)
			s.deliver(s.scale("web", 4))
			a := s.delete(pods[0])
			s.deliver(s.terminate(pods[0]))
			a.answered(200)
			s.delete(pods[1])
		}},
		{name: "another owner's pod, with an overlapping selector (R11)", want: Fail, says: "left 2 of 3 active", tell: func(s *story) {
			rs := told(s, 3)
			other := s.owner(replicaSets, "other", "web", 1)
			s.deliver(other)
			pods := s.running(rs, 3)
			s.running(other, 1)
			s.delete(pods[0])
		}},
		{name: "deletes pods of an owner that is going", want: Fail, says: "being deleted or gone", tell: func(s *story) {
			rs := told(s, 3)
			pods := s.running(rs, 3)
			s.deliver(s.terminate(rs))
			s.wait(3 * time.Second)
			s.delete(pods[0])
		}},
		{name: "deletes within the lag of the owner's deletion", want: Pass, tell: func(s *story) {
			rs := told(s, 3)
			pods := s.running(rs, 3)
			s.deliver(s.scale("web", 0))
			s.deliver(s.terminate(rs))
			s.delete(pods[0])
		}},
		{name: "a matching orphan counts as its own when adopted", want: Pass, tell: func(s *story) {
			rs := told(s, 2)
			pods := s.running(rs, 2)
			orphan := s.pod(nil, "web")
			s.deliver(orphan)
			s.readLive(rs)
			s.adopt(orphan, rs).answered(200)
			s.delete(pods[0]).answered(200)
		}},
	})
}
