package proxy

import (
	"sync"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// kinship remembers which owner controls each object that went by, so that a
// request that only names an object can be told by its owner.
type kinship struct {
	mu     sync.RWMutex
	owners map[history.Ref]history.Owner // by resource, namespace and name
}

func newKinship() *kinship { return &kinship{owners: map[history.Ref]history.Owner{}} }

// learn takes in an object as the API server has it; nil says nothing.
func (k *kinship) learn(object *history.Object) {
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
func (k *kinship) forget(object *history.Object) {
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
	p.kinship.mu.RLock()
	defer p.kinship.mu.RUnlock()
	owner, ok := p.kinship.owners[history.Ref{Resource: request.Resource, Namespace: request.Namespace, Name: request.Name}]
	if !ok {
		return nil
	}
	return &owner
}
