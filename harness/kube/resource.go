package kube

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// ValidResource reports whether a scenario may name a resource such as "replicasets.apps".
// The resource has a row, belongs to another kind of Kubernetes itself, or can belong to a
// custom resource.
//
// A resource of an API group that client-go contains must exist there, so that a misspelled
// name is not valid. The existence of a custom resource cannot be checked. The group of a
// custom resource always contains a dot, as in "policies.example.com".
func ValidResource(resource string) bool {
	if _, ok := ByResource(resource); ok || builtinResources()[resource] {
		return true
	}
	plural := schema.ParseGroupResource(resource)
	return plural.Resource != "" && strings.Contains(plural.Group, ".") && !scheme.Scheme.IsGroupRegistered(plural.Group)
}

// builtinResources returns the resources of all kinds in client-go. A type in client-go is
// the type of a resource if there is also a type for lists of it.
var builtinResources = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if scheme.Scheme.Recognizes(gvk.GroupVersion().WithKind(gvk.Kind + "List")) {
			plural, _ := meta.UnsafeGuessKindToResource(gvk)
			all[plural.GroupResource().String()] = true
		}
	}
	return all
})
