package check

import "k8s.io/apimachinery/pkg/types"

func (objects *objectSet) serviceNamed(name objectName) *service {
	return objects.services[objects.uidByName[name]]
}

// endpointsNamed returns the Endpoints of the Service with this name, or nil.
func (objects *objectSet) endpointsNamed(service objectName) *endpoints {
	return objects.endpoints[objects.uidByName[objectName{endpointsResource, service.namespace, service.name}]]
}

func (objects *objectSet) setService(s *service) {
	objects.services[s.UID] = s
	objects.uidByName[nameOf(s.Ref)] = s.UID
	delete(objects.deletedServices, nameOf(s.Ref))
	objects.markServiceChanged(nameOf(s.Ref), true)
}

func (objects *objectSet) removeService(uid types.UID) {
	s := objects.services[uid]
	if s == nil {
		return
	}
	delete(objects.services, uid)
	objects.removeName(s.Ref)
	if name := nameOf(s.Ref); objects.endpointsNamed(name) != nil {
		objects.deletedServices[name] = true
	}
	objects.markServiceChanged(nameOf(s.Ref), true)
}

func (objects *objectSet) setEndpoints(e *endpoints) {
	objects.endpoints[e.UID] = e
	objects.uidByName[nameOf(e.Ref)] = e.UID
	objects.markServiceChanged(serviceName(e.Ref), false)
}

func (objects *objectSet) removeEndpoints(uid types.UID) {
	e := objects.endpoints[uid]
	if e == nil {
		return
	}
	delete(objects.endpoints, uid)
	objects.removeName(e.Ref)
	delete(objects.deletedServices, serviceName(e.Ref))
	objects.markServiceChanged(serviceName(e.Ref), false)
}

// markServicesOf marks the Services whose selector matches the old or the new version of
// a pod as changed.
func (objects *objectSet) markServicesOf(old, now *pod) {
	for _, s := range objects.services {
		if s.Namespace != now.Namespace {
			continue
		}
		if s.selector.Matches(now.labels) || old != nil && s.selector.Matches(old.labels) {
			objects.markServiceChanged(nameOf(s.Ref), false)
		}
	}
}

func (objects *objectSet) markServiceChanged(service objectName, objectChanged bool) {
	change := objects.changedServices[service]
	change.objectChanged = change.objectChanged || objectChanged
	objects.changedServices[service] = change
}
