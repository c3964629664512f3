package kube

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"
)

// BuiltinByResource returns the built-in kind with an API group and a plural name, such as
// "apps" and "statefulsets". It returns false if Kubernetes has no such kind.
//
// The API version comes from the table of kinds. If the table has no row for the kind, it is the
// version that client-go prefers.
func BuiltinByResource(group, resource string) (Kind, bool) {
	if k, ok := find(func(k Kind) bool { return k.GVR.Group == group && k.GVR.Resource == resource }); ok {
		return k, true
	}
	for _, version := range scheme.Scheme.PrioritizedVersionsForGroup(group) {
		types := scheme.Scheme.KnownTypes(version)
		names := make([]string, 0, len(types))
		for name := range types {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			plural, _ := meta.UnsafeGuessKindToResource(version.WithKind(name))
			if plural.Resource == resource && !strings.HasSuffix(name, "List") {
				return Generic(version.WithKind(name)), true
			}
		}
	}
	return Kind{}, false
}
