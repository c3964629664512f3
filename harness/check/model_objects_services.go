package check

import "k8s.io/apimachinery/pkg/types"

func (w *world) serviceNamed(name objectName) *service { return w.services[w.names[name]] }

// endpointsNamed returns the Endpoints of a Service.
func (w *world) endpointsNamed(service objectName) *endpoints {
	return w.endpoints[w.names[objectName{endpointsResource, service.namespace, service.name}]]
}

func (w *world) setService(s *service) {
	w.services[s.UID] = s
	w.names[nameOf(s.Ref)] = s.UID
	delete(w.bereft, nameOf(s.Ref))
	w.publish(nameOf(s.Ref), true)
}

func (w *world) removeService(uid types.UID) {
	s := w.services[uid]
	if s == nil {
		return
	}
	delete(w.services, uid)
	w.unname(s.Ref)
	if name := nameOf(s.Ref); w.endpointsNamed(name) != nil {
		w.bereft[name] = true
	}
	w.publish(nameOf(s.Ref), true)
}

func (w *world) setEndpoints(e *endpoints) {
	w.endpoints[e.UID] = e
	w.names[nameOf(e.Ref)] = e.UID
	w.publish(serviceName(e.Ref), false)
}

func (w *world) removeEndpoints(uid types.UID) {
	e := w.endpoints[uid]
	if e == nil {
		return
	}
	delete(w.endpoints, uid)
	w.unname(e.Ref)
	delete(w.bereft, serviceName(e.Ref))
	w.publish(serviceName(e.Ref), false)
}

// touchServices touches the Services that a pod's change concerns.
func (w *world) touchServices(old, now *pod) {
	for _, s := range w.services {
		if s.Namespace != now.Namespace {
			continue
		}
		if s.selector.Matches(now.labels) || old != nil && s.selector.Matches(old.labels) {
			w.publish(nameOf(s.Ref), false)
		}
	}
}

func (w *world) publish(service objectName, itself bool) {
	t := w.published[service]
	t.itself = t.itself || itself
	w.published[service] = t
}
