package kube

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// BuiltinByResource returns the built-in kind with an API group and a plural name, such as
// "apps" and "statefulsets". It returns false if Kubernetes has no such kind.
//
// The API version comes from the table of kinds. If the table has no row for the kind, it is the
// version that client-go prefers, among those that API servers still serve.
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
			if plural.Resource == resource && !strings.HasSuffix(name, "List") && !isRemoved(version.WithKind(name)) {
				return Generic(version.WithKind(name)), true
			}
		}
	}
	return Kind{}, false
}

// lastRemoval is the minor version of Kubernetes 1 up to which [ServedVersions] knows removed
// versions. No older cluster is supported by its vendor.
const lastRemoval = 29

// ServedVersions returns the versions with which API servers serve a built-in kind, if they do not
// serve the given one. An example is apps/v1 for a StatefulSet of apps/v1beta1, or of v1. Otherwise,
// the result is empty.
func ServedVersions(gvk schema.GroupVersionKind) []string {
	recognized := scheme.Scheme.Recognizes(gvk) && gvk.Group != "extensions"
	if !scheme.Scheme.IsVersionRegistered(gvk.GroupVersion()) || recognized && !isRemoved(gvk) {
		return nil
	}
	var served []string
	for known := range scheme.Scheme.AllKnownTypes() {
		if known.Kind == gvk.Kind && isStable(known.Version) && (known.Group == gvk.Group || !recognized) {
			served = append(served, known.GroupVersion().String())
		}
	}
	slices.Sort(served)
	return served
}

// isRemoved reports whether Kubernetes 1.29 or an earlier version removed a version of a kind.
func isRemoved(gvk schema.GroupVersionKind) bool {
	major, minor := removal(gvk)
	return major == 1 && minor <= lastRemoval
}

// isStable reports whether a version is neither alpha nor beta, such as v1.
func isStable(version string) bool {
	return !strings.Contains(version, "alpha") && !strings.Contains(version, "beta") && version != runtime.APIVersionInternal
}
