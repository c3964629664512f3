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
	Selector    labels.Selector // matches no pods if the Endpoints controller does not manage the Service's Endpoints
}

// Managed reports whether the Endpoints controller must write the Endpoints of the Service. The
// Service must have a selector and must not be of type ExternalName.
func (s *Service) Managed() bool {
	return len(s.Spec.Selector) > 0 && s.Spec.Type != corev1.ServiceTypeExternalName
}

// Headless reports whether the Service has no cluster IP: spec.clusterIP is None or empty.
func (s *Service) Headless() bool {
	return s.Spec.ClusterIP == corev1.ClusterIPNone || s.Spec.ClusterIP == ""
}

// String returns "Service namespace/name".
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

// Endpoints contains the metadata of one version of an Endpoints object. It is immutable.
//
// Callers rarely need the addresses of a version. The method Addresses therefore decodes the
// addresses only when a caller needs them.
type Endpoints struct {
	history.Ref
	Labels         labels.Set
	Terminating    bool
	LeaderElection bool   // leader election uses the object as its lock (see LeaderAnnotation)
	OverCapacity   string // value of OverCapacityAnnotation; "" if the annotation is absent
	TriggerTime    string // value of TriggerTimeAnnotation; "" if the annotation is absent
	// Annotations contains the annotations that the Endpoints controller must keep: all but its own.
	Annotations map[string]string
	// Finalizers and Owners are those of users. The Endpoints controller must keep them, too.
	Finalizers []string
	Owners     []history.Owner
	Body       json.RawMessage // the recorded JSON of the object, which contains the subsets
}

// String returns "Endpoints namespace/name".
func (e *Endpoints) String() string { return "Endpoints " + e.Namespace + "/" + e.Name }

// CountAddresses returns the number of ready and the number of not-ready addresses in the
// Endpoints. An address in several subsets counts once for each subset.
func (e *Endpoints) CountAddresses() (ready, notReady int, err error) {
	var body struct {
		Subsets []struct{ Addresses, NotReadyAddresses []struct{} }
	}
	if err := Unmarshal(e.Body, &body); err != nil {
		return 0, 0, fmt.Errorf("decoding the addresses of %s: %w", e, err)
	}
	for _, subset := range body.Subsets {
		ready += len(subset.Addresses)
		notReady += len(subset.NotReadyAddresses)
	}
	return ready, notReady, nil
}

// NewEndpoints returns the metadata of a recorded Endpoints object in decoded form. It does not
// decode the addresses.
func NewEndpoints(o *history.Object) *Endpoints {
	_, record := o.Annotations[LeaderAnnotation]
	kept := maps.Clone(o.Annotations)
	delete(kept, OverCapacityAnnotation)
	delete(kept, TriggerTimeAnnotation)
	return &Endpoints{
		Ref:            o.Ref,
		Labels:         maps.Clone(o.Labels),
		Terminating:    o.Terminating(),
		LeaderElection: record,
		OverCapacity:   o.Annotations[OverCapacityAnnotation],
		TriggerTime:    o.Annotations[TriggerTimeAnnotation],
		Annotations:    kept,
		Finalizers:     o.Finalizers,
		Owners:         o.Owners,
		Body:           o.Body,
	}
}
