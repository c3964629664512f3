package check

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// unnoticedEnds is, by the key of a Service in a work queue, the pods that a process was
// told have ended, and of which nothing else changed that wakes the Service (contract
// Endpoints 1); and when. It is what has come since anything else woke the Service.
type unnoticedEnds map[workQueueKey]map[types.UID]time.Duration

func (ends unnoticedEnds) observe(m *Model, r *history.Record) {
	switch {
	case processStarts(r):
		dropEndedProcesses(ends)
	case m.sent != nil && m.sent.serviceState != nil:
		// What was decided before it was told may be sent after.
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

// add notes that a pod has ended and nobody woke.
func (ends unnoticedEnds) add(m *Model, key workQueueKey, pod types.UID) {
	if ends[key] == nil {
		ends[key] = map[types.UID]time.Duration{}
	}
	ends[key][pod] = m.processTime
}

// explains reports whether what is pending about a Service is just that some process has
// not noticed such ends: its Endpoints are what they were to be if those pods ran on.
func (ends unnoticedEnds) explains(m *Model, s *objects.Service) bool {
	for key := range m.activeKeys(workQueueKey{service: nameOf(s.Ref)}) {
		running := ends[key]
		if len(running) > 0 && len(m.committed.pendingServiceWith(s, running)) == 0 {
			return true
		}
	}
	return false
}
