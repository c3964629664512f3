package check

import "k8s.io/apimachinery/pkg/types"

func (state *objectSet) serviceNamed(name objectName) *service {
	return state.services[state.uidByName[name]]
}

// endpointsNamed returns the Endpoints of a Service.
func (state *objectSet) endpointsNamed(service objectName) *endpoints {
	return state.endpoints[state.uidByName[objectName{endpointsResource, service.namespace, service.name}]]
}

func (state *objectSet) setService(s *service) {
	state.services[s.UID] = s
	state.uidByName[nameOf(s.Ref)] = s.UID
	delete(state.deletedServices, nameOf(s.Ref))
	state.markServiceChanged(nameOf(s.Ref), true)
}

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

func (state *objectSet) setEndpoints(e *endpoints) {
	state.endpoints[e.UID] = e
	state.uidByName[nameOf(e.Ref)] = e.UID
	state.markServiceChanged(serviceName(e.Ref), false)
}

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

// markServicesOf marks the Services whose selector matches the old or the new version of
// a pod as changed.
func (state *objectSet) markServicesOf(old, now *pod) {
	for _, s := range state.services {
		if s.Namespace != now.Namespace {
			continue
		}
		if s.selector.Matches(now.labels) || old != nil && s.selector.Matches(old.labels) {
			state.markServiceChanged(nameOf(s.Ref), false)
		}
	}
}

func (state *objectSet) markServiceChanged(service objectName, objectChanged bool) {
	change := state.changedServices[service]
	change.objectChanged = change.objectChanged || objectChanged
	state.changedServices[service] = change
}
