package replicaset

import (
	"testing"
	"time"

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

// enqueuedKeys calls event and returns the keys that the event handlers then enqueue, sorted.
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
		{"orphan added enqueues all matching owners", func(r *fixture) { r.podAdded(newPod("p", orphaned)) }, []string{"ns/twin", "ns/web"}},
		{"orphan that no owner selects", func(r *fixture) {
			r.podAdded(newPod("p", orphaned, func(p *corev1.Pod) { p.Labels = map[string]string{"app": "x"} }))
		}, nil},
		{"orphan in another namespace", func(r *fixture) {
			r.podAdded(newPod("p", orphaned, func(p *corev1.Pod) { p.Namespace = "other" }))
		}, nil},
		{"terminating orphan", func(r *fixture) { r.podAdded(newPod("p", orphaned, terminating)) }, nil},
		{"pod of a deleted owner with the same name", func(r *fixture) { r.podAdded(newPod("p", of("web", "earlier"))) }, nil},
		{"pod with an owner of another kind", func(r *fixture) { r.podAdded(newPod("p", kind("ReplicationController"))) }, nil},
		{"pod failed", func(r *fixture) { r.podUpdated(newPod("p"), newPod("p", version("11"), phase(corev1.PodFailed))) }, []string{"ns/web"}},
		{"pod became ready", func(r *fixture) { r.podUpdated(newPod("p"), newPod("p", version("11"), ready(5*time.Second))) }, []string{"ns/web"}},
		{"pod became ready again", func(r *fixture) {
			r.podUpdated(newPod("p", ready(5*time.Second)), newPod("p", version("11"), ready(6*time.Second)))
		}, []string{"ns/web"}},
		{"pod relabeled", func(r *fixture) { r.podUpdated(newPod("p"), newPod("p", version("11"), relabeled)) }, []string{"ns/web"}},
		{"pod terminating", func(r *fixture) { r.podUpdated(newPod("p"), newPod("p", version("11"), terminating)) }, []string{"ns/web"}},
		{"pod assigned to a node", func(r *fixture) {
			r.podUpdated(newPod("p"), newPod("p", version("11"), func(p *corev1.Pod) { p.Spec.NodeName = "node" }))
		}, nil},
		{"resync", func(r *fixture) { r.podUpdated(newPod("p"), newPod("p")) }, nil},
		{"controllerRef changed", func(r *fixture) {
			r.podUpdated(newPod("p"), newPod("p", version("11"), of("db", "db")))
		}, []string{"ns/db", "ns/web"}},
		{"controllerRef removed enqueues the old owner and all matching owners", func(r *fixture) {
			r.podUpdated(newPod("p"), newPod("p", version("11"), orphaned))
		}, []string{"ns/twin", "ns/web"}},
		{"orphan relabeled", func(r *fixture) {
			r.podUpdated(newPod("p", orphaned), newPod("p", version("11"), orphaned, relabeled))
		}, []string{"ns/db"}},
		{"other update of an orphan", func(r *fixture) { r.podUpdated(newPod("p", orphaned), newPod("p", version("11"), orphaned)) }, nil},
		{"pod deleted", func(r *fixture) { r.podDeleted(newPod("p")) }, []string{"ns/web"}},
		{"orphan deleted", func(r *fixture) { r.podDeleted(newPod("p", orphaned)) }, nil},
		{"deletion missed", func(r *fixture) {
			r.podDeleted(cache.DeletedFinalStateUnknown{Key: "ns/p", Obj: newPod("p")})
		}, []string{"ns/web"}},
		{"tombstone with another type", func(r *fixture) { r.podDeleted(cache.DeletedFinalStateUnknown{Key: "ns/p", Obj: "?"}) }, nil},
		{"pod recreated", func(r *fixture) {
			r.podUpdated(newPod("p"), newPod("p", version("11"), of("db", "db"), func(p *corev1.Pod) { p.UID = "later" }))
		}, []string{"ns/db", "ns/web"}},
		{"owner added", func(r *fixture) { r.ownerChanged(newSet(1)) }, []string{"ns/web"}},
		{"owner updated", func(r *fixture) { r.ownerUpdated(newSet(1), newSet(2)) }, []string{"ns/web"}},
		{"owner deleted", func(r *fixture) { r.ownerDeleted(newSet(1)) }, []string{"ns/web"}},
		{"owner deletion missed", func(r *fixture) {
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
		{"pod added", awaitCreation, func(r *fixture) { r.podAdded(newPod("p")) }, true},
		{"pod added while terminating", awaitCreation, func(r *fixture) { r.podAdded(newPod("p", terminating)) }, true},
		{"other pod added", awaitCreation, func(r *fixture) { r.podAdded(newPod("q")) }, false},
		{"pod updated", awaitDeletion, func(r *fixture) { r.podUpdated(newPod("p"), newPod("p", version("11"))) }, false},
		{"pod terminating", awaitDeletion, func(r *fixture) { r.podUpdated(newPod("p"), newPod("p", version("11"), terminating)) }, true},
		{"pod recreated and terminating", awaitDeletion, func(r *fixture) { r.podAdded(newPod("p", terminating)) }, true},
		{"pod recreated", awaitDeletion, func(r *fixture) { r.podAdded(newPod("p")) }, false},
		{"pod deleted", awaitDeletion, func(r *fixture) { r.podDeleted(newPod("p")) }, true},
		{"pod deletion missed", awaitDeletion, func(r *fixture) { r.podDeleted(cache.DeletedFinalStateUnknown{Key: "ns/p", Obj: newPod("p")}) }, true},
		{"controllerRef changed", awaitDeletion, func(r *fixture) { r.podUpdated(newPod("p"), newPod("p", version("11"), orphaned)) }, true},
		{"pod recreated with another owner", awaitDeletion, func(r *fixture) {
			r.podUpdated(newPod("p"), newPod("p", version("11"), func(p *corev1.Pod) { p.UID = "later" }))
		}, true},
		{"owner deleted", awaitDeletion, func(r *fixture) { r.ownerDeleted(newSet(1)) }, true},
		{"owner recreated", awaitDeletion, func(r *fixture) {
			r.ownerUpdated(newSet(1), newSet(1, func(s *appsv1.ReplicaSet) {
				s.ObjectMeta = metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "later"}
			}))
		}, true},
		{"owner updated", awaitDeletion, func(r *fixture) { r.ownerUpdated(newSet(1), newSet(2)) }, false},
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
