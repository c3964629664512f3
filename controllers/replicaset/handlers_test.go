package replicaset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/workloop"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/workloop/looptest"
)

// enqueuedKeys returns the keys that an event enqueues, sorted.
func enqueuedKeys(t *testing.T, r *fixture, event func()) []string {
	t.Helper()
	return looptest.EnqueuedKeys(t, func(loop *workloop.Loop) {
		r.loop = loop
		event()
	})
}

func version(v string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.ResourceVersion = v } }

func TestEnqueuedKeys(t *testing.T) {
	named := func(name string, uid types.UID, app string) *appsv1.ReplicaSet {
		return newSet(1, func(s *appsv1.ReplicaSet) {
			s.Name, s.UID = name, uid
			s.Spec.Selector.MatchLabels["app"] = app
		})
	}
	of := func(name string, uid types.UID) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.OwnerReferences[0].Name, p.OwnerReferences[0].UID = name, uid }
	}
	kind := func(kind string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.OwnerReferences[0].Kind = kind }
	}
	tests := []struct {
		name  string
		event func(*fixture)
		want  []string
	}{
		{"pod added", func(r *fixture) { r.podAdded(newPod("p")) }, []string{"ns/web"}},
		{"orphan added wakes all that match", func(r *fixture) { r.podAdded(newPod("p", orphaned)) }, []string{"ns/twin", "ns/web"}},
		{"orphan that none selects", func(r *fixture) {
			r.podAdded(newPod("p", orphaned, func(p *corev1.Pod) { p.Labels = map[string]string{"app": "x"} }))
		}, nil},
		{"orphan in another namespace", func(r *fixture) {
			r.podAdded(newPod("p", orphaned, func(p *corev1.Pod) { p.Namespace = "other" }))
		}, nil},
		{"terminating orphan", func(r *fixture) { r.podAdded(newPod("p", orphaned, terminating)) }, nil},
		{"pod of an earlier owner of the name", func(r *fixture) { r.podAdded(newPod("p", of("web", "earlier"))) }, nil},
		{"pod of another kind", func(r *fixture) { r.podAdded(newPod("p", kind("ReplicationController"))) }, nil},
		{"pod changed", func(r *fixture) { r.podUpdated(newPod("p"), newPod("p", version("11"))) }, []string{"ns/web"}},
		{"resync", func(r *fixture) { r.podUpdated(newPod("p"), newPod("p")) }, nil},
		{"pod changed hands", func(r *fixture) {
			r.podUpdated(newPod("p"), newPod("p", version("11"), of("db", "db")))
		}, []string{"ns/db", "ns/web"}},
		{"pod stripped of its owner wakes that, and all that match", func(r *fixture) {
			r.podUpdated(newPod("p"), newPod("p", version("11"), orphaned))
		}, []string{"ns/twin", "ns/web"}},
		{"orphan relabelled", func(r *fixture) {
			r.podUpdated(newPod("p", orphaned), newPod("p", version("11"), orphaned, relabeled))
		}, []string{"ns/db"}},
		{"orphan changed otherwise", func(r *fixture) { r.podUpdated(newPod("p", orphaned), newPod("p", version("11"), orphaned)) }, nil},
		{"pod deleted", func(r *fixture) { r.podDeleted(newPod("p")) }, []string{"ns/web"}},
		{"orphan deleted", func(r *fixture) { r.podDeleted(newPod("p", orphaned)) }, nil},
		{"deletion missed", func(r *fixture) {
			r.podDeleted(cache.DeletedFinalStateUnknown{Key: "ns/p", Obj: newPod("p")})
		}, []string{"ns/web"}},
		{"tombstone of something else", func(r *fixture) { r.podDeleted(cache.DeletedFinalStateUnknown{Key: "ns/p", Obj: "?"}) }, nil},
		{"pod replaced by a namesake", func(r *fixture) {
			r.podUpdated(newPod("p"), newPod("p", version("11"), of("db", "db"), func(p *corev1.Pod) { p.UID = "later" }))
		}, []string{"ns/db", "ns/web"}},
		{"owner added", func(r *fixture) { r.ownerChanged(newSet(1)) }, []string{"ns/web"}},
		{"owner changed", func(r *fixture) { r.ownerUpdated(newSet(1), newSet(2)) }, []string{"ns/web"}},
		{"owner deleted", func(r *fixture) { r.ownerDeleted(newSet(1)) }, []string{"ns/web"}},
		{"owner's deletion missed", func(r *fixture) {
			r.ownerDeleted(cache.DeletedFinalStateUnknown{Key: "ns/web", Obj: newSet(1)})
		}, []string{"ns/web"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newFixture(t, newSet(1))
			r.cache(t, named("twin", "twin", "web"))
			r.cache(t, named("db", "db", "db"))
			if diff := cmp.Diff(test.want, enqueuedKeys(t, r, func() { test.event(r) })); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		})
	}
}

