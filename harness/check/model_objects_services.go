package check

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

func (state *objectSet) serviceNamed(name objectName) *objects.Service {
	return state.services[state.uidByName[name]]
}

// endpointsNamed returns the Endpoints of the Service with this name, or nil.
func (state *objectSet) endpointsNamed(service objectName) *objects.Endpoints {
	return state.endpoints[state.uidByName[objectName{objects.EndpointsResource, service.namespace, service.name}]]
}

func (state *objectSet) setService(s *objects.Service) {
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

func (state *objectSet) setEndpoints(e *objects.Endpoints) {
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

func (state *objectSet) markServiceChanged(service objectName, objectChanged bool) {
	change := state.changedServices[service]
	change.objectChanged = change.objectChanged || objectChanged
	state.changedServices[service] = change
}

// serviceName returns the name of the Service to which Endpoints belong.
func serviceName(r history.Ref) objectName {
	return objectName{objects.ServiceResource, r.Namespace, r.Name}
}
