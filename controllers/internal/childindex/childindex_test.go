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
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), OwnerReferences: owners}}
}

func controls(uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{UID: uid, Controller: new(true)}
}

func names(t *testing.T, pods []*corev1.Pod, err error) []string {
	t.Helper()
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

func TestLookups(t *testing.T) {
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, cache.Indexers{})
	for range 2 { // two controllers share one informer
		if err := Add(informer); err != nil {
			t.Fatal(err)
		}
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
	indexer := informer.GetIndexer()
	controlled := func(uid types.UID) []string {
		pods, err := ControlledBy[*corev1.Pod](indexer, uid)
		return names(t, pods, err)
	}
	candidates := func(namespace string, uid types.UID) []string {
		pods, err := Candidates[*corev1.Pod](indexer, &metav1.ObjectMeta{Namespace: namespace, UID: uid})
		return names(t, pods, err)
	}
	for _, test := range []struct {
		what      string
		got, want []string
	}{
		{"controlled by 1", controlled("1"), []string{"a/of-one"}},
		{"controlled by 2", controlled("2"), []string{"a/of-two"}},
		{"controlled by 3", controlled("3"), nil},
		{"candidates of 1 in a", candidates("a", "1"), []string{"a/of-one", "a/orphan", "a/owned"}},
		{"candidates of 3 in c", candidates("c", "3"), nil},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.what, diff)
		}
	}
}

// changingIndexer is an informer index whose content changes after a given number of lookups.
type changingIndexer struct {
	cache.Indexer
	after, lookups int
	change         func()
}

func (m *changingIndexer) ByIndex(index, value string) ([]any, error) {
	found, err := m.Indexer.ByIndex(index, value)
	if m.lookups++; m.lookups == m.after {
		m.change()
	}
	return found, err
}

// TestCandidatesWhileControllerRefChanges checks a child that moves from one index to the other
// while Candidates reads them. Candidates must return the child once, in its latest version.
func TestCandidatesWhileControllerRefChanges(t *testing.T) {
	for _, after := range []int{1, 2} {
		for _, test := range []struct {
			name     string
			from, to *corev1.Pod
		}{
			{"adopted", pod("a", "one"), pod("a", "one", controls("1"))},
			{"released", pod("a", "one", controls("1")), pod("a", "one")},
		} {
			informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, cache.Indexers{})
			if err := Add(informer); err != nil {
				t.Fatal(err)
			}
			put := func(p *corev1.Pod) {
				if err := informer.GetIndexer().Update(p); err != nil {
					t.Error(err)
				}
			}
			test.from.ResourceVersion, test.to.ResourceVersion = "1", "2"
			put(test.from)
			indexer := &changingIndexer{Indexer: informer.GetIndexer(), after: after, change: func() { put(test.to) }}
			pods, err := Candidates[*corev1.Pod](indexer, &metav1.ObjectMeta{Namespace: "a", UID: "1"})
			if diff := cmp.Diff([]string{"a/one"}, names(t, pods, err)); diff != "" {
				t.Errorf("%s after lookup %d (-want +got):\n%s", test.name, after, diff)
			} else if last := after == 1 || test.name == "adopted"; last != (pods[0] == test.to) {
				t.Errorf("%s after lookup %d: newest version returned %v, want %v", test.name, after, !last, last)
			}
		}
	}
}
