package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

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
