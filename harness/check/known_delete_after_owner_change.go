package check

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// openDeletes finds owners, such as ReplicaSets, whose controller waits in vain for the end of a delete.
// It recognizes the known upstream issue delete-after-owner-change.
//
// The controller deletes a pod of the owner, and then receives a version of the pod that no longer has
// this owner. From the later events of the pod, it does not learn that its delete took place.
type openDeletes struct {
	deleting map[workQueueKey]map[types.UID]bool // pods that the process deletes for an owner
	open     map[workQueueKey]time.Duration      // since when the process waits in vain for a delete
}

func newOpenDeletes() *openDeletes {
	return &openDeletes{map[workQueueKey]map[types.UID]bool{}, map[workQueueKey]time.Duration{}}
}

// observe stores the deletes of pods, and which of these pods the process then receives with another
// owner. If the process starts a new sync of an owner, it no longer waits for earlier deletes.
func (d *openDeletes) observe(m *Model, r *history.Record) {
	switch {
	case processStarts(r):
		dropEndedProcesses(d.deleting)
		dropEndedProcesses(d.open)
	case m.sent != nil && m.sent.ownerState != nil && (m.sent.verb == callCreatePod || m.sent.verb == callDeletePod):
		key := workQueueKey{process: m.sent.process, uid: m.sent.ownerState.uid}
		if since, ok := d.open[key]; ok && m.processTime-since > m.sent.process.batchTime {
			delete(d.open, key)
		}
		if m.sent.verb == callDeletePod && m.sent.pod != nil {
			insert(d.deleting, key, m.sent.pod.UID, true)
		}
	case m.answered != nil && m.answered.verb == callDeletePod && m.answered.ownerState != nil && m.answered.pod != nil && isFailure(m.answered):
		// The controller does not wait for a delete that failed.
		remove(d.deleting, workQueueKey{process: m.answered.process, uid: m.answered.ownerState.uid}, m.answered.pod.UID)
	case r.Delivery != nil && r.Delivery.Resource == objects.PodResource:
		d.deliver(m, r.Delivery)
	}
}

// deliver records that a process received a version of a pod. The process learns of its delete if the
// pod is terminating or deleted, and still has the owner for which the process deletes the pod.
func (d *openDeletes) deliver(m *Model, event *history.Delivery) {
	for key, pods := range d.deleting {
		if key.process.name != event.Subject || !pods[event.Object.UID] {
			continue
		}
		owner := event.Object.ControllerRef()
		switch {
		case owner == nil || owner.UID != key.uid:
			d.open[key] = m.processTime
		case event.Type != history.Deleted && !event.Object.Terminating():
			continue // an event from before the delete
		}
		remove(d.deleting, key, event.Object.UID)
	}
}

// explains reports whether a process does not sync an owner because it waits in vain for a delete. The
// method ignores processes that are paused or cannot hold the lease.
func (d *openDeletes) explains(m *Model, owner types.UID) bool {
	return hasKey(m, d.open, workQueueKey{uid: owner})
}
