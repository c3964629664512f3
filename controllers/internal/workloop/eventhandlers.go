package workloop

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// EventHandler is an event handler, with the informer to which it is added.
type EventHandler struct {
	// Resource is the plural name of the resource. Errors contain it.
	Resource string
	// Informer is the shared informer of the resource.
	Informer cache.SharedIndexInformer
	// Handler receives the events of the informer.
	Handler cache.ResourceEventHandler
}

// AddEventHandlers adds each handler to its informer. For each handler it returns a function,
// which reports whether the handler has received the initial list. Loop.Run starts no sync
// before all these functions return true.
func AddEventHandlers(handlers ...EventHandler) ([]cache.InformerSynced, error) {
	synced := make([]cache.InformerSynced, len(handlers))
	for i, h := range handlers {
		registration, err := h.Informer.AddEventHandler(h.Handler)
		if err != nil {
			return nil, fmt.Errorf("adding the event handler for %s: %w", h.Resource, err)
		}
		synced[i] = registration.HasSynced
	}
	return synced, nil
}
