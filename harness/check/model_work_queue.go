package check

import "github.com/kube-gauntlet/gauntlet/harness/history"

// objectGone reports whether the cache of the key's process no longer contains the object that the
// key names. Checkers may then forget the failures that they have counted for the key.
func (key workQueueKey) objectGone() bool {
	view := key.process.view
	if key.service != (objectName{}) {
		return view.uidByName[key.service] == ""
	}
	return view.owners[key.uid] == nil && view.deployments[key.uid] == nil && view.metadata.get(key.uid) == nil
}

// String formats the key's object as kind namespace/name. If the cache does not contain the object,
// its name is unknown. The result is then "owner" and the UID.
func (key workQueueKey) String() string {
	switch {
	case key.service != objectName{}:
		return "Service " + key.service.namespace + "/" + key.service.name
	case key.process.view.deployments[key.uid] != nil:
		return key.process.view.deployments[key.uid].String()
	case key.process.view.owners[key.uid] != nil:
		return key.process.view.owners[key.uid].String()
	case key.process.view.metadata.get(key.uid) != nil:
		return key.process.view.metadata.get(key.uid).String()
	}
	return "owner " + string(key.uid)
}

// ref returns the reference of the key's object for the evidence of a violation. If the cache does
// not contain the object, its name is unknown. The reference then contains only the UID.
func (key workQueueKey) ref() *history.Ref {
	switch {
	case key.service != objectName{}:
		return &history.Ref{Resource: key.service.resource, Namespace: key.service.namespace, Name: key.service.name}
	case key.process.view.deployments[key.uid] != nil:
		return &key.process.view.deployments[key.uid].Ref
	case key.process.view.owners[key.uid] != nil:
		return &key.process.view.owners[key.uid].Ref
	case key.process.view.metadata.get(key.uid) != nil:
		return &key.process.view.metadata.get(key.uid).Ref
	}
	return &history.Ref{UID: key.uid}
}
