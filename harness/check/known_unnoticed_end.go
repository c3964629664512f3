package check

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// unnoticedEnds contains, for each Service, the pods that ended without enqueuing the
// Service. The controller does not enqueue a Service for such a pod, because nothing else
// about the pod changed (contract Endpoints 1). The value is the time when the event of the
// pod was delivered. The next event for the Service removes its entry.
type unnoticedEnds map[workQueueKey]map[types.UID]time.Duration

func (ends unnoticedEnds) observe(m *Model, r *history.Record) {
	switch {
	case processStarts(r):
		dropEndedProcesses(ends)
	case m.sent != nil && m.sent.serviceState != nil:
		// The process may have decided on this call before the delivery.
		maps.DeleteFunc(ends[m.sent.queueKey], func(_ types.UID, deliveredAt time.Duration) bool { return m.processTime-deliveredAt > lag })
	}
	for _, event := range m.events {
		if event.service == (objectName{}) {
			continue
		}
		enqueues, ended := enqueuesService(m, r, event.workQueueKey)
		if enqueues {
			delete(ends, event.workQueueKey)
			continue
		}
		for _, uid := range ended {
			ends.add(m, event.workQueueKey, uid)
		}
	}
}

// add records that a pod of the Service ended, and that its event did not enqueue the
// Service.
func (ends unnoticedEnds) add(m *Model, key workQueueKey, pod types.UID) {
	if ends[key] == nil {
		ends[key] = map[types.UID]time.Duration{}
	}
	ends[key][pod] = m.processTime
}

// explains reports whether only pods in unnoticedEnds prevent the convergence of a Service.
// In this case, the Endpoints are correct for a controller that takes these pods for
// running pods.
func (ends unnoticedEnds) explains(m *Model, s *objects.Service) bool {
	for key := range m.activeKeys(workQueueKey{service: nameOf(s.Ref)}) {
		running := ends[key]
		if len(running) > 0 && len(m.committed.pendingServiceWith(s, running)) == 0 {
			return true
		}
	}
	return false
}
