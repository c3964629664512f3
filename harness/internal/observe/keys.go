package observe

import (
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// etcdKeys finds the keys of the observed objects in etcd.
type etcdKeys struct {
	namespace string
	kinds     []kube.Kind
}

// newEtcdKeys returns the etcdKeys for kinds. Several kinds may have the same prefix, as
// the two kinds of events have. Only the first of them is then observed.
func newEtcdKeys(namespace string, kinds []kube.Kind) etcdKeys {
	k := etcdKeys{namespace: namespace}
	for _, kind := range kinds {
		if !slices.ContainsFunc(k.kinds, func(other kube.Kind) bool { return other.EtcdPrefix == kind.EtcdPrefix }) {
			k.kinds = append(k.kinds, kind)
		}
	}
	return k
}

// kindOf returns the kind of the object that a key belongs to. The second result is false
// if the object is not observed.
func (k etcdKeys) kindOf(key string) (kube.Kind, bool) {
	for _, kind := range k.kinds {
		if rest, ok := strings.CutPrefix(key, kind.EtcdPrefix); ok {
			return kind, k.observes(rest)
		}
	}
	return kube.Kind{}, false
}

// observes reports whether an object is observed. The parameter rest is the part of the
// object's key after the prefix of its kind. This part is namespace/name, or only the name
// if the object has no namespace.
func (k etcdKeys) observes(rest string) bool {
	namespace, _, namespaced := strings.Cut(rest, "/")
	return !namespaced || namespace == k.namespace
}

// prefix returns a prefix that the keys of all observed objects of a kind have. For a
// custom resource, keys of objects in other namespaces may also have it, because the scope
// of the kind is unknown.
func (k etcdKeys) prefix(kind kube.Kind) string {
	if kind.ClusterScoped || !kind.Builtin() {
		return kind.EtcdPrefix
	}
	return kind.EtcdPrefix + k.namespace + "/"
}
