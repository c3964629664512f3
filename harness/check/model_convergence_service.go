package check

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// pendingService returns how the Endpoints of a Service differ from what they must contain. A
// controller can resolve each difference at once, without waiting for pods. A Service that is
// terminating, has no selector or is of type ExternalName has no differences. Terminating Endpoints
// have none either.
func (state *objectSet) pendingService(s *objects.Service) []pending {
	return state.pendingServiceWith(s, nil)
}

// pendingServiceWith is like pendingService, but ignores that certain pods have failed or
// succeeded. The keys of the map running are the UIDs of these pods. The values of the map are not
// used.
//
// A controller may not have noticed that these pods have ended (known upstream issue
// unnoticed-end). If the result is empty, this issue explains why the Endpoints are wrong.
func (state *objectSet) pendingServiceWith(s *objects.Service, running map[types.UID]time.Duration) []pending {
	if !s.Managed() || s.Terminating {
		return nil
	}
	list := pendings{subject: s.String()}
	e := state.endpointsNamed(nameOf(s.Ref))
	if e == nil {
		list.expect(false, "found no Endpoints, expected Endpoints %s/%s", s.Namespace, s.Name)
		return list.all
	}
	if e.Terminating {
		return nil
	}
	want, err := state.expectedAddresses(s, running)
	if err != nil {
		list.expect(false, "%v", err)
		return list.all
	}
	got, err := e.Addresses()
	if err != nil {
		list.expect(false, "%v", err)
		return list.all
	}
	wrong := describeDifference(got, want)
	list.expect(wrong == "", "Endpoints %s", wrong)
	list.expect(maps.Equal(e.Labels, expectedLabels(s)), "Endpoints have the labels %v, expected %v", e.Labels, expectedLabels(s))
	total, _ := want.Size()
	list.expect((e.OverCapacity == "truncated") == (total > objects.AddressesMax), "annotation %s of the Endpoints is %q, but the pods have %d addresses, and Endpoints list at most %d",
		objects.OverCapacityAnnotation, e.OverCapacity, total, objects.AddressesMax)
	return list.all
}

// pendingOrphan returns a difference if Endpoints still exist although their Service was
// deleted.
//
// Endpoints that never had a Service, and that the controller did not create, are no difference.
// The label managed-by shows which Endpoints the controller created. The controller deletes other
// Endpoints only when it starts (allowed behavior manual-endpoints-edits).
func (state *objectSet) pendingOrphan(e *objects.Endpoints) []pending {
	list := pendings{subject: e.String()}
	name := serviceName(e.Ref)
	ours := e.Labels[objects.ManagedByLabel] == objects.EndpointControllerName || state.deletedServices[name]
	list.expect(state.serviceNamed(name) != nil || e.LeaderElection || e.Terminating || !ours, "the Service was deleted, expected the controller to delete the Endpoints too")
	return list.all
}

// expectedLabels returns the labels that the Endpoints of a Service must have. These are the
// Service's labels and the label endpoints.kubernetes.io/managed-by. The Endpoints of a headless
// Service also have the label service.kubernetes.io/headless.
func expectedLabels(s *objects.Service) map[string]string {
	want := map[string]string{}
	maps.Copy(want, s.Labels)
	want[objects.ManagedByLabel] = objects.EndpointControllerName
	delete(want, objects.HeadlessLabel)
	if s.Headless() {
		want[objects.HeadlessLabel] = ""
	}
	return want
}
