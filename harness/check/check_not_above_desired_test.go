package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestNotAboveDesired(t *testing.T) {
	judge(t, "not-above-desired", []tale{
		{name: "fills up to what is asked for", want: Pass, tell: func(s *story) {
			s.deliver(s.createAll(told(s, 5), 5)...)
		}},
		{name: "one too many though all was observed (R1)", want: Fail, says: "created pod 6 of 5", tell: func(s *story) {
			rs := told(s, 5)
			s.deliver(s.createAll(rs, 5)...)
			s.create(rs)
		}},
		{name: "one too many on the way", want: Fail, says: "created pod 6 of 5", tell: func(s *story) {
			rs := told(s, 5)
			s.createAll(rs, 4)
			s.creates(rs, 2)
		}},
		{name: "made again because they do not come into view (trap 9)", want: Fail, says: "created pod 4 of 3, 3 of them made so long ago", tell: func(s *story) {
			rs := told(s, 3)
			s.createAll(rs, 3)
			s.wait(5 * time.Minute)
			s.createAll(rs, 3)
		}},
		{name: "made again because they are gone, of which no event told", want: Pass, tell: func(s *story) {
			rs := told(s, 3)
			for _, p := range s.createAll(rs, 3) {
				s.commit(history.Deleted, *p)
			}
			s.wait(5 * time.Minute)
			s.list(podResource)
			s.createAll(rs, 3)
		}},
		{name: "made again because they failed, of which it was told late", want: Pass, tell: func(s *story) {
			rs := told(s, 3)
			pods := s.createAll(rs, 3)
			s.wait(5 * time.Minute)
			for _, p := range pods {
				s.deliver(p, s.fail(p))
			}
			s.createAll(rs, 3)
		}},
		{name: "more made, as more are asked for, and those made first do not come into view", want: Pass, tell: func(s *story) {
			rs := told(s, 3)
			s.createAll(rs, 3)
			s.wait(5 * time.Minute)
			s.deliver(s.scale("web", 5))
			s.createAll(rs, 2)
		}},
		{name: "and one more than that", want: Fail, says: "created pod 6 of 5, 3 of them made so long ago", tell: func(s *story) {
			rs := told(s, 3)
			s.createAll(rs, 3)
			s.wait(5 * time.Minute)
			s.deliver(s.scale("web", 5))
			s.createAll(rs, 3)
		}},
		{name: "made anew for an owner of the same name", want: Pass, tell: func(s *story) {
			rs := told(s, 3)
			s.createAll(rs, 3)
			s.wait(5 * time.Minute)
			s.remove(s.find("web"))
			anew := *rs
			anew.UID = "web-anew-uid"
			s.deliver(s.commit(history.Added, anew))
			s.createAll(s.find("web"), 3)
		}},
		{name: "replaces a failed pod", want: Pass, tell: func(s *story) {
			rs := told(s, 5)
			pods := s.running(rs, 5)
			s.deliver(s.fail(pods[0]))
			s.create(rs)
		}},
		{name: "replaces a terminating pod, live pods above desired (trap 10)", want: Pass, tell: func(s *story) {
			rs := told(s, 5)
			pods := s.running(rs, 5)
			s.deliver(s.terminate(pods[0]), s.terminate(pods[1]))
			s.createAll(rs, 2)
		}},
		{name: "scaled down within the lag", want: Pass, tell: func(s *story) {
			rs := told(s, 5)
			s.createAll(rs, 3)
			s.deliver(s.scale("web", 2))
			s.createAll(rs, 2)
		}},
		{name: "scaled down long before", want: Fail, says: "created pod 3 of 2", tell: func(s *story) {
			rs := told(s, 5)
			s.deliver(s.createAll(rs, 2)...)
			s.deliver(s.scale("web", 2))
			s.wait(3 * time.Second)
			s.create(rs)
		}},
		{name: "scaled down while it was paused (trap 41)", want: Pass, tell: func(s *story) {
			rs := told(s, 5)
			s.deliver(s.createAll(rs, 2)...)
			s.life(history.ProcessPaused)
			s.deliver(s.scale("web", 2))
			s.wait(3 * time.Second)
			s.life(history.ProcessResumed)
			s.create(rs)
		}},
		{name: "scaled down long before, though it was paused once", want: Fail, says: "created pod 3 of 2", tell: func(s *story) {
			rs := told(s, 5)
			s.life(history.ProcessPaused)
			s.wait(3 * time.Second)
			s.life(history.ProcessResumed)
			s.deliver(s.createAll(rs, 2)...)
			s.deliver(s.scale("web", 2))
			s.wait(3 * time.Second)
			s.create(rs)
		}},
		{name: "the next life of one that was paused", want: Fail, says: "created pod 3 of 2", tell: func(s *story) {
			rs := told(s, 5)
			s.life(history.ProcessPaused)
			s.life(history.ProcessStopped)
			s.restart(s.subject)
			s.deliver(s.createAll(rs, 2)...)
			s.deliver(s.scale("web", 2))
			s.wait(3 * time.Second)
			s.create(rs)
		}},
		{name: "a pod of unknown outcome appears (trap 12)", want: Pass, tell: func(s *story) {
			rs := told(s, 2)
			lost := s.create(rs).commits().lost()
			succeed(s.create(rs))
			s.deliver(lost.made)
			succeed(s.create(rs))
		}},
		{name: "others make pods of its own meanwhile", want: Pass, tell: func(s *story) {
			rs := told(s, 3)
			s.createAll(rs, 1)
			s.deliver(s.pod(rs, "web"), s.pod(rs, "web"))
			s.createAll(rs, 2)
		}},
		{name: "a new leader counts what it listed", want: Fail, says: "it knew of 3 active ones", tell: func(s *story) {
			rs := told(s, 3)
			s.createAll(rs, 3)
			s.restart("subject-1")
			s.create(rs)
		}},
		{name: "an owner it was never shown", want: legal, tell: func(s *story) {
			s.create(s.replicaSet("web", 0))
		}},
	})
}
