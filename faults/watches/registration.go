package watches

import "context"

// registration is the part of a fault that registers its method match at the interceptor.
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
