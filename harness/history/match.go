package history

import (
	"path"
	"strings"
)

// This file contains helpers for code that selects records by name, owner or verb.

// MatchGlob reports whether a name matches a glob in the syntax of path.Match, such as "web-*".
// An empty glob matches every name; an invalid glob matches none.
func MatchGlob(glob, name string) bool {
	if glob == "" {
		return true
	}
	matched, _ := path.Match(glob, name)
	return matched
}

// MatchOwner reports whether an owner matches a glob for "kind/name", such as
// "ReplicaSet/web-*". An empty glob matches every owner, and also nil, which means no owner.
func MatchOwner(glob string, owner *Owner) bool {
	if glob == "" {
		return true
	}
	return owner != nil && MatchGlob(glob, owner.Kind+"/"+owner.Name)
}

// ObjectName returns the name of the object that the request reads or writes. For a create with
// generateName, it returns the generateName.
func (r *Request) ObjectName() string {
	switch {
	case r.Name != "" || r.Object == nil:
		return r.Name
	case r.Object.Name != "":
		return r.Object.Name
	}
	return r.Object.GenerateName
}

// leaderAnnotation marks a ConfigMap or Endpoints object that serves as leader-election lease.
// Old versions of client-go set this annotation.
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// IsDryRun reports whether the API server only validates the request, and commits nothing.
func (r *Request) IsDryRun() bool { return r.BodyDryRun || strings.Contains(r.Query, "dryRun=") }

// IsWrite reports whether the request creates, changes or deletes an object. It returns false for
// writes of events, access reviews and leases, which a controller may send at any time. A ConfigMap
// or Endpoints object that serves as a lease counts as a lease. IsWrite also returns false for a dry run.
func (r *Request) IsWrite() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return false
	}
	if r.IsDryRun() || r.Object != nil && r.Object.IsLeaderLock() {
		return false
	}
	return r.Resource != "" && !IsBookkeeping(r.Resource)
}

// IsLeaderLock reports whether the object has the annotation with which old versions of
// client-go mark a leader-election lease.
func (o *Object) IsLeaderLock() bool { return o.Annotations[leaderAnnotation] != "" }

// IsBookkeeping reports whether objects of a resource are leases, events or access reviews. A
// controller may write such objects at any time, so checks ignore these writes.
func IsBookkeeping(resource string) bool {
	switch resource {
	case "leases.coordination.k8s.io", "events", "events.events.k8s.io",
		// Review requests have the verb create, but change nothing.
		"tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io",
		"selfsubjectaccessreviews.authorization.k8s.io":
		return true
	}
	return false
}
