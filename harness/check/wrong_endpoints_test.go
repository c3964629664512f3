package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// TestWrongEndpoints requires that Total measures for how long any Endpoints were wrong. Time in
// which several Endpoints are wrong must count once.
func TestWrongEndpoints(t *testing.T) {
	const one, two = "10.1.0.1", "10.1.0.2"
	for _, test := range []struct {
		name  string
		build func(h *historyBuilder)
		want  time.Duration
	}{
		{"no Service", func(h *historyBuilder) {
			h.podWithAddress(h.pod(nil, "web"), one, true, nil)
			h.wait(time.Minute)
		}, 0},
		{"a Service without a selector", func(h *historyBuilder) {
			h.service("web", fields{"selector": nil})
			h.wait(time.Minute)
		}, 0},
		{"from the creation of a Service to that of its Endpoints", func(h *historyBuilder) {
			h.service("web", nil)
			h.wait(3 * time.Second)
			h.endpoints("web")
			h.wait(time.Minute)
		}, 3 * time.Second},
		{"from a change of readiness to the update of the Endpoints", func(h *historyBuilder) {
			h.service("web", nil)
			h.endpoints("web")
			p := h.podWithAddress(h.pod(nil, "web"), one, true, nil)
			h.wait(2 * time.Second)
			h.endpoints("web", subset([]any{at(p, one)}, nil))
			h.wait(time.Minute)
			h.podWithAddress(p, one, false, nil)
			h.wait(5 * time.Second)
			h.endpoints("web", subset(nil, []any{at(p, one)}))
			h.wait(time.Minute)
		}, 7 * time.Second},
		{"two Services with wrong Endpoints at the same time", func(h *historyBuilder) {
			h.service("web", nil)
			h.endpoints("web")
			h.service("other", fields{"selector": fields{"app": "web"}})
			h.endpoints("other")
			p := h.podWithAddress(h.pod(nil, "web"), two, true, nil)
			h.wait(2 * time.Second)
			h.endpoints("web", subset([]any{at(p, two)}, nil))
			h.wait(2 * time.Second)
			h.endpoints("other", subset([]any{at(p, two)}, nil))
			h.wait(time.Minute)
		}, 4 * time.Second},
		{"until the Service is deleted", func(h *historyBuilder) {
			service := h.service("web", nil)
			h.wait(2 * time.Second)
			h.remove(service)
			h.wait(time.Minute)
		}, 2 * time.Second},
		{"not after the end of the run", func(h *historyBuilder) {
			h.service("web", nil)
			h.wait(2 * time.Second)
			h.phase(history.PhaseEnd)
			h.wait(time.Minute)
			h.endpoints("web")
		}, 2 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHistoryBuilder()
			test.build(h)
			h.phase(history.PhaseSettle) // so that the last wait is between two records
			wrong := NewWrongEndpoints()
			for _, r := range h.records {
				if err := wrong.Observe(r); err != nil {
					t.Fatal(err)
				}
			}
			// Each record of a history takes a millisecond.
			if got := wrong.Total().Truncate(time.Second); got != test.want {
				t.Errorf("wrong for %v, want %v", wrong.Total(), test.want)
			}
		})
	}
}

func TestWrongEndpointsOfBrokenHistory(t *testing.T) {
	broken := &history.Record{Seq: 7, Commit: &history.Commit{Type: history.Added, Object: history.Object{
		Ref: history.Ref{Resource: objects.ServiceResource, Name: "web", UID: "u"}, Body: []byte(`{"spec":7}`),
	}}}
	if err := NewWrongEndpoints().Observe(broken); err == nil {
		t.Error("got no error for an invalid Service")
	}
}
