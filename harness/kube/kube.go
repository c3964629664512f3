// Package kube is the registry of the API kinds and controllers that the test harness knows.
//
// It has two tables. Kinds has a row for each known kind of object. Controllers has a row for each
// controller that can be under test. All packages that list kinds or controllers read these tables.
//
// Some kinds have no row, such as the kinds of custom resources. The function [Generic] returns a
// description of such a kind. With it, the harness can create, observe, record and compare objects
// of the kind, and show them in reports. Faults can act on these objects. Only the checks of
// controllers/CONTRACT.md need a row.
//
// The package imports no other package of the harness, except package nearest.
package kube

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Kind describes a kind of API object, such as ReplicaSet.
type Kind struct {
	// Name is the name of the kind in manifests and ownerReferences, such as "ReplicaSet".
	Name string
	// GVR has the API group, the API version that the test harness uses, and the plural name.
	GVR schema.GroupVersionResource
	// ShortName is the abbreviation that kubectl accepts, such as "rs"; "" if there is none.
	ShortName string
	// ClusterScoped is true if objects of the kind have no namespace.
	ClusterScoped bool
	// EtcdPrefix is the prefix of the kind's keys in etcd, such as "/registry/pods/". The
	// namespace and the name of the object follow the prefix. If etcd is reachable, the test
	// harness reads committed changes under these keys. A release of Kubernetes can change the
	// prefix only with a migration of the stored data.
	EtcdPrefix string
	// Decoding says which type of package objects represents objects of the kind. Checks read
	// the objects in this form.
	Decoding Decoding
	// Role says how the kind is related to pods. Reports and comparisons group objects by role.
	Role Role
	// Controls lists the kinds of which an object of this kind can be the controller. For
	// example, a Deployment controls ReplicaSets.
	Controls []string
	// Color is the color of the kind in reports, in CSS syntax, for the light and the dark theme.
	// An example is light-dark(#1c2024, #e6e8ea). "" means the default color.
	Color string
}

// Role says how the objects of a kind are related to pods. They create pods, belong to objects
// that create pods, or send traffic to pods. For example, reports show pods below their
// workload, and Services below the pods.
type Role string

// The roles of kinds.
const (
	// Workload is the role of kinds whose controller creates pods, directly or through objects
	// of another kind. Examples are ReplicaSet and Deployment.
	Workload Role = "workload"
	// Child is the role of kinds whose objects a workload controls: Pod and ControllerRevision.
	Child Role = "child"
	// Routing is the role of kinds that send traffic to pods, such as Service and Endpoints.
	Routing Role = "routing"
	// Other is the role of all other kinds.
	Other Role = "other"
)

// Decoding says which type of package objects represents objects of a kind. Checks read objects
// in this form, such as pods as objects.Pod.
type Decoding string

// Each of these values of [Kind.Decoding] names the type with which checks read objects of the
// kind. The zero value is AsGeneric.
const (
	// AsGeneric decodes only the fields that objects of many kinds have, such as spec.replicas
	// and status.conditions.
	AsGeneric Decoding = ""
	// AsPod decodes pods.
	AsPod Decoding = "pod"
	// AsReplicaSet decodes ReplicaSets, whose selector is a LabelSelector.
	AsReplicaSet Decoding = "replica-set"
	// AsReplicationController decodes ReplicationControllers, whose selector is a map of labels.
	AsReplicationController Decoding = "replication-controller"
	// AsDeployment decodes Deployments.
	AsDeployment Decoding = "deployment"
	// AsService decodes Services.
	AsService Decoding = "service"
	// AsEndpoints decodes Endpoints.
	AsEndpoints Decoding = "endpoints"
)

// GVK returns the API group, the API version and the name of the kind.
func (k Kind) GVK() schema.GroupVersionKind { return k.GVR.GroupVersion().WithKind(k.Name) }

// APIVersion returns the API group and version as manifests contain them, such as
// "apps/v1".
func (k Kind) APIVersion() string { return k.GVR.GroupVersion().String() }

// Resource returns the plural name with the API group, such as "replicasets.apps".
// Histories, faults and triggers identify kinds by this name.
func (k Kind) Resource() string { return k.GVR.GroupResource().String() }

// Builtin reports whether the kind is built into Kubernetes, so that client-go has a Go type for
// it. Objects of other kinds are unstructured.
func (k Kind) Builtin() bool { return scheme.Scheme.Recognizes(k.GVK()) }

// Named returns the row of the table [Kinds] with the given name, such as "ReplicaSet". It returns
// false if there is no such row.
func Named(name string) (Kind, bool) {
	return find(func(k Kind) bool { return k.Name == name })
}

// MustNamed returns the row of the table [Kinds] with the given name. It panics if there is no
// such row, so callers pass only constants of this package.
func MustNamed(name string) Kind {
	k, ok := Named(name)
	if !ok {
		panic(fmt.Sprintf("kube.MustNamed: kind %q has no row in the table kube.Kinds", name))
	}
	return k
}

// ByResource returns the row of the table [Kinds] with the given resource, such as
// "replicasets.apps". It returns false if there is no such row. It is fast enough for a call per
// record of a history.
func ByResource(resource string) (Kind, bool) {
	k, ok := rowsByResource()[resource]
	return k, ok
}

