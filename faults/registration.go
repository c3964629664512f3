package faults

import "context"

// Registration ends a fault that acts on requests or watch events. The interceptor calls a method
// of the fault, match, for each of them; Heal ends these calls. Such faults embed a Registration.
type Registration struct {
	// Remove is the function that the interceptor returned for the method match. It is nil before
	// Inject.
	Remove func()
}

// Heal ends the fault: the interceptor stops calling the method match.
func (r *Registration) Heal(context.Context) error {
	if r.Remove != nil {
		r.Remove()
	}
	return nil
}
