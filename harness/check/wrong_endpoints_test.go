package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestWrongEndpoints: only the time counts during which Endpoints are not what the
// truth asks for, and once, however many are wrong at the time.
func TestWrongEndpoints(t *testing.T) {
	const one, two = "10.1.0.1", "10.1.0.2"
	for _, test := range []struct {
		name string
		tell func(s *story)
		want time.Duration
	}{
		{"no Service", func(s *story) {
			s.reached(s.pod(nil, "web"), one, true, nil)
			s.wait(time.Minute)
		}, 0},
		{"a Service without a selector", func(s *story) {
			s.service("web", fields{"selector": nil})
			s.wait(time.Minute)
		}, 0},
		{"from the Service to its Endpoints", func(s *story) {
			s.service("web", nil)
			s.wait(3 * time.Second)
			s.endpoints("web")
			s.wait(time.Minute)
		}, 3 * time.Second},
		{"from a pod that is ready to its address, and back", func(s *story) {
			s.service("web", nil)
			s.endpoints("web")
			p := s.reached(s.pod(nil, "web"), one, true, nil)
			s.wait(2 * time.Second)
			s.endpoints("web", subset([]any{at(p, one)}, nil))
			s.wait(time.Minute)
			s.reached(p, one, false, nil)
			s.wait(5 * time.Second)
			s.endpoints("web", subset(nil, []any{at(p, one)}))
			s.wait(time.Minute)
		}, 7 * time.Second},
		{"two Services at the same time", func(s *story) {
			s.service("web", nil)
			s.endpoints("web")
			s.service("also", fields{"selector": fields{"app": "web"}})
			s.endpoints("also")
			p := s.reached(s.pod(nil, "web"), two, true, nil)
			s.wait(2 * time.Second)
			s.endpoints("web", subset([]any{at(p, two)}, nil))
			s.wait(2 * time.Second)
			s.endpoints("also", subset([]any{at(p, two)}, nil))
			s.wait(time.Minute)
		}, 4 * time.Second},
		{"until the Service is gone", func(s *story) {
			service := s.service("web", nil)
			s.wait(2 * time.Second)
			s.remove(service)
			s.wait(time.Minute)
		}, 2 * time.Second},
		{"not after observation has ended", func(s *story) {
			s.service("web", nil)
			s.wait(2 * time.Second)
			s.phase(history.PhaseEnd)
			s.wait(time.Minute)
			s.endpoints("web")
		}, 2 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStory()
			test.tell(s)
			s.phase(history.PhaseSettle) // so that the last wait is between two records
			wrong := NewWrongEndpoints()
			for _, r := range s.records {
				if err := wrong.Observe(r); err != nil {
					t.Fatal(err)
				}
			}
			// Each record of a story takes a millisecond.
			if got := wrong.Total().Truncate(time.Second); got != test.want {
				t.Errorf("wrong for %v; want %v", wrong.Total(), test.want)
			}
		})
	}
}

func TestWrongEndpointsOfBrokenHistory(t *testing.T) {
	broken := &history.Record{Seq: 7, Commit: &history.Commit{Type: history.Added, Object: history.Object{
		Ref: history.Ref{Resource: serviceResource, Name: "web", UID: "u"}, Body: []byte(`{"spec":7}`),
	}}}
	if err := NewWrongEndpoints().Observe(broken); err == nil {
		t.Error("no error of a Service that none can be")
	}
}
