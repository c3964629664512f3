package manager

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
)

// eventBroadcasters sends events to the API server, those of each component by themselves:
// an event whose connection breaks is tried again after up to ten seconds, and those
// behind it wait.
type eventBroadcasters struct {
	// newBroadcaster begins to send what its recorders are given.
	newBroadcaster func() record.EventBroadcaster

	mu          sync.Mutex
	byComponent map[string]record.EventBroadcaster // by component
}

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

// recorder takes the events of a component.
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

// stop takes no more events, and forgets those that have not been sent.
func (a *eventBroadcasters) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, broadcaster := range a.byComponent {
		broadcaster.Shutdown()
	}
}
