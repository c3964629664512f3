package check

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// pendingService returns the differences between a Service and its Endpoints. The subject
// can resolve these differences at once.
func (objects *objectSet) pendingService(s *service) []pending {
	return objects.pendingServiceWith(s, nil)
}

// pendingServiceWith returns the differences between a Service and its Endpoints, as if the
// pods in running had not ended.
func (objects *objectSet) pendingServiceWith(s *service, running map[types.UID]time.Duration) []pending {
	if !s.managed() || s.terminating {
		return nil
	}
	list := pendings{subject: s.String()}
	e := objects.endpointsNamed(nameOf(s.Ref))
	if e == nil {
		list.expect(false, "no Endpoints")
		return list.all
	}
	if e.terminating {
		return nil
	}
	want, err := objects.expectedAddresses(s, running)
	if err != nil {
		list.expect(false, "%v", err)
		return list.all
	}
	got, err := e.decodeAddresses()
	if err != nil {
		list.expect(false, "%v", err)
		return list.all
	}
	wrong := describeDifference(got, want)
	list.expect(wrong == "", "Endpoints %s", wrong)
	list.expect(maps.Equal(e.labels, s.expectedLabels()), "Endpoints have the labels %v, expected %v", e.labels, s.expectedLabels())
	total, _ := want.size()
	list.expect((e.overCapacity == "truncated") == (total > addressesMax), "annotation %s of the Endpoints is %q, but %d of at most %d addresses are expected",
		overCapacityAnnotation, e.overCapacity, total, addressesMax)
	return list.all
}

// pendingOrphan returns a difference if Endpoints still exist although their Service was
// deleted. Endpoints that never had a Service may remain until the controller restarts
// (allowed behavior manual-endpoints-edits).
func (objects *objectSet) pendingOrphan(e *endpoints) []pending {
	list := pendings{subject: e.String()}
	name := serviceName(e.Ref)
	ours := e.labels[managedByLabel] == managedBy || objects.deletedServices[name]
	list.expect(objects.serviceNamed(name) != nil || e.leaderElection || e.terminating || !ours, "the Service is deleted, expected that the Endpoints are deleted too")
	return list.all
}

// expectedLabels returns the labels that the Endpoints of a Service must have.
func (s *service) expectedLabels() map[string]string {
	want := map[string]string{}
	maps.Copy(want, s.labels)
	want[managedByLabel] = managedBy
	delete(want, headlessLabel)
	if s.headless() {
		want[headlessLabel] = ""
	}
	return want
}
