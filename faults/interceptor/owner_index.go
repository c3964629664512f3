package interceptor

import (
	"sync"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// ownerIndex maps each object that the controller under test has received to the owner in its
// controllerRef.
//
// A fault can affect only requests for objects of one owner, such as the pods of a ReplicaSet. A
// delete request contains only the object's name, so faults look up the owner in this index.
type ownerIndex struct {
	mu     sync.RWMutex
	owners map[history.Ref]history.Owner // the keys contain only resource, namespace and name
}

func newOwnerIndex() *ownerIndex { return &ownerIndex{owners: map[history.Ref]history.Owner{}} }

// set stores the owner of an object that the API server has sent. If the object has no
// controllerRef, set deletes the object from the index. A nil object changes nothing.
func (i *ownerIndex) set(object *history.Object) {
	if object == nil {
		return
	}
	key := history.Ref{Resource: object.Resource, Namespace: object.Namespace, Name: object.Name}
	owner := object.ControllerRef()
	i.mu.Lock()
	defer i.mu.Unlock()
	if owner == nil {
		delete(i.owners, key)
	} else {
		i.owners[key] = *owner
	}
}

// remove deletes an object from the index when the controller under test receives the object's
// DELETED event.
func (i *ownerIndex) remove(object *history.Object) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.owners, history.Ref{Resource: object.Resource, Namespace: object.Namespace, Name: object.Name})
}

// Controller returns the owner in the controllerRef of the request's object, or nil if the owner
// is unknown.
//
// If the request contains the object, Controller reads its controllerRef. Otherwise Controller
// uses the version of the object that the controller under test received last.
func (i *Interceptor) Controller(request *history.Request) *history.Owner {
	if request.Object != nil && history.HasKindOfResource(request.Subresource) {
		return request.Object.ControllerRef()
	}
	i.owners.mu.RLock()
	defer i.owners.mu.RUnlock()
	owner, ok := i.owners.owners[history.Ref{Resource: request.Resource, Namespace: request.Namespace, Name: request.Name}]
	if !ok {
		return nil
	}
	return &owner
}
