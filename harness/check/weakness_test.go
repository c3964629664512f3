package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// stuck tells of a rollout from v1 to v2 that has not got beyond its beginning
// within a minute, the only pods being those of a ReplicaSet of that size, which was
// last scaled for so many replicas.
func stuck(s *story, replicas, size, desired int) {
	s.deployment("web", replicas, rollingUpdate(0, 1))
	s.setFor("web", "v1", size, size, desired)
	s.setFor("web", "v2", 0, 0, replicas)
	s.rollTo("web", "v2")
	s.settledStatus(replicas)
}

func TestKnownWeaknesses(t *testing.T) {
	settling := func(tell func(s *story)) func(s *story) {
		return func(s *story) {
			tell(s)
			s.phase(history.PhaseSettle)
			s.wait(time.Minute)
		}
	}
	// unready tells of Endpoints that say for good that their pod is not ready, after
	// a write that ended in some way.
	unready := func(ends func(s *story, a *ask)) func(s *story) {
		return settling(func(s *story) {
			s.service("web", nil)
			pod := s.reached(s.pod(nil, "web"), "10.1.0.1", true, nil)
			s.endpoints("web", subset(nil, []any{at(pod, "10.1.0.1")}))
			s.list(endpointsResource)
			ends(s, s.writeEndpoints("update", "web"))
		})
	}
	for _, c := range []struct {
		name string
		tell func(s *story)
		want *Weakness // nil: it is not known for that
		of   string    // the check
	}{
		{"its only pods are as many as it asks for, by another note", settling(func(s *story) { stuck(s, 4, 4, 5) }), stuckScaling, "rollout-complete"},
		{"its only pods are as many, by the right note", settling(func(s *story) { stuck(s, 4, 4, 4) }), nil, "rollout-complete"},
		{"its only pods are more, by another note", settling(func(s *story) { stuck(s, 4, 5, 5) }), nil, "rollout-complete"},
		{"two have pods, by another note, and it is Recreate by now", settling(func(s *story) {
			s.deployment("web", 8, fields{"type": "Recreate"})
			s.setFor("web", "v1", 5, 5, 5)
			s.setFor("web", "v2", 1, 1, 5)
			s.rollTo("web", "v2")
			s.settledStatus(8)
		}), recreateScaling, "rollout-complete"},
		{"two have pods, by another note, in a rolling update", settling(func(s *story) {
			s.deployment("web", 8, rollingUpdate(1, 0))
			s.setFor("web", "v1", 5, 5, 5)
			s.setFor("web", "v2", 1, 1, 5)
			s.rollTo("web", "v2")
			s.settledStatus(8)
		}), nil, "rollout-complete"},
		{"the last scale-down failed", settling(func(s *story) {
			stuck(s, 5, 5, 5)
			s.resize(s.find("web-v1"), 4).answered(500)
		}), swallowedError, "rollout-complete"},
		{"the last scale-down failed, of the life before", settling(func(s *story) {
			stuck(s, 5, 5, 5)
			s.resize(s.find("web-v1"), 4).answered(500)
			s.restart("subject-0")
		}), nil, "rollout-complete"},
		{"another write came after it", settling(func(s *story) {
			stuck(s, 5, 5, 5)
			s.resize(s.find("web-v1"), 4).answered(500)
			s.renumber(s.find("web-v2"), "2").answered(200)
		}), nil, "rollout-complete"},
		{"the answer to the last write was lost", unready(func(_ *story, a *ask) { a.lost() }), lostEndpoints, "endpoints-exact"},
		{"the last write was refused", unready(func(_ *story, a *ask) { a.answered(500) }), nil, "endpoints-exact"},
		{"another write came after the one that was lost", unready(func(s *story, a *ask) {
			a.lost()
			s.writeEndpoints("update", "web").answered(200)
		}), nil, "endpoints-exact"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory()
			c.tell(s)
			s.end()
			for _, upstream := range []bool{true, false} {
				asked := setting
				asked.Upstream = upstream
				results, _, err := Run(asked, s.all())
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(results, func(r Result) bool { return r.Check == c.of })
				got, want, trap := results[i], Fail, 0
				if c.want != nil {
					trap = c.want.Trap
				}
				if c.want != nil && upstream {
					want = Known
				}
				if got.Verdict != want || len(got.Evidence) == 0 || got.Evidence[0].Weakness != trap {
					t.Errorf("upstream %v: %s with %+v, want %s with the weakness %d", upstream, got.Verdict, got.Evidence, want, trap)
				}
				if c.want != nil && !strings.Contains(got.Reason, c.want.Sentence) {
					t.Errorf("the reason does not tell the weakness: %s", got.Reason)
				}
			}
		})
	}
}

func TestWeaknesses(t *testing.T) {
	for _, w := range Weaknesses {
		if _, ok := Find(w.Check); !ok {
			t.Errorf("%s: there is no check %q", w.Name, w.Check)
		}
	}
}
