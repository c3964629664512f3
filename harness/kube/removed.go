package kube

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// removedKind is a kind that Kubernetes no longer has, in any version.
type removedKind struct {
	groups  []string // the API groups that had the kind
	version string   // the version of Kubernetes that removed the kind
	instead string   // what users write instead; "" if there is no successor
}

// removedKinds has the kinds that Kubernetes removed, by their names.
var removedKinds = map[string]removedKind{
	"PodSecurityPolicy":  {[]string{"policy", "extensions"}, "1.25", "the label pod-security.kubernetes.io/enforce of a Namespace"},
	"PodPreset":          {[]string{"settings.k8s.io"}, "1.20", ""},
	"ThirdPartyResource": {[]string{"extensions"}, "1.8", "a CustomResourceDefinition"},
}

// Removed returns the version of Kubernetes that removed a kind, such as 1.25 for a PodSecurityPolicy. It also returns
// what users write instead, which may be "". The result version is "" if the kind is not a removed one. The apiVersion
// may be "".
func Removed(apiVersion, kind string) (version, instead string) {
	removed, ok := removedKinds[kind]
	if !ok {
		return "", ""
	}
	group := SplitGVK(apiVersion, kind).Group
	for _, known := range removed.groups {
		if group == known || apiVersion == "" {
			return removed.version, removed.instead
		}
	}
	return "", ""
}

// removedVersions has the versions of Kubernetes that removed API versions which client-go no longer has.
var removedVersions = map[string]string{
	"autoscaling/v2beta1": "1.25", "autoscaling/v2beta2": "1.26", "batch/v2alpha1": "1.21",
	"apiextensions.k8s.io/v1beta1": "1.22", "apiregistration.k8s.io/v1beta1": "1.22",
}

// RemovedVersion returns the version of Kubernetes that removed an API version of a kind. An example is 1.25 for
// batch/v1beta1 of a CronJob. It returns "" if that is not known.
func RemovedVersion(gvk schema.GroupVersionKind) string {
	if version := removedVersions[gvk.GroupVersion().String()]; version != "" {
		return version
	}
	if major, minor := removal(gvk); major > 0 && isRemoved(gvk) {
		return fmt.Sprintf("%d.%d", major, minor)
	}
	return ""
}

// removal returns the version of Kubernetes that removed an API version of a kind, or will remove it. It returns 0 if
// there is none.
func removal(gvk schema.GroupVersionKind) (major, minor int) {
	o, err := scheme.Scheme.New(gvk)
	if err != nil {
		return 0, 0
	}
	lifecycle, ok := o.(interface{ APILifecycleRemoved() (major, minor int) })
	if !ok {
		return 0, 0
	}
	return lifecycle.APILifecycleRemoved()
}

// NotServed returns the reason why API servers do not serve a kind in a version, for an error.
func NotServed(gvk schema.GroupVersionKind) string {
	if version := RemovedVersion(gvk); version != "" {
		return fmt.Sprintf("because Kubernetes %s removed this version of the kind", version)
	}
	return "because API servers do not serve the kind in this version"
}
