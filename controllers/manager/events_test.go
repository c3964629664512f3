package manager

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// stuckSink hands on events, but those of one component it holds until it is let go.
type stuckSink struct {
	record.EventSink
	stuck string
	letGo chan struct{}
	sent  chan string // the components whose events came through
}

func (s *stuckSink) Create(e *corev1.Event) (*corev1.Event, error) {
	if e.Source.Component == s.stuck {
		<-s.letGo
	}
	s.sent <- e.Source.Component
	return e, nil
}

// TestEventsWaitForNoOther: a component's event that cannot be sent holds up none of
// another's.
func TestEventsWaitForNoOther(t *testing.T) {
	sink := &stuckSink{stuck: "first", letGo: make(chan struct{}), sent: make(chan string, 2)}
	a := newEventBroadcasters(t.Context(), sink)
	defer a.stop()
	for _, component := range []string{"first", "second"} {
		a.recorder(component).Event(&corev1.Pod{}, corev1.EventTypeNormal, "Reason", "message")
	}
	select {
	case got := <-sink.sent:
		if got != "second" {
			t.Errorf("an event of %s was sent; want that of the second component, past the first", got)
		}
	case <-time.After(time.Minute):
		t.Error("no event was sent; want that of the second component, past the first")
	}
	close(sink.letGo)
	if got := <-sink.sent; got != "first" {
		t.Errorf("an event of %s was sent; want that of the first component", got)
	}
}

// TestRecordersOfOneComponent share what gathers events that are alike.
func TestRecordersOfOneComponent(t *testing.T) {
	a := newEventBroadcasters(t.Context(), &stuckSink{})
	defer a.stop()
	a.recorder("one")
	a.recorder("one")
	if n := len(a.byComponent); n != 1 {
		t.Errorf("%d broadcasters of one component; want 1", n)
	}
}
