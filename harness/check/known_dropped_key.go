package check

import (
	"github.com/kube-gauntlet/gauntlet/harness/history"

	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// maxRetries is the number of consecutive failed syncs after which upstream drops a key from
// its work queue. Upstream drops only keys of Deployments and Services. The controller then
// does not sync the object until an event enqueues it again.
const maxRetries = 16

// droppedKeys finds the work queue keys that a process has dropped. It recognizes the known
// upstream issue dropped-key.
//
// A process drops a key after calls for it have failed maxRetries times in a row. After the key
// is enqueued again, counting starts at the first failure.
type droppedKeys struct{ *failedAttempts }

// newDroppedKeys returns droppedKeys without failures. It counts failures only of calls for
// which follows returns true.
func newDroppedKeys(follows func(*call) bool) droppedKeys {
	return droppedKeys{newFailedAttempts(maxRetries, follows)}
}

// observe counts failed calls, and records which keys the current record enqueued.
func (keys droppedKeys) observe(m *Model, r *history.Record) {
	for _, event := range m.events {
		if keys.byKey[event.workQueueKey] != nil && certainlyEnqueues(m, r, event) {
			keys.recordEvent(m, event.workQueueKey)
		}
	}
	// The sync in which a call failed may still write the status. Any later call shows a new sync.
	if m.sent != nil && r.Request.Subresource != "status" {
		keys.recordWork(m, m.sent)
	}
	keys.failedAttempts.observe(m, r)
}

// certainlyEnqueues reports whether a list or watch event enqueues a Service or Deployment for
// certain.
//
// Only an event of the Deployment itself enqueues a Deployment for certain. An event of a
// ReplicaSet or pod may do so.
func certainlyEnqueues(m *Model, r *history.Record, event enqueueEvent) bool {
	if event.service != (objectName{}) {
		enqueues, _ := enqueuesService(m, r, event.workQueueKey)
		return enqueues
	}
	_, of := eventOf(r)
	return event.objectChanged && of == objects.DeploymentResource
}

// recordWork records that a process sent a call for a work queue key.
//
// A call later than batchTime after the last failure belongs to a new sync. The key is
// therefore in the work queue again, even if the process had dropped it.
func (keys droppedKeys) recordWork(m *Model, sent *call) {
	for _, tried := range keys.byKey[sent.queueKey] {
		if m.processTime-tried.failedAt > sent.process.batchTime {
			tried.latestEvent = m.seq
		}
	}
}

// explains reports whether an object is not synced because a process dropped its key.
//
// The result is true only if no event has enqueued the key since then. Processes that are
// paused, or that cannot hold the lease, do not count.
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
