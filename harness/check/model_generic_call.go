package check

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// classifyGeneric describes a write that a generic controller may have sent. A generic controller
// reconciles another kind than ReplicaSet, ReplicationController, Deployment and Service, such as
// Job.
//
// It sets c.generic, with the written object and the kind that the controller reconciles. If the
// reconciled object is known, it also sets c.queueKey. In c.key, it completes the name of a new
// object.
func (p *process) classifyGeneric(c *call, r *history.Request) {
	name := r.Name
	if r.Verb == "create" {
		name = ""
		c.key += r.ObjectName()
	}
	call := &genericCall{
		unnamed: r.Verb == "create" && (r.Object == nil || r.Object.Name == ""),
		deletes: r.Verb == "delete" && r.Subresource == "",
	}
	if name != "" {
		call.object = p.view.metadata.find(objectName{r.Resource, r.Namespace, name}, r.PreconditionUID)
	}
	var uid types.UID
	call.kind, uid = p.reconciledObject(call.object, r)
	if uid != "" {
		c.queueKey = workQueueKey{process: p, uid: uid}
	}
	c.generic = call
}

// reconciledObject returns the kind and UID of the object that a generic controller was syncing
// when it sent a write. A generic controller is, for example, the Job controller.
//
// The object is either the written object itself, or the object that its controllerRef names. For
// example, when the Job controller creates a pod, the controllerRef names the Job. The parameter
// cached is the written object as the cache contains it, or nil.
//
// If a generic controller reconciles neither object, both results are empty. If the UID of the
// object is unknown, only the UID is empty.
func (p *process) reconciledObject(cached *objectMetadata, r *history.Request) (kind string, uid types.UID) {
	if own := p.tested.genericKindOf(r.Resource); own != "" && r.Verb != "create" {
		switch {
		case cached != nil:
			return own, cached.UID
		case r.Object != nil:
			return own, r.Object.UID
		}
		return own, r.PreconditionUID
	}
	var controller history.Owner
	if cached != nil {
		controller = cached.controller
	}
	if controller.UID == "" && r.Object != nil {
		if ref := r.Object.ControllerRef(); ref != nil {
			controller = *ref
		}
	}
	if p.tested.genericKind(controller.Kind) {
		return controller.Kind, controller.UID
	}
	return "", ""
}

// mayBeGeneric reports whether the owner of a pod may be an object of a generic controller, such
// as a Job. This is possible if a generic controller under test writes pods. The cache must also
// contain no ReplicaSet or ReplicationController with this UID.
func (p *process) mayBeGeneric(owner types.UID) bool {
	return p.tested.genericWrites(kube.Pod) && p.view.owners[owner] == nil
}