// rowsByResource returns the table of kinds as a map, with the resource as the key. It builds
// the map at the first call.
var rowsByResource = sync.OnceValue(func() map[string]Kind {
	rows := map[string]Kind{}
	for _, k := range Kinds {
		rows[k.Resource()] = k
	}
	return rows
})

// find returns the first row of the table of kinds for which the function matches returns true. If
// there is no such row, the second result is false.
func find(matches func(Kind) bool) (Kind, bool) {
	if i := slices.IndexFunc(Kinds, matches); i >= 0 {
		return Kinds[i], true
	}
	return Kind{}, false
}

// Generic returns a description of any kind. If [Kinds] has a row for the kind, it returns this
// row. Otherwise it derives the description from the name of the kind.
//
// A derived plural name follows the naming convention of Kubernetes: lower case, with the ending
// of an English plural. A derived kind is namespaced, unless it is a built-in cluster-scoped
// kind. For a custom resource with another plural name or scope, use [CustomResource].
func Generic(gvk schema.GroupVersionKind) Kind {
	if k, ok := find(func(k Kind) bool { return k.GVK() == gvk }); ok {
		return k
	}
	return generic(gvk, Plural(gvk.Kind), slices.Contains(clusterScoped, gvk.GroupKind().String()))
}

// Plural guesses the plural name of a kind whose definition is unknown, such as gateways of Gateway. Unlike
// the guess of package meta, it is right for kinds such as Gateway, Mesh and Sandbox.
func Plural(kind string) string {
	singular := strings.ToLower(kind)
	for _, ending := range []string{"x", "ch", "sh"} {
		if strings.HasSuffix(singular, ending) {
			return singular + "es"
		}
	}
	if n := len(singular); n > 1 && singular[n-1] == 'y' && strings.ContainsRune("aeiou", rune(singular[n-2])) {
		return singular + "s"
	}
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
	return plural.Resource
}

// CustomResource returns the description of a kind that a CustomResourceDefinition defines. The
// arguments plural and clusterScoped are the plural name and the scope in this definition.
func CustomResource(gvk schema.GroupVersionKind, plural string, clusterScoped bool) Kind {
	return generic(gvk, plural, clusterScoped)
}

// generic returns the description of a kind that has no row in [Kinds]. The etcd prefix of a
// custom resource contains the API group. The etcd prefix of a built-in kind does not.
func generic(gvk schema.GroupVersionKind, plural string, clusterScoped bool) Kind {
	k := Kind{Name: gvk.Kind, GVR: gvk.GroupVersion().WithResource(plural), ClusterScoped: clusterScoped, Role: Other}
	k.EtcdPrefix = "/registry/" + plural + "/"
	if !k.Builtin() {
		k.EtcdPrefix = "/registry/" + gvk.Group + "/" + plural + "/"
	}
	return k
}

// clusterScoped lists the built-in cluster-scoped kinds that have no row in [Kinds]. The form is
// KIND.GROUP.
var clusterScoped = []string{
	"APIService.apiregistration.k8s.io",
	"CSIDriver.storage.k8s.io",
	"CSINode.storage.k8s.io",
	"CertificateSigningRequest.certificates.k8s.io",
	"ClusterRole.rbac.authorization.k8s.io",
	"ClusterRoleBinding.rbac.authorization.k8s.io",
	"ClusterTrustBundle.certificates.k8s.io",
	"CustomResourceDefinition.apiextensions.k8s.io",
	"DeviceClass.resource.k8s.io",
	"DeviceTaintRule.resource.k8s.io",
	"FlowSchema.flowcontrol.apiserver.k8s.io",
	"IPAddress.networking.k8s.io",
	"IngressClass.networking.k8s.io",
	"MutatingAdmissionPolicy.admissionregistration.k8s.io",
	"MutatingAdmissionPolicyBinding.admissionregistration.k8s.io",
	"MutatingWebhookConfiguration.admissionregistration.k8s.io",
	"PersistentVolume",
	"PriorityClass.scheduling.k8s.io",
	"PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io",
	"ResourceSlice.resource.k8s.io",
	"RuntimeClass.node.k8s.io",
	"ServiceCIDR.networking.k8s.io",
	"StorageClass.storage.k8s.io",
	"StorageVersion.internal.apiserver.k8s.io",
	"StorageVersionMigration.storagemigration.k8s.io",
	"ValidatingAdmissionPolicy.admissionregistration.k8s.io",
	"ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io",
	"ValidatingWebhookConfiguration.admissionregistration.k8s.io",
	"VolumeAttachment.storage.k8s.io",
	"VolumeAttributesClass.storage.k8s.io",
}

// Resources returns the resources of all kinds in the table [Kinds], sorted. Every scenario may
// name these resources, even if its workload creates no such objects.
func Resources() []string {
	names := make([]string, 0, len(Kinds))
	for _, k := range Kinds {
		names = append(names, k.Resource())
	}
	slices.Sort(names)
	return names
}

// SplitGVK combines the apiVersion and the kind of a manifest into a GroupVersionKind.
func SplitGVK(apiVersion, kind string) schema.GroupVersionKind {
	group, version, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group, version = "", apiVersion
	}
	return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
}