// TestObservedExpectations checks which events satisfy the expectations of the owner.
func TestObservedExpectations(t *testing.T) {
	id := ownership.ID{Key: key, UID: "set"}
	awaitCreation := func(r *fixture) {
		r.expectations.ExpectCreations(id, 1)
		r.expectations.Created(id, "p", "99")
	}
	awaitDeletion := func(r *fixture) { r.expectations.ExpectDeletions(id, []types.UID{"p"}) }
	tests := []struct {
		name  string
		await func(*fixture)
		event func(*fixture)
		want  bool
	}{
		{"the pod appears", awaitCreation, func(r *fixture) { r.podAdded(newPod("p")) }, true},
		{"the pod appears, terminating already", awaitCreation, func(r *fixture) { r.podAdded(newPod("p", terminating)) }, true},
		{"another pod appears", awaitCreation, func(r *fixture) { r.podAdded(newPod("q")) }, false},
		{"the pod is still there", awaitDeletion, func(r *fixture) { r.podUpdated(newPod("p"), newPod("p", version("11"))) }, false},
		{"the pod is terminating", awaitDeletion, func(r *fixture) { r.podUpdated(newPod("p"), newPod("p", version("11"), terminating)) }, true},
		{"the pod appears anew, terminating", awaitDeletion, func(r *fixture) { r.podAdded(newPod("p", terminating)) }, true},
		{"the pod appears anew, and stays", awaitDeletion, func(r *fixture) { r.podAdded(newPod("p")) }, false},
		{"the pod is gone", awaitDeletion, func(r *fixture) { r.podDeleted(newPod("p")) }, true},
		{"the pod has gone unseen", awaitDeletion, func(r *fixture) { r.podDeleted(cache.DeletedFinalStateUnknown{Key: "ns/p", Obj: newPod("p")}) }, true},
		{"the pod was taken away", awaitDeletion, func(r *fixture) { r.podUpdated(newPod("p"), newPod("p", version("11"), orphaned)) }, true},
		{"the pod was replaced by a namesake", awaitDeletion, func(r *fixture) {
			r.podUpdated(newPod("p"), newPod("p", version("11"), func(p *corev1.Pod) { p.UID = "later" }))
		}, true},
		{"the owner is deleted", awaitDeletion, func(r *fixture) { r.ownerDeleted(newSet(1)) }, true},
		{"the owner is replaced by a namesake", awaitDeletion, func(r *fixture) {
			r.ownerUpdated(newSet(1), newSet(1, func(s *appsv1.ReplicaSet) {
				s.ObjectMeta = metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "later"}
			}))
		}, true},
		{"the owner changes", awaitDeletion, func(r *fixture) { r.ownerUpdated(newSet(1), newSet(2)) }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newFixture(t, newSet(1))
			test.await(r)
			test.event(r)
			if got := r.expectations.Satisfied(id); got != test.want {
				t.Errorf("satisfied: %t, want %t", got, test.want)
			}
		})
	}
}
