package workloop

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// EventHandler is an informer event handler, together with the informer to which it will be
// added.
type EventHandler struct {
	// Resource is the plural name of the resource, such as "pods", for error messages.
	Resource string
	// Informer is the shared informer of the resource.
	Informer cache.SharedIndexInformer
	// Handler receives the add, update and delete events of the informer.
	Handler cache.ResourceEventHandler
}

// AddEventHandlers adds each handler to its informer. It returns one function for each handler.
// The function reports whether the handler has received the initial list. Pass these functions
// to Loop.Run, which starts no sync until all of them return true.
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
