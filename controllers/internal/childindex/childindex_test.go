package childindex

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

func pod(namespace, name string, owners ...metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: owners}}
}

func TestLookups(t *testing.T) {
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, cache.Indexers{})
	for range 2 { // two controllers share the informer
		if err := Add(informer); err != nil {
			t.Fatal(err)
		}
	}
	controls := func(uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{UID: uid, Controller: new(true)}
	}
	for _, p := range []*corev1.Pod{
		pod("a", "of-one", controls("1")),
		pod("a", "of-two", metav1.OwnerReference{UID: "1"}, controls("2")),
		pod("a", "orphan"),
		pod("a", "owned", metav1.OwnerReference{UID: "1"}),
		pod("b", "orphan"),
	} {
		if err := informer.GetIndexer().Add(p); err != nil {
			t.Fatal(err)
		}
	}
	names := func(pods []*corev1.Pod, err error) []string {
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range pods {
			names = append(names, p.Namespace+"/"+p.Name)
		}
		slices.Sort(names)
		return names
	}
	for _, test := range []struct {
		what      string
		got, want []string
	}{
		{"controlled by 1", names(ControlledBy[*corev1.Pod](informer.GetIndexer(), "1")), []string{"a/of-one"}},
		{"controlled by 2", names(ControlledBy[*corev1.Pod](informer.GetIndexer(), "2")), []string{"a/of-two"}},
		{"controlled by 3", names(ControlledBy[*corev1.Pod](informer.GetIndexer(), "3")), nil},
		{"orphans of a", names(Orphans[*corev1.Pod](informer.GetIndexer(), "a")), []string{"a/orphan", "a/owned"}},
		{"orphans of c", names(Orphans[*corev1.Pod](informer.GetIndexer(), "c")), nil},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.what, diff)
		}
	}
}
