package workloop

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// EventHandler is a resource whose events a controller handles.
type EventHandler struct {
	// Resource names it in errors, by its plural.
	Resource string
	// Informer is the shared informer of its objects.
	Informer cache.SharedIndexInformer
	// Handler is what the controller does about them.
	Handler cache.ResourceEventHandler
}

// AddEventHandlers puts each handler on its informer. What it returns reports, for each,
// whether the handler has seen the whole of the first list: Run waits for these.
func AddEventHandlers(sources ...EventHandler) ([]cache.InformerSynced, error) {
	synced := make([]cache.InformerSynced, len(sources))
	for i, source := range sources {
		registration, err := source.Informer.AddEventHandler(source.Handler)
		if err != nil {
			return nil, fmt.Errorf("handling events of %s: %w", source.Resource, err)
		}
		synced[i] = registration.HasSynced
	}
	return synced, nil
}
