package faults

import "context"

// Registration ends a fault that acts on requests or watch events. Such a fault embeds a
// Registration. The interceptor calls the fault's method match for each request or event until
// Heal.
type Registration struct {
	// Remove ends the interceptor's calls of the method match. The interceptor returned Remove
	// when the fault registered match. Remove is nil before Inject.
	Remove func()
}

// Heal ends the fault. The interceptor no longer calls the fault's method match.
func (r *Registration) Heal(context.Context) error {
	if r.Remove != nil {
		r.Remove()
	}
	return nil
}
