package check

import (
	"github.com/kube-gauntlet/gauntlet/harness/history"

	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// maxRetries is the number of failed syncs in a row after which upstream drops a key from its
// work queue. Upstream drops only keys of Deployments and Services. The controller does not sync
// the object again until an event enqueues its key.
const maxRetries = 16

// droppedKeys finds the work queue keys that a process has dropped because of too many failures.
// It recognizes the known upstream issue dropped-key.
//
// A process drops a key after the same request for this key has failed maxRetries times in a row.
// The next failure of the request then counts as the first one again.
type droppedKeys struct{ *failedAttempts }

// newDroppedKeys returns droppedKeys that have counted no failures yet. They count only the
// failures of requests for which the given function returns true.
func newDroppedKeys(follows func(*call) bool) droppedKeys {
	return droppedKeys{newFailedAttempts(maxRetries, follows)}
}

// observe counts failed requests for each work queue key. It also notes when an event certainly
// enqueues a key, because the controller then syncs the object again.
func (keys droppedKeys) observe(m *Model, r *history.Record) {
	for _, event := range m.events {
		if keys.byKey[event.workQueueKey] != nil && certainlyEnqueues(m, r, event) {
			keys.recordEvent(m, event.workQueueKey)
		}
	}
	// A sync may still write the status after one of its calls has failed. Any other call comes
	// from a new sync.
	if m.sent != nil && r.Request.Subresource != "status" {
		keys.recordWork(m, m.sent)
	}
	keys.failedAttempts.observe(m, r)
}

// certainlyEnqueues reports whether the current list or watch event certainly enqueues the key
// of a Service or Deployment.
//
// A Deployment is certainly enqueued only by an event of the Deployment itself. An event of its
// ReplicaSet or pod may or may not enqueue the Deployment.
func certainlyEnqueues(m *Model, r *history.Record, event enqueueEvent) bool {
	if event.service != (objectName{}) {
		enqueues, _ := enqueuesService(m, r, event.workQueueKey)
		return enqueues
	}
	_, of := eventOf(r)
	return event.objectChanged && of == objects.DeploymentResource
}

// recordWork records that a process sent a request for a work queue key. If the last failure was
// longer ago than batchTime, the request belongs to a new sync. The process then has the key in its
// work queue again, even if it had dropped the key.
func (keys droppedKeys) recordWork(m *Model, sent *call) {
	for _, tried := range keys.byKey[sent.queueKey] {
		if m.processTime-tried.failedAt > sent.process.batchTime {
			tried.latestEvent = m.seq
		}
	}
}

// explains reports whether a process does not sync an object because it has dropped the object's
// key.
//
// The result is true only if no event has enqueued the key since the process dropped it. The
// method ignores processes that are paused or cannot hold the lease.
func (keys droppedKeys) explains(m *Model, object workQueueKey) bool {
	for key := range m.activeKeys(object) {
		for _, tried := range keys.byKey[key] {
			if tried.count == maxRetries && tried.latestEvent <= tried.latestSent {
				return true
			}
		}
	}
	return false
}
