package check

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// pendingService says what is not yet as it is to become with the Endpoints of a
// Service. None of it waits for anybody but the subject.
func (objects *objectSet) pendingService(s *service) []pending {
	return objects.pendingServiceWith(s, nil)
}

// pendingServiceWith is the same if some of the pods ran that have ended.
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
	list.expect(wrong == "", "its Endpoints %s", wrong)
	list.expect(maps.Equal(e.labels, s.expectedLabels()), "its Endpoints have the labels %v, expected %v", e.labels, s.expectedLabels())
	total, _ := want.size()
	list.expect((e.overCapacity == "truncated") == (total > addressesMax), "its Endpoints of %d addresses have the annotation %s=%q",
		total, overCapacityAnnotation, e.overCapacity)
	return list.all
}

// pendingOrphan says whether Endpoints have lost their Service and are still
// there. Those that never had one are left until the next start of the
// controller (manual-endpoints-edits).
func (objects *objectSet) pendingOrphan(e *endpoints) []pending {
	list := pendings{subject: e.String()}
	name := serviceName(e.Ref)
	ours := e.labels[managedByLabel] == managedBy || objects.deletedServices[name]
	list.expect(objects.serviceNamed(name) != nil || e.leaderElection || e.terminating || !ours, "left behind by a Service that is gone")
	return list.all
}

// expectedLabels are the labels that the Endpoints of a Service must have.
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
