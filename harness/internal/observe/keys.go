package observe

import (
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// etcdKeys finds the observed objects in etcd.
type etcdKeys struct {
	namespace string
	kinds     []kube.Kind
}

// newEtcdKeys returns the etcdKeys of kinds. If several kinds have the same prefix, such as the
// two kinds of events, it uses the first.
func newEtcdKeys(namespace string, kinds []kube.Kind) etcdKeys {
	k := etcdKeys{namespace: namespace}
	for _, kind := range kinds {
		if !slices.ContainsFunc(k.kinds, func(other kube.Kind) bool { return other.EtcdPrefix == kind.EtcdPrefix }) {
			k.kinds = append(k.kinds, kind)
		}
	}
	return k
}

// kindOf returns the kind of the observed object with a key. The result is false for other
// keys.
func (k etcdKeys) kindOf(key string) (kube.Kind, bool) {
	for _, kind := range k.kinds {
		if rest, ok := strings.CutPrefix(key, kind.EtcdPrefix); ok {
			return kind, k.observes(rest)
		}
	}
	return kube.Kind{}, false
}

// observes reports whether an object is observed. The argument is the object's key after the
// prefix of its kind: namespace and name, or only the name of an object without a namespace.
func (k etcdKeys) observes(rest string) bool {
	namespace, _, namespaced := strings.Cut(rest, "/")
	return !namespaced || namespace == k.namespace
}

// prefix returns a prefix of the keys of all observed objects of a kind. The scope of a
// custom resource is unknown, so its prefix also includes the objects of other namespaces.
func (k etcdKeys) prefix(kind kube.Kind) string {
	if kind.ClusterScoped || !kind.Builtin() {
		return kind.EtcdPrefix
	}
	return kind.EtcdPrefix + k.namespace + "/"
}
