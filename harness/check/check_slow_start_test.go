package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestSlowStart(t *testing.T) {
	judge(t, "slow-start", []tale{
		{name: "1, 2, 4, 8", want: Pass, tell: func(s *story) {
			s.createAll(told(s, 15), 15)
		}},
		{name: "two at once to begin with", want: Fail, says: "2 creates in flight when 0 had succeeded", tell: func(s *story) {
			s.creates(told(s, 2), 2)
		}},
		{name: "read from the connection of one that has been killed", want: Pass, tell: func(s *story) {
			rs := told(s, 20)
			s.createAll(rs, 7)
			s.append(history.Record{Process: &history.Process{Name: s.subject, Event: history.ProcessStopped}})
			s.creates(rs, 8)
		}},
		{name: "by one that has started again", want: Fail, says: "2 creates in flight when 0 had succeeded", tell: func(s *story) {
			rs := told(s, 20)
			s.createAll(rs, 7)
			s.append(history.Record{Process: &history.Process{Name: s.subject, Event: history.ProcessStopped}})
			s.restart(s.subject)
			s.creates(rs, 2)
		}},
		{name: "four after one", want: Fail, says: "3 creates in flight when 1 had succeeded", tell: func(s *story) {
			rs := told(s, 10)
			succeed(s.create(rs))
			s.creates(rs, 4)
		}},
		{name: "a sync that follows on another, and goes on after the subject was idle", want: Pass, tell: func(s *story) {
			rs := told(s, 1)
			s.deliver(succeed(s.create(rs))...)
			rs = s.scale("web", 6)
			s.deliver(rs)
			s.deliver(succeed(s.create(rs))...)
			s.wait(5 * time.Second)
			s.deliver(succeed(s.creates(rs, 2)...)...)
			s.deliver(succeed(s.creates(rs, 2)...)...)
		}},
		{name: "a size that was in view for a moment is not what a sync was for", want: Fail, says: "2 creates in flight when 0 had succeeded", tell: func(s *story) {
			rs := told(s, 1)
			s.deliver(succeed(s.create(rs))...)
			s.deliver(s.scale("web", 40))
			rs = s.scale("web", 4)
			s.deliver(rs)
			s.deliver(s.createAll(rs, 3)...)
			s.wait(5 * time.Second)
			rs = s.scale("web", 9)
			s.deliver(rs)
			s.creates(rs, 5)
		}},
		{name: "a batch that goes on after the machine stood still", want: Pass, tell: func(s *story) {
			s.deliver(s.createAll(told(s, 1), 1)...)
			rs := s.scale("web", 3)
			s.deliver(rs)
			s.stall(5 * time.Second)
			s.deliver(succeed(s.creates(rs, 2)...)...)
		}},
		{name: "one that begins with two when the machine did not", want: Fail, says: "2 creates in flight when 0 had succeeded", tell: func(s *story) {
			s.deliver(s.createAll(told(s, 1), 1)...)
			rs := s.scale("web", 3)
			s.deliver(rs)
			s.wait(5 * time.Second)
			s.creates(rs, 2)
		}},
		{name: "after a refusal, from one again", want: Pass, tell: func(s *story) {
			rs := told(s, 20)
			s.createAll(rs, 3)
			batch := s.creates(rs, 4)
			batch[0].answered(403)
			succeed(batch[1:]...)
			s.wait(5 * time.Millisecond)
			s.create(rs).answered(403)
			s.wait(10 * time.Millisecond)
			s.createAll(rs, 7)
		}},
		{name: "after a refusal, not from one", want: Fail, says: "2 creates in flight when 0 had succeeded", tell: func(s *story) {
			rs := told(s, 20)
			s.create(rs).answered(403)
			s.wait(5 * time.Millisecond)
			s.creates(rs, 2)
		}},
		{name: "the siblings of a failed batch still come", want: Pass, tell: func(s *story) {
			rs := told(s, 20)
			s.createAll(rs, 7)
			batch := s.creates(rs, 2)
			batch[0].answered(422)
			succeed(s.creates(rs, 6)...)
		}},
		{name: "more than the siblings of a failed batch", want: Fail, tell: func(s *story) {
			rs := told(s, 40)
			s.createAll(rs, 7)
			s.create(rs).answered(422)
			for range 8 {
				s.create(rs).answered(422)
			}
			s.creates(rs, 2)
		}},
		{name: "siblings are forgotten once the subject was idle", want: Fail, tell: func(s *story) {
			rs := told(s, 40)
			s.createAll(rs, 7)
			s.create(rs).answered(422)
			s.wait(2 * time.Second)
			s.creates(rs, 2)
		}},
		{name: "the machine stands still in mid-sync", want: Pass, tell: func(s *story) {
			rs := told(s, 20)
			s.deliver(s.createAll(rs, 7)...)
			s.wait(3 * time.Second)
			s.creates(rs, 8)
		}},
		{name: "the machine stands still in mid-sync, after a refusal", want: Pass, tell: func(s *story) {
			rs := told(s, 20)
			s.create(rs).answered(403)
			s.wait(5 * time.Millisecond)
			s.deliver(s.createAll(rs, 3)...)
			s.wait(3 * time.Second)
			s.creates(rs, 4)
		}},
		{name: "the machine stands still in mid-sync, after a refusal of a batch", want: Pass, tell: func(s *story) {
			rs := told(s, 40)
			s.deliver(s.createAll(rs, 7)...)
			s.create(rs).answered(422) // of a batch of eight, of which this might be all
			s.wait(5 * time.Millisecond)
			s.deliver(s.createAll(rs, 3)...)
			s.wait(3 * time.Second)
			s.creates(rs, 4)
		}},
		{name: "a sync after a refusal that is over says nothing for the next", want: Fail, says: "2 creates in flight when 0 had succeeded", tell: func(s *story) {
			rs := told(s, 7)
			s.create(rs).answered(403)
			s.wait(5 * time.Millisecond)
			s.deliver(s.createAll(rs, 7)...)
			s.wait(3 * time.Second)
			rs = s.scale("web", 20)
			s.deliver(rs)
			s.creates(rs, 2)
		}},
		{name: "a sync that is over says nothing for the next", want: Fail, says: "2 creates in flight when 0 had succeeded", tell: func(s *story) {
			s.createAll(told(s, 7), 7)
			s.wait(3 * time.Second)
			rs := s.scale("web", 20)
			s.deliver(rs)
			s.creates(rs, 2)
		}},
		{name: "the client repeats refused calls and the batch goes on (trap 13)", want: Pass, tell: func(s *story) {
			rs := told(s, 40)
			s.createAll(rs, 7)
			batch := s.creates(rs, 8)
			batch[0].deferred(429)
			batch[1].deferred(503)
			succeed(batch[2:]...)
			s.wait(2 * time.Second) // Retry-After
			succeed(s.creates(rs, 2)...)
			succeed(s.creates(rs, 16)...)
		}},
		{name: "refused calls that the client does not repeat end the batch", want: Fail, tell: func(s *story) {
			rs := told(s, 40)
			s.createAll(rs, 7)
			batch := s.creates(rs, 8)
			batch[0].answered(429)
			batch[1].answered(503)
			succeed(batch[2:]...)
			succeed(s.creates(rs, 2)...)
		}},
		{name: "a lost answer ends the batch, and the next begins with one", want: Pass, tell: func(s *story) {
			rs := told(s, 40)
			s.createAll(rs, 7)
			batch := s.creates(rs, 8)
			batch[0].commits().lost()
			succeed(batch[1:]...)
			succeed(s.create(rs))
			succeed(s.creates(rs, 2)...)
		}},
		{name: "a lost answer, and the next batch all the same", want: Fail, tell: func(s *story) {
			rs := told(s, 40)
			s.create(rs).commits().lost()
			s.creates(rs, 2)
		}},
		{name: "the client rate limit spreads a batch (trap 16)", want: Pass, tell: func(s *story) {
			rs := told(s, 40)
			s.createAll(rs, 7)
			for range 8 {
				succeed(s.create(rs))
				s.wait(50 * time.Millisecond)
			}
		}},
		{name: "all refused, next batch all the same", want: Fail, tell: func(s *story) {
			rs := told(s, 40)
			s.create(rs).answered(500)
			s.creates(rs, 2)
		}},
		{name: "all refused in a terminating namespace, and the next batch (trap 18)", want: Pass, tell: func(s *story) {
			rs := told(s, 40)
			s.create(rs).shutOut()
			for _, create := range s.creates(rs, 2) {
				create.shutOut()
			}
			s.creates(rs, 4)
		}},
		{name: "a terminating namespace is no leave to skip a batch", want: Fail, tell: func(s *story) {
			rs := told(s, 40)
			s.create(rs).shutOut()
			s.creates(rs, 3)
		}},
		{name: "each owner has its own start", want: Pass, tell: func(s *story) {
			web, db := told(s, 2), s.owner(controllers, "db", "db", 2)
			s.deliver(db)
			a, b := s.create(web), s.create(db)
			succeed(a, b)
			s.create(web)
			s.create(db)
		}},
	})
}
