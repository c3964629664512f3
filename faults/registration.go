package faults

import "context"

// Registration implements Heal for a fault that acts on requests or watch events. Such a fault
// embeds a Registration. The fault's Inject method registers the fault's method match with the
// interceptor. It stores in Remove the function with which Heal ends this registration.
type Registration struct {
	// Remove unregisters the method match, so that the interceptor no longer calls it. Remove is
	// nil before Inject.
	Remove func()
}

// Heal unregisters the fault's method match, so that no further request or event is affected.
func (r *Registration) Heal(context.Context) error {
	if r.Remove != nil {
		r.Remove()
	}
	return nil
}
