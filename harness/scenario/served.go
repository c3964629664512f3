package scenario

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
)

// service has the selector and the ports of a Service after some steps. It is nil if a patch may have changed
// the Service.
type service struct {
	selector map[string]string
	ports    []Port
}

// served reports an error for each await until a Service is served, if the Service never has addresses. There is none
// about a Service that another user may change.
func (v *validator) served() {
	edited := v.scenario.editedServices()
	services := map[string]*service{}
	for i := range v.scenario.Workload {
		step := &v.scenario.Workload[i]
		switch op := step.Operation.(type) {
		case *Create:
			if op.Kind == Service {
				services[op.Name] = &service{op.Selector, op.Ports}
			}
			if op.Kind == Endpoints {
				delete(services, op.Name) // a later step may patch the addresses
			}
		case *Select:
			if known := services[op.Name]; op.Kind == Service && known != nil {
				known.selector = op.Selector
			}
		case *Publish:
			if known := services[op.Name]; known != nil && op.Ports != nil {
				known.ports = op.Ports
			}
		case *Patch:
			if op.Kind == Service || op.Kind == Endpoints {
				delete(services, op.Name) // the patch may set the selector or the addresses
			}
		}
		await := step.Await
		if await == nil || await.Kind != Service || await.Until != Served || edited[await.Name] {
			continue
		}
		pods := v.scenario.podLabels(v.scenario.Workload[:i+1])
		reason := services[await.Name].unserved(pods)
		v.check(reason == "", stepPath(i)+".await.until", "found served, but Service %s %s", await.Name, reason)
	}
}

// unserved returns a text that says why a Service never has addresses of pods. It returns "" if it may have some.
func (s *service) unserved(pods podLabels) string {
	if s == nil {
		return ""
	}
	if len(s.selector) == 0 {
		return "has no selector, so it never has addresses; expected a selector in the step that creates it, such as selector: {app: web}"
	}
	if unmet := pods.unmet(labels.SelectorFromSet(s.selector)); unmet != "" {
		return "never has addresses, because " + unmet
	}
	if len(s.ports) == 0 || !pods.known {
		return ""
	}
	for _, port := range s.ports {
		if port.TargetPort == nil || port.TargetPort.text == "" {
			return ""
		}
		if any, known := pods.ports[port.TargetPort.text]; known && (any || port.Protocol == TCP) {
			return ""
		}
	}
	missing := s.ports[0].TargetPort.text
	if _, known := pods.ports[missing]; known {
		return fmt.Sprintf("never has addresses, because the port %s of the pods is not a %s port; expected the protocol TCP, or a number as the targetPort", missing, s.ports[0].Protocol)
	}
	return fmt.Sprintf("never has addresses, because no pod of the workload has a %s port with the name %s; expected the targetPort %s", s.ports[0].Protocol, missing, expectedNames(missing, sortedKeys(pods.ports)))
}
