package deployment

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func names(sets []*appsv1.ReplicaSet) []string {
	var names []string
	for _, set := range sets {
		names = append(names, set.Name)
	}
	return names
}

func TestOldestFirst(t *testing.T) {
	at := func(name string, seconds int64) *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(seconds, 0)}}
	}
	sets := []*appsv1.ReplicaSet{at("c", 2), at("b", 1), at("a", 2), at("d", 0)}
	if diff := cmp.Diff([]string{"d", "b", "a", "c"}, names(oldestFirst(sets))); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if sets[0].Name != "c" {
		t.Error("the argument was reordered")
	}
}

func revision(text string) func(*appsv1.ReplicaSet) *appsv1.ReplicaSet {
	return func(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
		set.Annotations = annotations{revisionAnnotation: text}
		return set
	}
}

func TestNextRevision(t *testing.T) {
	d := newDeployment(1)
	tests := []struct {
		name string
		old  []*appsv1.ReplicaSet
		want int64
	}{
		{"first revision", nil, 1},
		{"above all others", []*appsv1.ReplicaSet{newSetOf(d, "v1", 3, 0), newSetOf(d, "v2", 10, 0), newSetOf(d, "v3", 9, 0)}, 11},
		{"malformed revisions are ignored", []*appsv1.ReplicaSet{newSetOf(d, "v1", 3, 0), newSetOf(d, "v2", 1, 0, revision("x")), newSetOf(d, "v3", 1, 0, revision(""))}, 4},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := nextRevision(test.old); got != test.want {
				t.Errorf("nextRevision = %d, want %d", got, test.want)
			}
		})
	}
}

func TestRevisionsToDelete(t *testing.T) {
	d := newDeployment(1)
	old := func(change ...func(*appsv1.ReplicaSet) *appsv1.ReplicaSet) []*appsv1.ReplicaSet {
		return []*appsv1.ReplicaSet{newSetOf(d, "v3", 3, 0), newSetOf(d, "v1", 1, 0, change...), newSetOf(d, "v2", 2, 0)}
	}
	terminating := func(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
		set.DeletionTimestamp = &metav1.Time{Time: now}
		return set
	}
	unseen := func(set *appsv1.ReplicaSet) *appsv1.ReplicaSet { set.Generation = 2; return set }
	asking := func(set *appsv1.ReplicaSet) *appsv1.ReplicaSet { set.Spec.Replicas = new(int32(1)); return set }
	tests := []struct {
		name  string
		old   []*appsv1.ReplicaSet
		limit *int32
		want  []string
	}{
		{"no limit", old(), nil, nil},
		{"the largest number means no limit", old(), new(int32(math.MaxInt32)), nil},
		{"below", old(), new(int32(4)), nil},
		{"at it", old(), new(int32(3)), nil},
		{"lowest revision first", old(), new(int32(1)), []string{"web-v1", "web-v2"}},
		{"limit 0", old(), new(int32(0)), []string{"web-v1", "web-v2", "web-v3"}},
		{"ReplicaSet with pods is skipped without a replacement", old(withAvailablePods(1)), new(int32(2)), nil},
		{"ReplicaSet with replicas is skipped", old(asking), new(int32(1)), []string{"web-v2"}},
		{"ReplicaSet with an unobserved generation is skipped", old(unseen), new(int32(1)), []string{"web-v2"}},
		{"terminating ReplicaSet does not count", old(terminating), new(int32(1)), []string{"web-v2"}},
		{"malformed revision is the lowest", old(revision("x")), new(int32(2)), []string{"web-v1"}},
		{"equal revisions: oldest first", old(revision("2")), new(int32(2)), []string{"web-v1"}},
		{"no old ReplicaSets", nil, new(int32(0)), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, names(revisionsToDelete(test.old, test.limit))); diff != "" {
				t.Errorf("surplus (-want +got):\n%s", diff)
			}
		})
	}
}
