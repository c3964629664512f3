package check

import (
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

const (
	serviceResource   = "services"
	endpointsResource = "endpoints"
	// leaderAnnotation marks Endpoints that are a leader-election record. Such Endpoints
	// belong to no Service, and controllers must not change them.
	leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"
	// overCapacityAnnotation says that the Endpoints were truncated to addressesMax.
	overCapacityAnnotation = "endpoints.kubernetes.io/over-capacity"
	managedByLabel         = "endpoints.kubernetes.io/managed-by"
	managedBy              = "endpoint-controller"
	headlessLabel          = "service.kubernetes.io/headless"
)

// service contains the fields of one version of a Service that checkers read. It is
// immutable.
type service struct {
	history.Ref
	labels      labels.Set
	terminating bool
	spec        corev1.ServiceSpec
	selector    labels.Selector // matches nothing if the Service has no selector
}

// managed reports whether the controller manages Endpoints for the Service. It ignores
// the Endpoints of any other Service.
func (s *service) managed() bool {
	return len(s.spec.Selector) > 0 && s.spec.Type != corev1.ServiceTypeExternalName
}

// headless reports whether the Service has no cluster IP.
func (s *service) headless() bool {
	return s.spec.ClusterIP == corev1.ClusterIPNone || s.spec.ClusterIP == ""
}

// String returns the Service as evidence names it.
func (s *service) String() string { return "Service " + s.Namespace + "/" + s.Name }

func decodeService(o *history.Object) (*service, error) {
	var body struct{ Spec corev1.ServiceSpec }
	if err := unmarshalSome(o.Body, &body); err != nil {
		return nil, err
	}
	s := &service{
		Ref:         o.Ref,
		labels:      maps.Clone(o.Labels),
		terminating: o.Terminating(),
		spec:        body.Spec,
		selector:    labels.Nothing(),
	}
	if s.managed() {
		s.selector = labels.Set(s.spec.Selector).AsSelectorPreValidated()
	}
	return s, nil
}

// endpoints is one version of an Endpoints object. It is immutable. Its addresses are
// decoded only when needed, because most versions are soon replaced.
type endpoints struct {
	history.Ref
	labels         labels.Set
	terminating    bool
	leaderElection bool // a leader-election record
	overCapacity   string
	body           json.RawMessage
}

// String returns the Endpoints as evidence names them.
func (e *endpoints) String() string { return "Endpoints " + e.Namespace + "/" + e.Name }

func newEndpoints(o *history.Object) *endpoints {
	_, record := o.Annotations[leaderAnnotation]
	return &endpoints{
		Ref:            o.Ref,
		labels:         maps.Clone(o.Labels),
		terminating:    o.Terminating(),
		leaderElection: record,
		overCapacity:   o.Annotations[overCapacityAnnotation],
		body:           o.Body,
	}
}

// serviceName returns the name of the Service to which Endpoints belong.
func serviceName(r history.Ref) objectName { return objectName{serviceResource, r.Namespace, r.Name} }
