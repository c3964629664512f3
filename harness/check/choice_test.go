package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// looks is how a pod of a tale looks.
type looks struct {
	node     string // "": on none yet
	phase    string
	unready  bool
	readyFor time.Duration // by the time that the history began
	age      time.Duration // the same
	restarts int
	cost     string
}

// usual is a pod that nothing speaks against.
var usual = looks{node: "node-0", phase: "Running", readyFor: time.Hour, age: time.Hour}

// but is the usual pod with something changed.
func but(change func(*looks)) looks {
	l := usual
	change(&l)
	return l
}

func (l looks) apply(o *history.Object) {
	began := time.Unix(1e9, 0)
	status := "True"
	if l.unready {
		status = "False"
	}
	o.Created = began.Add(-l.age)
	o.Annotations = map[string]string{costAnnotation: l.cost}
	o.Body = fmt.Appendf(nil, `{"spec":{"nodeName":%q},"status":{"phase":%q,"containerStatuses":[{"restartCount":%d}],`+
		`"conditions":[{"type":"Ready","status":%q,"lastTransitionTime":%q}]}}`,
		l.node, l.phase, l.restarts, status, began.Add(-l.readyFor).Format(time.RFC3339))
}

// podsLooking makes pods of an owner and lets the subject get used to them.
func (s *story) podsLooking(owner *history.Object, all ...looks) []*history.Object {
	var pods []*history.Object
	for _, l := range all {
		pods = append(pods, s.look(s.pod(owner, owner.Name), l))
	}
	s.deliver(pods...)
	s.wait(3 * time.Second)
	return pods
}

// look commits a version of a pod that looks so.
func (s *story) look(pod *history.Object, l looks) *history.Object {
	changed := *pod
	l.apply(&changed)
	return s.commit(history.Modified, changed)
}

