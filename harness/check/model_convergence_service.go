package check

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// pendingService says what is not yet as it is to become with the Endpoints of a
// Service. None of it waits for anybody but the subject.
func (w *world) pendingService(s *service) []pending { return w.pendingServiceWith(s, nil) }

// pendingServiceWith is the same if some of the pods ran that have ended.
func (w *world) pendingServiceWith(s *service, running map[types.UID]time.Duration) []pending {
	if !s.managed() || s.terminating {
		return nil
	}
	list := pendings{subject: s.String()}
	e := w.endpointsNamed(nameOf(s.Ref))
	if e == nil {
		list.expect(false, "no Endpoints")
		return list.all
	}
	if e.terminating {
		return nil
	}
	want, err := w.wanted(s, running)
	if err != nil {
		list.expect(false, "%v", err)
		return list.all
	}
	got, err := e.listed()
	if err != nil {
		list.expect(false, "%v", err)
		return list.all
	}
	wrong := difference(got, want)
	list.expect(wrong == "", "its Endpoints %s", wrong)
	list.expect(maps.Equal(e.labels, s.wantedLabels()), "its Endpoints have the labels %v, expected %v", e.labels, s.wantedLabels())
	total, _ := want.size()
	list.expect((e.capacity == "truncated") == (total > addressesMax), "its Endpoints of %d addresses have the annotation %s=%q",
		total, capacityAnnotation, e.capacity)
	return list.all
}

// pendingOrphan says whether Endpoints have lost their Service and are still
// there. Those that never had one are left until the next start of the
// controller (trap 33).
func (w *world) pendingOrphan(e *endpoints) []pending {
	list := pendings{subject: e.String()}
	name := serviceName(e.Ref)
	ours := e.labels[managedByLabel] == managedBy || w.bereft[name]
	list.expect(w.serviceNamed(name) != nil || e.record || e.terminating || !ours, "left behind by a Service that is gone")
	return list.all
}

// wantedLabels are the labels that the Endpoints of a Service must have.
func (s *service) wantedLabels() map[string]string {
	want := map[string]string{}
	maps.Copy(want, s.labels)
	want[managedByLabel] = managedBy
	delete(want, headlessLabel)
	if s.headless() {
		want[headlessLabel] = ""
	}
	return want
}
