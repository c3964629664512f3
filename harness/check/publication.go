package check

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// publication is the account of one process with one name of a Service and of
// its Endpoints: how it may have had the two in mind of late.
type publication struct {
	window
	name      objectName // the Service's
	service   stance
	endpoints stance
}

// stance is how an object of some name stands, and until when it stood in
// other ways.
type stance struct {
	now   standing
	since time.Duration
	until [standings]time.Duration
}

// standing is what an object of some name calls for.
type standing int

const (
	unseen    standing = iota // the process has never had it in view
	absent                    // it has gone from view
	managed                   // a Service of which the controller keeps Endpoints
	unmanaged                 // any other Service
	ordinary                  // Endpoints
	record                    // Endpoints that are a leader election's
	standings
)

// note says how the object stands from now on.
func (s *stance) note(at time.Duration, now standing) {
	if now != s.now {
		s.until[s.now] = at
		s.now, s.since = now, at
	}
}

// was reports whether the object has stood in one of these ways at or after from.
func (s *stance) was(from time.Duration, any ...standing) bool {
	for _, each := range any {
		if s.now == each || s.until[each] > from {
			return true
		}
	}
	return false
}

// look takes in what has become of the Service and its Endpoints in a view.
func (p *publication) look(v *view, at time.Duration) {
	switch s := v.serviceNamed(p.name); {
	case s != nil && s.managed():
		p.service.note(at, managed)
	case s != nil:
		p.service.note(at, unmanaged)
	case p.service.now != unseen:
		p.service.note(at, absent)
	}
	switch e := v.endpointsNamed(p.name); {
	case e != nil && e.record:
		p.endpoints.note(at, record)
	case e != nil:
		p.endpoints.note(at, ordinary)
	case p.endpoints.now != unseen:
		p.endpoints.note(at, absent)
	}
}

// mustBeSpared reports whether there are, or may be, Endpoints by this name that
// are not the controller's.
func (p *publication) mustBeSpared() bool {
	return p.service.now == unmanaged || p.endpoints.now == record && p.service.now != managed
}

// forgotten reports whether neither has been there for so long that no decision
// can depend on it.
func (p *publication) forgotten(at time.Duration) bool {
	gone := func(s *stance) bool { return s.now == unseen || s.now == absent && at-s.since > memory }
	return p.working == 0 && at-p.lastAt > memory && gone(&p.service) && gone(&p.endpoints)
}

// publication returns the account with the name of a Service, opening it if need be.
func (p *process) publication(service objectName) *publication {
	known := p.publications[service]
	if known == nil {
		known = &publication{name: service}
		p.publications[service] = known
	}
	return known
}

// scan takes down what the process finds at its start: Endpoints without a
// Service, as soon as it has been told of all there is.
func (p *process) scan() {
	if p.leftovers != nil || p.view.reached[serviceResource] == 0 || p.view.reached[endpointsResource] == 0 {
		return
	}
	p.leftovers = map[types.UID]bool{}
	for uid, e := range p.view.endpoints {
		if p.view.serviceNamed(serviceName(e.Ref)) == nil {
			p.leftovers[uid] = true
		}
	}
}
