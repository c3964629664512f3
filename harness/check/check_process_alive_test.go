package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

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
