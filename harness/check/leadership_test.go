package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// lease is the lease as it says that the holder has it for 15 s.
func lease(holder string) *history.Object {
	return &history.Object{
		Ref:  history.Ref{Resource: leaseResource, Namespace: "kube-system", Name: "l"},
		Body: fmt.Appendf(nil, `{"spec":{"holderIdentity":%q,"leaseDurationSeconds":15}}`, holder),
	}
}

// renew is the subject's write of the lease for a holder.
func (s *story) renew(holder string) *ask {
	return s.request(history.Request{Verb: "update", Resource: leaseResource, Namespace: "kube-system", Name: "l", Object: lease(holder)})
}

// finds is the subject's look at the lease, which shows a holder.
func (s *story) finds(holder string) {
	a := s.request(history.Request{Verb: "get", Resource: leaseResource, Namespace: "kube-system", Name: "l"})
	s.append(history.Record{Response: &history.Response{ID: a.request.ID, Code: 200, ServerCode: 200, Reached: true, Object: lease(holder)}})
}

// leads lets the subject win the lease.
func (s *story) leads() {
	a := s.renew("me")
	s.append(history.Record{Response: &history.Response{ID: a.request.ID, Code: 200, ServerCode: 200, Reached: true, Object: lease("me")}})
}

func TestLeadership(t *testing.T) {
	works := func(s *story) { s.createAll(told(s, 3), 3) }
	judge(t, "lease-holder-writes", []tale{
		{name: "asks for no lease", want: legal, tell: works},
		{name: "works while it leads", want: Pass, tell: func(s *story) {
			s.leads()
			s.wait(14 * time.Second)
			works(s)
		}},
		{name: "works long after another leads, whatever time its witness got", want: Fail, says: "after it last renewed the lease", tell: func(s *story) {
			s.leads()
			s.finds("other")
			for range 40 {
				s.wait(200 * time.Millisecond)
				s.stall(300 * time.Millisecond)
			}
			works(s)
			s.wait(time.Second)
			works(s)
		}},
		{name: "works before it leads", want: Fail, says: "before it was told that the lease is its own", tell: func(s *story) {
			s.finds("other")
			s.renew("me").answered(409)
			works(s)
		}},
		{name: "works while the outcome of its bid is unknown", want: Fail, says: "before it was told", tell: func(s *story) {
			s.renew("me")
			works(s)
		}},
		{name: "believes a look at the lease", want: Fail, says: "before it was told", tell: func(s *story) {
			s.renew("me").answered(500)
			s.finds("me")
			works(s)
		}},
		{name: "works on when the lease has run out", want: Fail, says: "17s after it last renewed the lease, which lasts 15s", tell: func(s *story) {
			s.leads()
			s.wait(9 * time.Second)
			s.renew("me").answered(500)
			s.wait(8 * time.Second)
			works(s)
		}},
		{name: "stood still with a call under way when the lease ran out", want: Pass, tell: func(s *story) {
			rs := told(s, 1)
			s.leads()
			s.wait(20 * time.Second)
			s.create(rs)
		}},
		{name: "goes on for a moment when the machine stood still until the lease had run out", want: Pass, tell: func(s *story) {
			s.leads()
			s.wait(9 * time.Second)
			s.stall(8 * time.Second)
			s.renew("me") // whose answer it does not get
			s.stall(4 * time.Second)
			works(s)
		}},
		{name: "goes on for longer than that", want: Fail, says: "22.1s after it last renewed the lease", tell: func(s *story) {
			s.leads()
			s.wait(9 * time.Second)
			s.stall(8 * time.Second)
			s.renew("me")
			s.stall(4 * time.Second)
			s.wait(1100 * time.Millisecond)
			works(s)
		}},
		{name: "goes on when the machine stood still long after the lease had run out", want: Fail, says: "21s after it last renewed the lease", tell: func(s *story) {
			s.leads()
			s.wait(17 * time.Second)
			s.renew("me").answered(500)
			s.stall(4 * time.Second)
			works(s)
		}},
		{name: "renews in time", want: Pass, tell: func(s *story) {
			for range 4 {
				s.leads()
				s.wait(10 * time.Second)
			}
			works(s)
		}},
		{name: "stood still, with the lease its own when it did", want: Pass, tell: func(s *story) {
			s.leads()
			s.life(history.ProcessPaused)
			s.wait(time.Minute)
			s.life(history.ProcessResumed)
			works(s)
		}},
		{name: "tries on though another leads", want: Pass, tell: func(s *story) {
			s.leads()
			s.finds("other")
			s.wait(5 * time.Second)
			works(s)
		}},
		{name: "works on long after another leads", want: Fail, says: "after it last renewed the lease", tell: func(s *story) {
			s.leads()
			s.finds("other")
			s.wait(17 * time.Second)
			works(s)
		}},
		{name: "works on after it gave the lease back", want: Fail, says: "after it gave the lease back", tell: func(s *story) {
			s.leads()
			s.renew("").answered(200)
			s.wait(2 * time.Second)
			works(s)
		}},
		{name: "sends what it had under way when it gave the lease back", want: Pass, tell: func(s *story) {
			s.leads()
			s.renew("").answered(200)
			works(s)
		}},
		{name: "another life must lead anew", want: Fail, says: "before it was told", tell: func(s *story) {
			s.leads()
			s.restart("subject-0")
			s.finds("me")
			s.renew("me")
			works(s)
		}},
	})
}
