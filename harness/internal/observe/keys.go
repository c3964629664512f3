package observe

import (
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// etcdKeys knows which keys in etcd belong to observed objects.
type etcdKeys struct {
	namespace string
	kinds     []kube.Kind
}

// newEtcdKeys returns the etcdKeys for kinds.
//
// If several kinds have the same etcd prefix, it observes only the first of them. For example,
// events of v1 and of events.k8s.io are stored under the same keys.
func newEtcdKeys(namespace string, kinds []kube.Kind) etcdKeys {
	k := etcdKeys{namespace: namespace}
	for _, kind := range kinds {
		if !slices.ContainsFunc(k.kinds, func(other kube.Kind) bool { return other.EtcdPrefix == kind.EtcdPrefix }) {
			k.kinds = append(k.kinds, kind)
		}
	}
	return k
}

// kindOf returns the kind of the object that a key belongs to, and reports whether the object is
// observed.
func (k etcdKeys) kindOf(key string) (kube.Kind, bool) {
	for _, kind := range k.kinds {
		if rest, ok := strings.CutPrefix(key, kind.EtcdPrefix); ok {
			return kind, k.observes(rest)
		}
	}
	return kube.Kind{}, false
}

// observes reports whether an object is observed: whether its namespace is k.namespace, or it
// has no namespace.
//
// The argument rest is the object's key without the prefix of its kind. It is namespace/name,
// or only the name if the object has no namespace.
func (k etcdKeys) observes(rest string) bool {
	namespace, _, namespaced := strings.Cut(rest, "/")
	return !namespaced || namespace == k.namespace
}

// prefix returns a prefix that the keys of all observed objects of a kind have.
//
// A custom resource may be namespaced or not, so its prefix does not contain the namespace.
// Keys of objects in other namespaces may therefore have it too.
func (k etcdKeys) prefix(kind kube.Kind) string {
	if kind.ClusterScoped || !kind.Builtin() {
		return kind.EtcdPrefix
	}
	return kind.EtcdPrefix + k.namespace + "/"
}
