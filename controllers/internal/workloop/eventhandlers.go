package workloop

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// EventHandler is an event handler and the informer that it belongs to.
type EventHandler struct {
	// Resource is the plural name of the resource, for errors.
	Resource string
	// Informer is the shared informer of the resource.
	Informer cache.SharedIndexInformer
	// Handler handles the informer's events.
	Handler cache.ResourceEventHandler
}

// AddEventHandlers adds each handler to its informer. It returns one function per
// handler, which reports whether the handler has received the initial list. The caller
// passes these functions to Loop.Run, so that no sync starts earlier.
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
