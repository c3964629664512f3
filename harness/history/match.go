package history

import "path"

// This file contains helpers for code that selects records by name, owner or verb.

// MatchGlob reports whether name matches a well-formed glob. An empty glob matches
// every name.
func MatchGlob(glob, name string) bool {
	if glob == "" {
		return true
	}
	matched, _ := path.Match(glob, name)
	return matched
}

// MatchOwner reports whether an owner matches a glob of kind and name, such as
// ReplicaSet/web-*. An empty glob matches every owner and also nil, which means no
// owner.
func MatchOwner(glob string, owner *Owner) bool {
	if glob == "" {
		return true
	}
	return owner != nil && MatchGlob(glob, owner.Kind+"/"+owner.Name)
}

// ObjectName returns the name of the object that the request addresses. For a create
// with generateName, it returns that prefix.
func (r *Request) ObjectName() string {
	switch {
	case r.Name != "" || r.Object == nil:
		return r.Name
	case r.Object.Name != "":
		return r.Object.Name
	}
	return r.Object.GenerateName
}

// IsWrite reports whether the request changes an object that the subject manages.
// Leases, events and review requests do not count.
func (r *Request) IsWrite() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return false
	}
	switch r.Resource {
	case "leases.coordination.k8s.io", "events", "events.events.k8s.io":
		return false
	// Review requests are creates that change nothing.
	case "tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io",
		"selfsubjectaccessreviews.authorization.k8s.io":
		return false
	}
	return r.Resource != ""
}
