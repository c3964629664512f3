package check

import (
	"github.com/kube-gauntlet/gauntlet/harness/history"

	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// maxRetries is how often upstream tries what Deployments and Services ask for, without a
// success between, before it waits for something else to happen.
const maxRetries = 16

// droppedKeys is what processes have tried so often without success that they have given it
// up, until something else happens. Then they begin to count anew.
type droppedKeys struct{ *failedAttempts }

// newDroppedKeys follows calls that are not for pods.
func newDroppedKeys(of func(*call) bool) droppedKeys {
	return droppedKeys{newFailedAttempts(maxRetries, of)}
}

func (keys droppedKeys) observe(m *Model, r *history.Record) {
	for _, event := range m.events {
		if keys.byKey[event.workQueueKey] != nil && certainlyEnqueues(m, r, event) {
			keys.recordEvent(m, event.workQueueKey)
		}
	}
	// In the try that failed, the status may be written after it.
	if m.sent != nil && r.Request.Subresource != "status" {
		keys.recordWork(m, m.sent)
	}
	keys.failedAttempts.observe(m, r)
}

// certainlyEnqueues reports whether what came wakes a Service, or a Deployment for certain: of its
// ReplicaSets and their pods not all does.
func certainlyEnqueues(m *Model, r *history.Record, event enqueueEvent) bool {
	if event.service != (objectName{}) {
		enqueues, _ := enqueuesService(m, r, event.workQueueKey)
		return enqueues
	}
	_, of := eventOf(r)
	return event.objectChanged && of == objects.DeploymentResource
}

// recordWork takes in that a process works on a key. If it does no more of the try that
// failed, something else has happened.
func (keys droppedKeys) recordWork(m *Model, sent *call) {
	for _, tried := range keys.byKey[sent.queueKey] {
		if m.processTime-tried.failedAt > sent.process.batchTime {
			tried.latestEvent = m.seq
		}
	}
}

// explains reports whether some process has given an item up, and nothing has made it
// take it up since.
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
