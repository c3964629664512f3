package manager

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
)

// announcer sends events to the API server, those of each component by themselves:
// an event whose connection breaks is tried again after up to ten seconds, and those
// behind it wait.
type announcer struct {
	// broadcaster begins to send what its recorders are given.
	broadcaster func() record.EventBroadcaster

	mu           sync.Mutex
	broadcasters map[string]record.EventBroadcaster // by component
}

func newAnnouncer(ctx context.Context, sink record.EventSink) *announcer {
	return &announcer{
		broadcaster: func() record.EventBroadcaster {
			b := record.NewBroadcaster(record.WithContext(ctx))
			b.StartStructuredLogging(3)
			b.StartRecordingToSink(sink)
			return b
		},
		broadcasters: map[string]record.EventBroadcaster{},
	}
}

// recorder takes the events of a component.
func (a *announcer) recorder(component string) record.EventRecorder {
	a.mu.Lock()
	defer a.mu.Unlock()
	broadcaster, ok := a.broadcasters[component]
	if !ok {
		broadcaster = a.broadcaster()
		a.broadcasters[component] = broadcaster
	}
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component})
}

// stop takes no more events, and forgets those that have not been sent.
func (a *announcer) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, broadcaster := range a.broadcasters {
		broadcaster.Shutdown()
	}
}
