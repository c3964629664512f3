package observe

import (
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// etcdKeys decides which etcd keys belong to observed objects, such as
// /registry/pods/NAMESPACE/NAME.
type etcdKeys struct {
	namespace string
	kinds     []kube.Kind
}

// newEtcdKeys returns the etcdKeys for the given namespace and kinds.
//
// If several kinds have the same etcd prefix, only the first kind is observed. For example, the
// API server stores events of v1 and of events.k8s.io under the same keys.
func newEtcdKeys(namespace string, kinds []kube.Kind) etcdKeys {
	k := etcdKeys{namespace: namespace}
	for _, kind := range kinds {
		if !slices.ContainsFunc(k.kinds, func(other kube.Kind) bool { return other.EtcdPrefix == kind.EtcdPrefix }) {
			k.kinds = append(k.kinds, kind)
		}
	}
	return k
}

// kindOf returns the API kind of the object that is stored under an etcd key. The second result is
// true if the object is observed, and false if the object is in another namespace. For a key of a
// kind that is not observed, kindOf returns a zero Kind and false.
func (k etcdKeys) kindOf(key string) (kube.Kind, bool) {
	for _, kind := range k.kinds {
		if rest, ok := strings.CutPrefix(key, kind.EtcdPrefix); ok {
			return kind, k.observes(rest)
		}
	}
	return kube.Kind{}, false
}

// observes reports whether an object is observed: its namespace is k.namespace, or it has no
// namespace.
//
// The argument rest is the object's etcd key without the kind's prefix. It has the form
// namespace/name, or only name if the object has no namespace.
func (k etcdKeys) observes(rest string) bool {
	namespace, _, namespaced := strings.Cut(rest, "/")
	return !namespaced || namespace == k.namespace
}

// prefix returns the etcd prefix under which the Follower reads all observed objects of a kind.
//
// A custom resource may be namespaced or cluster-scoped, so its prefix does not contain the
// namespace. Keys of objects in other namespaces may therefore also have the prefix.
func (k etcdKeys) prefix(kind kube.Kind) string {
	if kind.ClusterScoped || !kind.Builtin() {
		return kind.EtcdPrefix
	}
	return kind.EtcdPrefix + k.namespace + "/"
}