func TestChoice(t *testing.T) {
	// deletes the first of two pods, of an owner that wants one.
	deletesFirst := func(first, second looks) func(*story) {
		return func(s *story) {
			rs := told(s, 2)
			pods := s.podsLooking(rs, first, second)
			s.deliver(s.scale("web", 1))
			s.delete(pods[0]).answered(200)
			s.wait(3 * time.Second)
		}
	}
	onNoNode := but(func(l *looks) { l.node, l.phase, l.unready = "", "Pending", true })
	pending := but(func(l *looks) { l.phase, l.unready = "Pending", true })
	lost := but(func(l *looks) { l.phase = "Unknown" })
	unready := but(func(l *looks) { l.unready = true })
	cheap := but(func(l *looks) { l.cost = "-5" })
	dear := but(func(l *looks) { l.cost = "5" })
	nonsense := but(func(l *looks) { l.cost = "dear" })
	fresh := but(func(l *looks) { l.readyFor = 10 * time.Second })
	recent := but(func(l *looks) { l.readyFor = 40 * time.Minute })
	restarted := but(func(l *looks) { l.restarts = 3 })
	young := but(func(l *looks) { l.age = time.Minute })
	for _, c := range []struct {
		lesser, greater looks
		says            string
	}{
		{onNoNode, pending, "is on no node yet"},
		{pending, lost, "is Pending"},
		{pending, usual, "is Pending"},
		{lost, usual, "is Unknown"},
		{unready, usual, "is not ready"},
		{unready, cheap, "is not ready"},
		{cheap, usual, "costs -5 to delete, the other 0"},
		{usual, dear, "costs 0 to delete, the other 5"},
		{nonsense, dear, "costs 0 to delete, the other 5"},
		{fresh, usual, "has been ready for 13s, the other for 1h0m3s"},
		{restarted, usual, "has restarted 3 times, the other 0"},
		{young, usual, "has been there for 1m3s, the other for 1h0m3s"},
	} {
		judge(t, "scale-down-order", []tale{
			{name: "the other " + c.says, want: Fail, says: c.says, tell: deletesFirst(c.greater, c.lesser)},
			{name: "it " + c.says, want: Pass, tell: deletesFirst(c.lesser, c.greater)},
		})
	}
	judge(t, "scale-down-order", []tale{
		{name: "equals", want: Pass, tell: deletesFirst(usual, usual)},
		{name: "ages of one class (trap 20)", want: Pass, tell: deletesFirst(usual, recent)},
		{name: "an order that depends on the sort", want: Pass, tell: func(s *story) {
			rs := told(s, 3)
			pods := s.podsLooking(rs, usual, restarted, recent)
			s.deliver(s.scale("web", 2))
			s.delete(pods[0]).answered(200)
			s.wait(3 * time.Second)
		}},
		{name: "a Deployment's: its nodes come before ages (trap 20)", want: Pass, tell: func(s *story) {
			s.deployment("web", 2, nil)
			rs := s.set("web", "v1", 2, 2)
			old := s.look(s.podOf(rs, "Running"), usual)
			s.deliver(old, s.look(s.podOf(rs, "Running"), fresh))
			s.wait(3 * time.Second)
			s.deliver(s.scale(rs.Name, 1))
			s.delete(old).answered(200)
			s.wait(3 * time.Second)
		}},
		{name: "not ready only of late", want: Pass, tell: func(s *story) {
			rs := told(s, 2)
			pods := s.podsLooking(rs, usual, usual)
			s.deliver(s.scale("web", 1), s.look(pods[1], unready))
			s.delete(pods[0]).answered(200)
			s.wait(3 * time.Second)
		}},
		{name: "not ready for long", want: Fail, says: "is not ready", tell: func(s *story) {
			rs := told(s, 2)
			pods := s.podsLooking(rs, usual, usual)
			s.deliver(s.look(pods[1], unready))
			s.wait(5 * time.Second)
			s.deliver(s.scale("web", 1))
			s.delete(pods[0]).answered(200)
			s.wait(3 * time.Second)
		}},
		{name: "another's pod is nothing to it", want: Pass, tell: func(s *story) {
			rs := told(s, 2)
			pods := s.podsLooking(rs, usual, usual)
			s.deliver(s.look(s.pod(foreign(), "web"), unready))
			s.wait(5 * time.Second)
			s.deliver(s.scale("web", 1))
			s.delete(pods[0]).answered(200)
			s.wait(3 * time.Second)
		}},
		{name: "a batch in any order", want: Pass, tell: func(s *story) {
			rs := told(s, 3)
			pods := s.podsLooking(rs, usual, unready, usual)
			s.deliver(s.scale("web", 1))
			s.delete(pods[0]).answered(200)
			s.deliver(s.terminate(pods[0]))
			s.delete(pods[1]).answered(200)
			s.wait(3 * time.Second)
		}},
		{name: "the machine stands still in the middle of a batch", want: legal, tell: func(s *story) {
			rs := told(s, 5)
			pods := s.podsLooking(rs, unready, pending, usual, usual, usual)
			s.deliver(s.scale("web", 3))
			s.delete(pods[0]).answered(200)
			s.wait(3 * time.Second)
			s.delete(pods[1]).answered(200)
			s.wait(3 * time.Second)
		}},
		{name: "a delete of a batch never comes as far as the proxy", want: legal, tell: func(s *story) {
			rs := told(s, 5)
			pods := s.podsLooking(rs, unready, pending, usual, usual, usual)
			s.deliver(s.scale("web", 3))
			s.delete(pods[0]).answered(200)
			s.writeStatus(rs).answered(200)
			s.deliver(s.terminate(pods[0]))
			s.delete(pods[1]).answered(200)
			s.wait(3 * time.Second)
		}},
		{name: "a second scale-down is a second choice", want: Fail, says: "is not ready", tell: func(s *story) {
			rs := told(s, 4)
			pods := s.podsLooking(rs, usual, unready, usual, usual)
			s.deliver(s.scale("web", 3))
			s.delete(pods[0]).answered(200)
			s.deliver(s.terminate(pods[0]))
			s.writeStatus(rs).answered(200)
			s.deliver(s.scale("web", 2))
			s.delete(pods[1]).answered(200)
			s.wait(3 * time.Second)
		}},
		{name: "killed before it deleted the other", want: legal, tell: func(s *story) {
			rs := told(s, 3)
			pods := s.podsLooking(rs, usual, unready, usual)
			s.deliver(s.scale("web", 1))
			s.delete(pods[0])
			s.life(history.ProcessStopped)
			s.restart(s.subject)
			s.delete(pods[1]).answered(200)
			s.wait(3 * time.Second)
		}},
		{name: "the history ends while it may not be done", want: legal, tell: func(s *story) {
			rs := told(s, 2)
			pods := s.podsLooking(rs, usual, unready)
			s.deliver(s.scale("web", 1))
			s.delete(pods[0]).answered(200)
		}},
	})
}
