package check

import (
	"github.com/kube-gauntlet/gauntlet/harness/history"

	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// maxRetries is the number of failed syncs after which upstream drops the key of a
// Deployment or Service. The controller then does nothing for the object until the next
// event.
const maxRetries = 16

// droppedKeys holds the work queue keys that processes dropped after maxRetries failures.
// After a key is dropped, its next failure is the first of a new count.
type droppedKeys struct{ *failedAttempts }

// newDroppedKeys returns droppedKeys that count only the calls for which the given function
// returns true.
func newDroppedKeys(of func(*call) bool) droppedKeys {
	return droppedKeys{newFailedAttempts(maxRetries, of)}
}

func (keys droppedKeys) observe(m *Model, r *history.Record) {
	for _, event := range m.events {
		if keys.byKey[event.workQueueKey] != nil && certainlyEnqueues(m, r, event) {
			keys.recordEvent(m, event.workQueueKey)
		}
	}
	// A status write may belong to the same sync as the failed call.
	if m.sent != nil && r.Request.Subresource != "status" {
		keys.recordWork(m, m.sent)
	}
	keys.failedAttempts.observe(m, r)
}

// certainlyEnqueues reports whether a delivery certainly enqueues a Service or Deployment.
// An event of a ReplicaSet or a pod is not certain to enqueue the Deployment.
func certainlyEnqueues(m *Model, r *history.Record, event enqueueEvent) bool {
	if event.service != (objectName{}) {
		enqueues, _ := enqueuesService(m, r, event.workQueueKey)
		return enqueues
	}
	_, of := eventOf(r)
	return event.objectChanged && of == objects.DeploymentResource
}

// recordWork records that a process sent a call for a work queue key. If the last failure
// is longer ago than batchTime, the call belongs to a later sync. If the process had dropped
// the key, an event must have enqueued the key since then.
func (keys droppedKeys) recordWork(m *Model, sent *call) {
	for _, tried := range keys.byKey[sent.queueKey] {
		if m.processTime-tried.failedAt > sent.process.batchTime {
			tried.latestEvent = m.seq
		}
	}
}

// explains reports whether a process dropped the key of an object, and no event has
// enqueued the key since then.
func (keys droppedKeys) explains(m *Model, i workQueueKey) bool {
	for key := range m.activeKeys(i) {
		for _, tried := range keys.byKey[key] {
			if tried.count == maxRetries && tried.latestEvent <= tried.latestSent {
				return true
			}
		}
	}
	return false
}
