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

// mistaken tells of a ReplicationController that wants three pods and counts the
// event of one, whose create it holds for failed, as that of another.
func mistaken(s *story) *history.Object {
	rc := s.owner(controllers, "web", "web", 3)
	s.deliver(rc)
	first := succeed(s.create(rc))
	batch := s.creates(rc, 2)
	lost := batch[0].commits().lost()
	succeed(batch[1])
	s.deliver(first[0], lost.made)
	succeed(s.create(rc))
	return rc
}

func TestExpectations(t *testing.T) {
	judge(t, "expectations", []tale{
		{name: "creates what is missing, and waits", want: Pass, tell: func(s *story) {
			rs := told(s, 3)
			pods := s.createAll(rs, 3)
			s.deliver(pods[:2]...)
			s.wait(time.Second)
			s.deliver(pods[2])
		}},
		{name: "creates again what it has not observed", want: Fail, says: "create that no view called for, with 4 creates", tell: func(s *story) {
			rs := told(s, 3)
			s.createAll(rs, 3)
			s.create(rs)
		}},
		{name: "creates again after observing some", want: Fail, says: "sent a create", tell: func(s *story) {
			rs := told(s, 3)
			pods := s.createAll(rs, 3)
			s.deliver(pods[:2]...)
			s.create(rs)
		}},
		{name: "scaled up while it waits: acts at once", want: Fail, says: "sent a create", tell: func(s *story) {
			rs := told(s, 3)
			s.createAll(rs, 3)
			s.deliver(s.scale("web", 5))
			s.create(rs)
		}},
		{name: "scaled up while it waits: acts after", want: Pass, tell: func(s *story) {
			rs := told(s, 3)
			pods := s.createAll(rs, 3)
			s.deliver(s.scale("web", 5))
			s.deliver(pods...)
			s.createAll(rs, 2)
		}},
		{name: "scaled down in mid-batch: the batch goes on", want: Pass, tell: func(s *story) {
			rs := told(s, 7)
			s.createAll(rs, 3)
			s.deliver(s.scale("web", 1))
			s.createAll(rs, 4)
		}},
		{name: "a pod dies in mid-batch: replaced after", want: Pass, tell: func(s *story) {
			rs := told(s, 4)
			old := s.running(rs, 1)
			pods := s.createAll(rs, 3)
			s.deliver(s.fail(old[0]))
			s.deliver(pods...)
			s.create(rs)
		}},
		{name: "a pod dies in mid-batch: replaced at once", want: Fail, says: "sent a create", tell: func(s *story) {
			rs := told(s, 4)
			old := s.running(rs, 1)
			s.createAll(rs, 3)
			s.deliver(s.fail(old[0]))
			s.create(rs)
		}},
		{name: "refused ones give their place back", want: legal, tell: func(s *story) {
			rs := told(s, 3)
			s.create(rs).answered(409)
			s.create(rs).answered(500)
			s.create(rs).lost()
			s.createAll(rs, 3)
		}},
		{name: "after five minutes it gives up waiting (trap 17)", want: legal, tell: func(s *story) {
			rs := told(s, 3)
			s.createAll(rs, 3)
			s.wait(5 * time.Minute)
			s.deliver(s.scale("web", 6))
			s.createAll(rs, 3)
		}},
		{name: "after four minutes it must not", want: Fail, tell: func(s *story) {
			rs := told(s, 3)
			s.createAll(rs, 3)
			s.wait(4 * time.Minute)
			s.createAll(rs, 3)
		}},
		{name: "a new process knows what it lists", want: legal, tell: func(s *story) {
			rs := told(s, 3)
			s.createAll(rs, 2)
			s.restart("subject-0")
			s.create(rs)
		}},
		{name: "a new process repeats the batch (R28)", want: Fail, tell: func(s *story) {
			rs := told(s, 3)
			s.createAll(rs, 3)
			s.restart("subject-1")
			s.create(rs)
		}},
		{name: "a lost create that was committed counts as observed for another (trap 12)", want: legal, tell: func(s *story) {
			mistaken(s)
		}},
		{name: "and for no more than one", want: Fail, tell: func(s *story) {
			s.create(mistaken(s))
		}},
		{name: "a repeated create of which one is never heard (trap 13)", want: legal, tell: func(s *story) {
			rs := told(s, 3)
			s.create(rs).commits().answered(500)
			s.createAll(rs, 3)
		}},
		{name: "the event comes before the answer", want: Pass, tell: func(s *story) {
			rs := told(s, 2)
			a := s.create(rs).commits()
			s.deliver(a.made)
			a.answered(201)
			succeed(s.create(rs))
		}},
		{name: "the event before the answer earns no credit", want: Fail, tell: func(s *story) {
			rs := told(s, 2)
			a := s.create(rs).commits()
			s.deliver(a.made)
			a.answered(201)
			succeed(s.create(rs))
			s.create(rs)
		}},
		{name: "creates within the lag of the owner's deletion (trap 24)", want: legal, tell: func(s *story) {
			rs := told(s, 3)
			s.deliver(s.terminate(rs))
			s.createAll(rs, 3)
		}},
		{name: "creates for an owner long known to be going (R29)", want: Fail, tell: func(s *story) {
			rs := told(s, 3)
			pods := s.running(rs, 3)
			s.deliver(s.terminate(rs))
			s.wait(3 * time.Second)
			s.deliver(s.terminate(pods[0]))
			s.create(rs)
		}},
		{name: "deletes the excess, and waits", want: Pass, tell: func(s *story) {
			rs := told(s, 3)
			pods := s.running(rs, 3)
			s.deliver(s.scale("web", 1))
			s.delete(pods[0]).answered(200)
			s.delete(pods[1]).answered(200)
			s.deliver(s.terminate(pods[0]))
			s.deliver(s.scale("web", 0))
			s.deliver(s.terminate(pods[1]))
			s.delete(pods[2]).answered(200)
		}},
		{name: "deletes more before it has observed", want: Fail, says: "delete that no view called for", tell: func(s *story) {
			rs := told(s, 3)
			pods := s.running(rs, 3)
			s.deliver(s.scale("web", 1))
			s.delete(pods[0]).answered(200)
			s.delete(pods[1]).answered(200)
			s.deliver(s.scale("web", 0))
			s.delete(pods[2])
		}},
		{name: "deletes a pod again", want: Fail, says: "again before it had observed", tell: func(s *story) {
			rs := told(s, 3)
			pods := s.running(rs, 3)
			s.deliver(s.scale("web", 1))
			s.delete(pods[0]).answered(200)
			s.delete(pods[0])
		}},
		{name: "deletes a pod again when that failed", want: legal, tell: func(s *story) {
			rs := told(s, 3)
			pods := s.running(rs, 3)
			s.deliver(s.scale("web", 2))
			s.delete(pods[0]).answered(500)
			s.delete(pods[0]).lost()
			s.delete(pods[0]).answered(404)
		}},
		{name: "creates while deletes are not observed", want: Fail, says: "2 deletes not observed", tell: func(s *story) {
			rs := told(s, 3)
			pods := s.running(rs, 3)
			s.deliver(s.scale("web", 1))
			s.delete(pods[0]).answered(200)
			s.delete(pods[1]).answered(200)
			s.deliver(s.scale("web", 3))
			s.create(rs)
		}},
		{name: "a deleted pod is gone by relist", want: legal, tell: func(s *story) {
			rs := told(s, 3)
			pods := s.running(rs, 3)
			s.deliver(s.scale("web", 2))
			s.delete(pods[0]).answered(200)
			s.commit(history.Deleted, *pods[0])
			s.list(podResource)
			s.deliver(s.scale("web", 3))
			s.create(rs)
		}},
		{name: "a streaming list shows nothing before it is whole", want: Fail, tell: func(s *story) {
			rs := told(s, 1)
			pods := s.createAll(rs, 1)
			s.watch(podResource, "sendInitialEvents=true")
			s.deliver(pods...)
			s.deliver(s.scale("web", 2))
			s.create(rs)
		}},
		{name: "a streaming list that is whole", want: legal, tell: func(s *story) {
			rs := told(s, 1)
			pods := s.createAll(rs, 1)
			s.watch(podResource, "sendInitialEvents=true")
			s.deliver(pods...)
			s.bookmark(podResource, true)
			s.deliver(s.scale("web", 2))
			s.create(rs)
		}},
		{name: "an owner of the same name starts afresh", want: legal, tell: func(s *story) {
			rs := told(s, 2)
			s.createAll(rs, 2)
			s.deliverGone(s.commit(history.Deleted, *rs))
			again := *rs
			again.UID = "web-again-uid"
			s.deliver(s.commit(history.Added, again))
			s.createAll(&again, 2)
		}},
		{name: "adopted pods count before their event comes", want: legal, tell: func(s *story) {
			rs := told(s, 1)
			s.running(rs, 1)
			orphan := s.pod(nil, "web")
			s.deliver(orphan)
			s.readLive(rs)
			s.adopt(orphan, rs).answered(200)
			s.delete(orphan).answered(200)
		}},
	})
}
