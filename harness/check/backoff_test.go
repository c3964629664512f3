package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// retry makes n failing calls, the pauses between them growing from first by
// the given factor.
func retry(s *story, n int, first time.Duration, factor int, call func()) {
	for pause := first; n > 0; n-- {
		call()
		s.wait(pause)
		pause *= time.Duration(factor)
	}
}

func TestBackOff(t *testing.T) {
	judge(t, "back-off", []tale{
		{name: "5 ms doubling", want: Pass, tell: func(s *story) {
			rs := told(s, 1)
			retry(s, 11, 5*time.Millisecond, 2, func() { s.create(rs).answered(500) })
		}},
		{name: "no back-off", want: Fail, says: "failed 41 times within 1s", tell: func(s *story) {
			rs := told(s, 1)
			retry(s, 100, 2*time.Millisecond, 1, func() { s.create(rs).answered(500) })
		}},
		{name: "no back-off on a conflict", want: Fail, says: "update replicasets.apps status", tell: func(s *story) {
			rs := told(s, 0)
			s.wait(2 * time.Second)
			retry(s, 100, 2*time.Millisecond, 1, func() { s.writeStatus(rs).answered(409) })
		}},
		{name: "as quick, for there is news of pods each time", want: Pass, tell: func(s *story) {
			rs := told(s, 41)
			pods := s.running(rs, 40)
			for _, p := range pods {
				s.deliver(s.revise(p.Name, "status", map[string]any{"x": 1}))
				s.create(rs).answered(500)
			}
		}},
		{name: "the siblings of one batch count once", want: Pass, tell: func(s *story) {
			rs := told(s, 500)
			s.createAll(rs, 127)
			for _, a := range s.creates(rs, 128) {
				a.answered(403)
			}
			s.wait(5 * time.Millisecond)
			s.create(rs).answered(403)
		}},
		{name: "a batch is cut off long after it was sent", want: Pass, tell: func(s *story) {
			rs := told(s, 500)
			s.createAll(rs, 127)
			batch := s.creates(rs, 128)
			s.wait(12 * time.Second)
			for _, a := range batch {
				a.lost()
			}
		}},
		{name: "a batch is sent again each time it is cut off", want: Fail, says: "failed 31 times within 1s", tell: func(s *story) {
			rs := told(s, 500)
			s.wait(3 * time.Second)
			for range 35 {
				for _, a := range s.creates(rs, 8) {
					a.lost()
				}
				s.wait(2 * time.Millisecond)
			}
		}},
		{name: "a batch of deletes fails, each pod once", want: Pass, tell: func(s *story) {
			rs := told(s, 100)
			pods := s.running(rs, 100)
			s.deliver(s.scale("web", 0))
			retry(s, 4, 5*time.Millisecond, 2, func() {
				for _, p := range pods {
					s.delete(p).answered(500)
				}
			})
		}},
		{name: "gone already is no failure (R17 aside)", want: legal, tell: func(s *story) {
			rs := told(s, 0)
			pods := s.running(rs, 1)
			for range 100 {
				s.delete(pods[0]).answered(404)
			}
		}},
		{name: "a success between begins anew", want: Pass, tell: func(s *story) {
			rs := told(s, 10)
			for range 10 {
				retry(s, 5, time.Millisecond, 2, func() { s.create(rs).answered(500) })
				s.deliver(succeed(s.create(rs))...)
			}
		}},
		{name: "another owner's failures are its own", want: Pass, tell: func(s *story) {
			web, db := told(s, 1), s.replicaSet("db", 1)
			s.deliver(db)
			s.wait(2 * time.Second)
			for range 25 {
				s.create(web).answered(500)
				s.create(db).answered(500)
			}
		}},
	})
}

func TestAlive(t *testing.T) {
	died := func(s *story) {
		s.append(history.Record{Process: &history.Process{Name: "subject-0", Event: history.ProcessDied, Detail: "exit status 2"}})
	}
	trouble := func(s *story, code int) {
		s.request(history.Request{Verb: "update", Resource: leaseResource, Namespace: "kube-system", Name: "l"}).answered(code)
	}
	judge(t, "process-alive", []tale{
		{name: "lives", want: Pass, tell: func(*story) {}},
		{name: "dies", want: Fail, says: "subject-0 died: exit status 2", tell: died},
		{name: "was stopped", want: Pass, tell: func(s *story) {
			s.append(history.Record{Process: &history.Process{Name: "subject-0", Event: history.ProcessStopped}})
			s.restart("subject-0")
		}},
		{name: "exits for it lost its lease", want: Pass, tell: func(s *story) {
			trouble(s, 500)
			s.wait(10 * time.Second)
			died(s)
		}},
		{name: "exits for its lease gets no answer", want: Pass, tell: func(s *story) {
			s.leads()
			s.wait(8 * time.Second)
			s.renew("me")
			s.wait(2 * time.Second)
			died(s)
		}},
		{name: "dies while a call for its lease gets no answer, and has the time to try again", want: Fail, says: "died", tell: func(s *story) {
			s.leads()
			s.wait(2 * time.Second)
			s.renew("me")
			s.wait(1100 * time.Millisecond)
			died(s)
		}},
		{name: "dies with a call for its lease just sent", want: Fail, says: "died", tell: func(s *story) {
			s.leads()
			s.wait(10 * time.Second)
			s.renew("me")
			s.wait(100 * time.Millisecond)
			died(s)
		}},
		{name: "dies long after trouble with its lease", want: Fail, says: "died", tell: func(s *story) {
			trouble(s, 500)
			s.wait(time.Minute)
			trouble(s, 200)
			died(s)
		}},
		{name: "it dies before it has said a word", want: Fail, says: "subject-9 died", tell: func(s *story) {
			s.append(history.Record{Process: &history.Process{Name: "subject-9", Event: history.ProcessDied}})
		}},
		{name: "something else dies", want: Pass, tell: func(s *story) {
			s.append(history.Record{Process: &history.Process{Name: "kwok", Event: history.ProcessDied}})
		}},
	})
}
