package check

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// serviceNamed returns the Service with the given name, or nil if the set does not contain
// it.
func (state *objectSet) serviceNamed(name objectName) *objects.Service {
	return state.services[state.uidByName[name]]
}

// endpointsNamed returns the Endpoints of the Service with the given name, or nil if the set
// does not contain them.
func (state *objectSet) endpointsNamed(service objectName) *objects.Endpoints {
	return state.endpoints[state.uidByName[objectName{objects.EndpointsResource, service.namespace, service.name}]]
}

// setService adds a Service to the set, or replaces the Service's former version.
func (state *objectSet) setService(s *objects.Service) {
	state.services[s.UID] = s
	state.uidByName[nameOf(s.Ref)] = s.UID
	delete(state.deletedServices, nameOf(s.Ref))
	state.markServiceChanged(nameOf(s.Ref), true)
}

// removeService removes a Service from the set. If the Endpoints of the Service still exist, it
// adds the name of the Service to deletedServices.
func (state *objectSet) removeService(uid types.UID) {
	s := state.services[uid]
	if s == nil {
		return
	}
	delete(state.services, uid)
	state.removeName(s.Ref)
	if name := nameOf(s.Ref); state.endpointsNamed(name) != nil {
		state.deletedServices[name] = true
	}
	state.markServiceChanged(nameOf(s.Ref), true)
}

// setEndpoints adds an Endpoints object to the set, or replaces its former version.
func (state *objectSet) setEndpoints(e *objects.Endpoints) {
	state.endpoints[e.UID] = e
	state.uidByName[nameOf(e.Ref)] = e.UID
	state.markServiceChanged(serviceName(e.Ref), false)
}

// removeEndpoints removes an Endpoints object from the set. It does nothing if the set does not
// contain the object.
func (state *objectSet) removeEndpoints(uid types.UID) {
	e := state.endpoints[uid]
	if e == nil {
		return
	}
	delete(state.endpoints, uid)
	state.removeName(e.Ref)
	delete(state.deletedServices, serviceName(e.Ref))
	state.markServiceChanged(serviceName(e.Ref), false)
}

// markServicesOf marks every Service whose selector matches the pod's old or new labels as
// changed. The parameter old is nil if the pod is new.
func (state *objectSet) markServicesOf(old, now *objects.Pod) {
	for _, s := range state.services {
		if s.Namespace != now.Namespace {
			continue
		}
		if s.Selector.Matches(now.Labels) || old != nil && s.Selector.Matches(old.Labels) {
			state.markServiceChanged(nameOf(s.Ref), false)
		}
	}
}

// markServiceChanged adds a Service to changedServices. The parameter objectChanged is true if
// the Service itself changed. It is false if only the Service's pods or Endpoints changed.
func (state *objectSet) markServiceChanged(service objectName, objectChanged bool) {
	change := state.changedServices[service]
	change.objectChanged = change.objectChanged || objectChanged
	state.changedServices[service] = change
}

// serviceName returns the name of the Service to which an Endpoints object belongs. Both objects
// have the same namespace and name.
func serviceName(r history.Ref) objectName {
	return objectName{objects.ServiceResource, r.Namespace, r.Name}
}
