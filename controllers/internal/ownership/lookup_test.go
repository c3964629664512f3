package ownership

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// newOwnerLookup returns an OwnerLookup for the given owners. The selector of an owner is
// app=VALUE, where VALUE is the owner's annotation "app". For an owner without this annotation,
// Selector returns an error.
func newOwnerLookup(t *testing.T, owners ...*appsv1.ReplicaSet) OwnerLookup {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, owner := range owners {
		if err := indexer.Add(owner); err != nil {
			t.Fatal(err)
		}
	}
	return OwnerLookup{Cache: indexer, Kind: "ReplicaSet", Selector: func(owner any) (labels.Selector, error) {
		app := owner.(*appsv1.ReplicaSet).Annotations["app"]
		if app == "" {
			return nil, errors.New("no app")
		}
		return labels.SelectorFromSet(labels.Set{"app": app}), nil
	}}
}

func replicaSetNamed(namespace, name string, app string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{"app": app},
	}}
}

func TestResolveControllerRef(t *testing.T) {
	owners := newOwnerLookup(t, replicaSetNamed("ns", "web", "web"))
	tests := []struct {
		name      string
		namespace string
		ref       *metav1.OwnerReference
		want      bool
	}{
		{"resolved", "ns", &metav1.OwnerReference{Kind: "ReplicaSet", Name: "web", UID: "uid-web"}, true},
		{"no controllerRef", "ns", nil, false},
		{"another kind", "ns", &metav1.OwnerReference{Kind: "Job", Name: "web", UID: "uid-web"}, false},
		{"another namespace", "other", &metav1.OwnerReference{Kind: "ReplicaSet", Name: "web", UID: "uid-web"}, false},
		{"recreated owner", "ns", &metav1.OwnerReference{Kind: "ReplicaSet", Name: "web", UID: "earlier"}, false},
		{"owner not in the cache", "ns", &metav1.OwnerReference{Kind: "ReplicaSet", Name: "db", UID: "uid-db"}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			id, ok := owners.ResolveControllerRef(test.namespace, test.ref)
			if ok != test.want {
				t.Errorf("found: %t, want %t", ok, test.want)
			}
			if want := (ID{Key: "ns/web", UID: "uid-web"}); ok && id != want {
				t.Errorf("found %v, want %v", id, want)
			}
		})
	}
}

func TestMatching(t *testing.T) {
	owners := newOwnerLookup(t, replicaSetNamed("ns", "web", "web"), replicaSetNamed("ns", "twin", "web"), replicaSetNamed("ns", "db", "db"), replicaSetNamed("other", "web", "web"), replicaSetNamed("ns", "odd", ""))
	tests := []struct {
		name   string
		orphan *corev1.Pod
		want   []string
	}{
		{"two owners match", newPod("p", "web", ""), []string{"ns/twin", "ns/web"}},
		{"no owner matches", newPod("p", "x", ""), nil},
		{"no labels", newPod("p", "web", "", func(p *corev1.Pod) { p.Labels = nil }), nil},
		{"terminating", newPod("p", "web", "", terminatingPod), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ids, err := owners.Matching(test.orphan)
			if err != nil {
				t.Fatal(err)
			}
			var keys []string
			for _, id := range ids {
				keys = append(keys, id.Key)
			}
			slices.Sort(keys)
			if diff := cmp.Diff(test.want, keys); diff != "" {
				t.Errorf("matching (-want +got):\n%s", diff)
			}
		})
	}
}
