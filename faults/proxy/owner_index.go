package proxy

import (
	"sync"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// ownerIndex remembers which owner controls each object that went by, so that a
// request that only names an object can be told by its owner.
type ownerIndex struct {
	mu     sync.RWMutex
	owners map[history.Ref]history.Owner // by resource, namespace and name
}

func newOwnerIndex() *ownerIndex { return &ownerIndex{owners: map[history.Ref]history.Owner{}} }

// learn takes in an object as the API server has it; nil says nothing.
func (k *ownerIndex) set(object *history.Object) {
	if object == nil {
		return
	}
	key := history.Ref{Resource: object.Resource, Namespace: object.Namespace, Name: object.Name}
	owner := object.ControllerRef()
	k.mu.Lock()
	defer k.mu.Unlock()
	if owner == nil {
		delete(k.owners, key)
	} else {
		k.owners[key] = *owner
	}
}

// forget takes in that an object is gone.
func (k *ownerIndex) remove(object *history.Object) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.owners, history.Ref{Resource: object.Resource, Namespace: object.Namespace, Name: object.Name})
}

// Controller returns the owner that controls the object which a request is
// about: the one that its body names, or else the one that the object had when it
// last went by. It is nil if there is none, or the object never went by.
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
