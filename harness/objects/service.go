package objects

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Service contains the decoded fields of one version of a Service. It is immutable.
type Service struct {
	history.Ref
	Labels      labels.Set
	Terminating bool
	Spec        corev1.ServiceSpec
	Selector    labels.Selector // matches nothing if the Service has no selector
}

// Managed reports whether the controller manages Endpoints for the Service. If it does not,
// the controller ignores the Endpoints of the Service.
func (s *Service) Managed() bool {
	return len(s.Spec.Selector) > 0 && s.Spec.Type != corev1.ServiceTypeExternalName
}

// Headless reports whether the Service has no cluster IP.
func (s *Service) Headless() bool {
	return s.Spec.ClusterIP == corev1.ClusterIPNone || s.Spec.ClusterIP == ""
}

// String returns the Service as evidence names it.
func (s *Service) String() string { return "Service " + s.Namespace + "/" + s.Name }

func decodeService(o *history.Object) (*Service, error) {
	var body struct{ Spec corev1.ServiceSpec }
	if err := Unmarshal(o.Body, &body); err != nil {
		return nil, err
	}
	s := &Service{
		Ref:         o.Ref,
		Labels:      maps.Clone(o.Labels),
		Terminating: o.Terminating(),
		Spec:        body.Spec,
		Selector:    labels.Nothing(),
	}
	if s.Managed() {
		s.Selector = labels.Set(s.Spec.Selector).AsSelectorPreValidated()
	}
	return s, nil
}

// Endpoints is one version of an Endpoints object. It is immutable. Its addresses are
// decoded only when a caller needs them, because most versions are soon replaced.
type Endpoints struct {
	history.Ref
	Labels         labels.Set
	Terminating    bool
	LeaderElection bool // a leader-election record
	OverCapacity   string
	Body           json.RawMessage
}

// String returns the Endpoints as evidence names them.
func (e *Endpoints) String() string { return "Endpoints " + e.Namespace + "/" + e.Name }

// CountAddresses returns the number of ready and not ready addresses in all subsets.
func (e *Endpoints) CountAddresses() (ready, notReady int, err error) {
	var body struct {
		Subsets []struct{ Addresses, NotReadyAddresses []struct{} }
	}
	if err := Unmarshal(e.Body, &body); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", e, err)
	}
	for _, subset := range body.Subsets {
		ready += len(subset.Addresses)
		notReady += len(subset.NotReadyAddresses)
	}
	return ready, notReady, nil
}

// NewEndpoints decodes the metadata of Endpoints. The method Addresses decodes the
// addresses later.
func NewEndpoints(o *history.Object) *Endpoints {
	_, record := o.Annotations[LeaderAnnotation]
	return &Endpoints{
		Ref:            o.Ref,
		Labels:         maps.Clone(o.Labels),
		Terminating:    o.Terminating(),
		LeaderElection: record,
		OverCapacity:   o.Annotations[OverCapacityAnnotation],
		Body:           o.Body,
	}
}
