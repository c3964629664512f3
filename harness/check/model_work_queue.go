package check

import "github.com/kube-gauntlet/gauntlet/harness/history"

// gone reports whether its process does not know the object of an item any more.
func (i item) gone() bool {
	view := i.process.view
	if i.service != (objectName{}) {
		return view.names[i.service] == ""
	}
	return view.owners[i.uid] == nil && view.deployments[i.uid] == nil
}

// String is how evidence names the object of an item.
func (i item) String() string {
	switch {
	case i.service != objectName{}:
		return "Service " + i.service.namespace + "/" + i.service.name
	case i.process.view.deployments[i.uid] != nil:
		return i.process.view.deployments[i.uid].String()
	case i.process.view.owners[i.uid] != nil:
		return i.process.view.owners[i.uid].String()
	}
	return "owner " + string(i.uid)
}

// ref points evidence to the object of an item.
func (i item) ref() *history.Ref {
	switch {
	case i.service != objectName{}:
		return &history.Ref{Resource: i.service.resource, Namespace: i.service.namespace, Name: i.service.name}
	case i.process.view.deployments[i.uid] != nil:
		return &i.process.view.deployments[i.uid].Ref
	case i.process.view.owners[i.uid] != nil:
		return &i.process.view.owners[i.uid].Ref
	}
	return &history.Ref{UID: i.uid}
}
