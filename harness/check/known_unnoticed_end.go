package check

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// unnoticedEnds contains, for each Service, the pods whose end (phase Failed or Succeeded) the
// controller may not have noticed. The values are the times when the process received the watch
// events of these pods. The type recognizes the known upstream issue unnoticed-end.
//
// If only the phase of a pod changes, the controller does not enqueue the Service (contract
// Endpoints 1). The next event that enqueues the Service removes the Service and its pods from the
// map.
type unnoticedEnds map[workQueueKey]map[types.UID]time.Duration

// observe adds each pod that the current record shows as newly failed or succeeded. It removes the
// pods of a Service when an event enqueues the Service. When the process writes the Endpoints,
// observe removes the pods whose event arrived more than lag (1 s) before.
func (ends unnoticedEnds) observe(m *Model, r *history.Record) {
	switch {
	case processStarts(r):
		dropEndedProcesses(ends)
	case m.sent != nil && m.sent.serviceState != nil:
		// The process now writes Endpoints without the pods that have ended in its cache. Pods
		// whose event arrived in the last second (lag) stay in the map, because the process may
		// have decided on this call before it received the event.
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

// add records that a pod failed or succeeded without enqueueing the Service. The parameter key is
// the Service's work queue key.
func (ends unnoticedEnds) add(m *Model, key workQueueKey, pod types.UID) {
	if ends[key] == nil {
		ends[key] = map[types.UID]time.Duration{}
	}
	ends[key][pod] = m.processTime
}

// explains reports whether the Endpoints of a Service would be correct if the pods in
// unnoticedEnds still ran. If so, the known upstream issue unnoticed-end is the cause of the
// wrong Endpoints.
func (ends unnoticedEnds) explains(m *Model, s *objects.Service) bool {
	for key := range m.activeKeys(workQueueKey{service: nameOf(s.Ref)}) {
		running := ends[key]
		if len(running) > 0 && len(m.committed.pendingServiceWith(s, running)) == 0 {
			return true
		}
	}
	return false
}
