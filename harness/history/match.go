package history

import "path"

// This file has how those who follow a history say what they mean in it.

// MatchGlob matches a glob that is known to be well-formed; none matches all.
func MatchGlob(glob, name string) bool {
	if glob == "" {
		return true
	}
	matched, _ := path.Match(glob, name)
	return matched
}

// MatchOwner matches the globs of an owner's kind and name, such as
// ReplicaSet/web-*; none matches all, and also what has no owner, which is nil.
func MatchOwner(glob string, owner *Owner) bool {
	if glob == "" {
		return true
	}
	return owner != nil && MatchGlob(glob, owner.Kind+"/"+owner.Name)
}

// ObjectName is the name of the object that a request is about. A create may
// leave it to the API server to complete: it is then what the name begins with.
func (r *Request) ObjectName() string {
	switch {
	case r.Name != "" || r.Object == nil:
		return r.Name
	case r.Object.Name != "":
		return r.Object.Name
	}
	return r.Object.GenerateName
}

// IsWrite reports whether a request of the subject changes what it manages.
func (r *Request) IsWrite() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return false
	}
	switch r.Resource {
	case "leases.coordination.k8s.io", "events", "events.events.k8s.io":
		return false
	// Questions put to the API server as objects change nothing.
	case "tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io",
		"selfsubjectaccessreviews.authorization.k8s.io":
		return false
	}
	return r.Resource != ""
}
