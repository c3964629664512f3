package check

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

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
	s := v.serviceNamed(p.name)
	if n := len(p.services); n == 0 || p.services[n-1].value != s {
		p.services = append(recent(p.services, at-memory), shown[*service]{at, s})
	}
	if e := v.endpointsNamed(p.name); e != nil && e.Version > p.version.value {
		p.version = shown[history.Version]{at, e.Version}
	}
	switch {
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

// dates is from when what led to a write of the Endpoints from a version of theirs may
// date. One worker at a time sees to a Service: it begins after the answer to what it
// wrote before, and after it was shown the version, by what it was told until then but
// for the lag; unless it read the version live.
func (p *publication) dates(from history.Version) time.Duration {
	since := max(p.from, p.answered-lag)
	if from != 0 && from == p.version.value && !p.doubted {
		since = max(since, p.version.since-lag)
	}
	return since
}

// send takes in a write that is sent. What the process had decided before it was idle,
// it had done or given up.
func (p *publication) send(of *process, at time.Duration) {
	p.window.send(of, at)
	p.from = max(p.from, of.rousedAt-lag)
}

// settled takes in the answer to a write. What the client repeats by itself was
// decided before.
func (p *publication) settled(r *history.Response, at time.Duration) {
	p.settle(at)
	if !repeats(r) {
		p.answered, p.doubted = at, !r.OK()
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
