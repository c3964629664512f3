package manager

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
)

// eventBroadcasters sends events to the API server, with one broadcaster for each component.
//
// After a failed connection, a broadcaster waits up to ten seconds before it retries an event,
// and delays all later events. With separate broadcasters, this delays only the events of one
// component.
type eventBroadcasters struct {
	// newBroadcaster returns a broadcaster that already sends events to the API server.
	newBroadcaster func() record.EventBroadcaster

	mu          sync.Mutex
	byComponent map[string]record.EventBroadcaster // key: name of the component
}

// newEventBroadcasters returns broadcasters that send events to sink. They stop when ctx
// ends.
func newEventBroadcasters(ctx context.Context, sink record.EventSink) *eventBroadcasters {
	return &eventBroadcasters{
		newBroadcaster: func() record.EventBroadcaster {
			b := record.NewBroadcaster(record.WithContext(ctx))
			b.StartStructuredLogging(3)
			b.StartRecordingToSink(sink)
			return b
		},
		byComponent: map[string]record.EventBroadcaster{},
	}
}

// recorder returns an event recorder whose events have the given source component.
func (a *eventBroadcasters) recorder(component string) record.EventRecorder {
	a.mu.Lock()
	defer a.mu.Unlock()
	broadcaster, ok := a.byComponent[component]
	if !ok {
		broadcaster = a.newBroadcaster()
		a.byComponent[component] = broadcaster
	}
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component})
}

// stop stops all broadcasters. Events that are not sent yet are lost.
func (a *eventBroadcasters) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, broadcaster := range a.byComponent {
		broadcaster.Shutdown()
	}
}
