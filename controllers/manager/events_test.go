package manager

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// blockingSink is an event sink. It blocks the events of one component until a test closes the
// channel unblock.
type blockingSink struct {
	record.EventSink
	blockedComponent string
	unblock          chan struct{}
	sent             chan string // receives the component of each event that was sent
}

func (s *blockingSink) Create(e *corev1.Event) (*corev1.Event, error) {
	if e.Source.Component == s.blockedComponent {
		<-s.unblock
	}
	s.sent <- e.Source.Component
	return e, nil
}

// TestEventsOfOneComponentDoNotDelayAnother checks that a blocked event delays only events of
// the same component.
func TestEventsOfOneComponentDoNotDelayAnother(t *testing.T) {
	sink := &blockingSink{blockedComponent: "first", unblock: make(chan struct{}), sent: make(chan string, 2)}
	a := newEventBroadcasters(t.Context(), sink)
	defer a.stop()
	for _, component := range []string{"first", "second"} {
		a.recorder(component).Event(&corev1.Pod{}, corev1.EventTypeNormal, "Reason", "message")
	}
	select {
	case got := <-sink.sent:
		if got != "second" {
			t.Errorf("sent an event of %s, want one of the second component", got)
		}
	case <-time.After(time.Minute):
		t.Error("sent no event, want one of the second component")
	}
	close(sink.unblock)
	if got := <-sink.sent; got != "first" {
		t.Errorf("sent an event of %s, want one of the first component", got)
	}
}

// TestRecordersShareBroadcaster checks that all recorders of one component use the same
// broadcaster. The broadcaster aggregates similar events.
func TestRecordersShareBroadcaster(t *testing.T) {
	a := newEventBroadcasters(t.Context(), &blockingSink{})
	defer a.stop()
	a.recorder("one")
	a.recorder("one")
	if n := len(a.byComponent); n != 1 {
		t.Errorf("%d broadcasters for one component, want 1", n)
	}
}
