package proxy

import (
	"sync"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// ownerIndex maps each object that the subject has received to its controlling owner.
// Some requests contain only the name of an object. The index allows a fault to match
// such a request by owner.
type ownerIndex struct {
	mu     sync.RWMutex
	owners map[history.Ref]history.Owner // keyed by resource, namespace and name
}

func newOwnerIndex() *ownerIndex { return &ownerIndex{owners: map[history.Ref]history.Owner{}} }

// set stores the owner of an object that the API server sent. A nil object changes nothing.
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

// remove deletes the entry of a deleted object.
func (i *ownerIndex) remove(object *history.Object) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.owners, history.Ref{Resource: object.Resource, Namespace: object.Namespace, Name: object.Name})
}

// Controller returns the owner that controls the object of a request, or nil. It uses the
// controllerRef in the request body. Without a body it uses the controllerRef of the
// object's version that the subject received last.
func (p *Proxy) Controller(request *history.Request) *history.Owner {
	if request.Object != nil {
		return request.Object.ControllerRef()
	}
	p.owners.mu.RLock()
	defer p.owners.mu.RUnlock()
	owner, ok := p.owners.owners[history.Ref{Resource: request.Resource, Namespace: request.Namespace, Name: request.Name}]
	if !ok {
		return nil
	}
	return &owner
}
