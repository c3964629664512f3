package watches

import "context"

// registration ends a fault of watches: it makes the interceptor stop calling the fault's method
// match. The faults embed it.
type registration struct {
	remove func() // makes the proxy stop calling match; nil before Inject
}

// Heal ends the fault: the proxy stops calling match.
func (r *registration) Heal(context.Context) error {
	if r.remove != nil {
		r.remove()
	}
	return nil
}
