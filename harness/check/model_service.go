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
	// leaderAnnotation marks Endpoints that are a leader election's record. They
	// belong to no Service and are nobody else's to touch.
	leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"
	// overCapacityAnnotation says that there were more addresses than Endpoints hold.
	overCapacityAnnotation = "endpoints.kubernetes.io/over-capacity"
	managedByLabel         = "endpoints.kubernetes.io/managed-by"
	managedBy              = "endpoint-controller"
	headlessLabel          = "service.kubernetes.io/headless"
)

// service is what the checks need of one version of a Service. It never changes.
type service struct {
	history.Ref
	labels      labels.Set
	terminating bool
	spec        corev1.ServiceSpec
	selector    labels.Selector // matches nothing where the Service selects nothing
}

// managed reports whether the controller is to keep Endpoints for the Service;
// of any other Service it leaves them alone.
func (s *service) managed() bool {
	return len(s.spec.Selector) > 0 && s.spec.Type != corev1.ServiceTypeExternalName
}

// headless reports whether the Service has no IP of its own.
func (s *service) headless() bool {
	return s.spec.ClusterIP == corev1.ClusterIPNone || s.spec.ClusterIP == ""
}

// String is how evidence names the Service.
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

// endpoints is one version of an Endpoints. It never changes. What it lists is
// read only when it is looked at: most versions are soon replaced.
type endpoints struct {
	history.Ref
	labels         labels.Set
	terminating    bool
	leaderElection bool // a leader election's
	overCapacity   string
	body           json.RawMessage
}

// String is how evidence names the Endpoints.
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

// serviceName is the name of the Service that Endpoints belong to by theirs.
func serviceName(r history.Ref) objectName { return objectName{serviceResource, r.Namespace, r.Name} }
