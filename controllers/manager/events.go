package manager

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
)

// eventBroadcasters sends events to the API server. Each component, such as a controller, has its
// own broadcaster.
//
// After a failed connection, a broadcaster waits up to ten seconds before it retries an event. All
// its later events wait too. With separate broadcasters, the events of other components do not
// wait.
type eventBroadcasters struct {
	// newBroadcaster creates and starts a broadcaster that sends its events to the API server.
	newBroadcaster func() record.EventBroadcaster

	mu          sync.Mutex
	byComponent map[string]record.EventBroadcaster // the broadcaster of each component, by the component's name
}

// newEventBroadcasters returns an empty set of broadcasters. Each broadcaster sends its events to
// the given sink, and stops when ctx is canceled.
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

// recorder returns an event recorder for one component. The argument component becomes the
// source component of its events.
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

// stop stops all broadcasters. Events that a broadcaster has not sent yet are lost.
func (a *eventBroadcasters) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, broadcaster := range a.byComponent {
		broadcaster.Shutdown()
	}
}
