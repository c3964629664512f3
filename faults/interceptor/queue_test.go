package interceptor

import (
	"context"
	"errors"
	"testing"
)

// TestQueueIsBounded checks that push waits while the queue is full. An empty queue must
// accept an event of any size.
func TestQueueIsBounded(t *testing.T) {
	q := newQueue(10)
	big, small := &event{raw: make([]byte, 20)}, &event{raw: make([]byte, 1)}
	if err := q.push(t.Context(), big); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := q.push(ended, small); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want a full queue to wait", err)
	}
	pushed := make(chan error, 1)
	go func() { pushed <- q.push(t.Context(), small) }()
	for _, want := range []*event{big, small} {
		if got, err := q.pop(t.Context()); got != want || err != nil {
			t.Errorf("popped %v, error %v; want the events in order", got, err)
		}
	}
	if err := <-pushed; err != nil {
		t.Error(err)
	}
}
