package deployment

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

// enqueuedKeys calls event and returns the keys that the event handlers then enqueue, sorted.
func enqueuedKeys(t *testing.T, r *fixture, event func()) []string {
	t.Helper()
	return looptest.EnqueuedKeys(t, func(loop *workloop.Loop) {
		r.loop = loop
		event()
	})
}

func deploymentNamed(name string, uid types.UID, app string) *appsv1.Deployment {
	return newDeployment(1, func(d *appsv1.Deployment) {
		d.Name, d.UID, d.Spec.Selector.MatchLabels["app"] = name, uid, app
	})
}

func newerVersion(set *appsv1.ReplicaSet) *appsv1.ReplicaSet { set.ResourceVersion = "11"; return set }

func TestEnqueuedKeys(t *testing.T) {
	type set = *appsv1.ReplicaSet
	of := func(change ...func(set) set) set { return newSetOf(newDeployment(1), "v1", 1, 1, change...) }
	by := func(name string, uid types.UID) func(set) set {
		return func(s set) set { s.OwnerReferences[0].Name, s.OwnerReferences[0].UID = name, uid; return s }
	}
	terminating := func(s set) set { s.DeletionTimestamp = &metav1.Time{Time: now}; return s }
	later := func(s set) set { s.UID = "later"; return s }
	tests := []struct {
		name  string
		event func(*fixture)
		want  []string
	}{
		{"Deployment added", func(r *fixture) { r.enqueue(newDeployment(1)) }, []string{"ns/web"}},
		{"Deployment updated", func(r *fixture) { r.deploymentUpdated(newDeployment(1), newDeployment(2)) }, []string{"ns/web"}},
		{"Deployment deleted", func(r *fixture) { r.deploymentDeleted(newDeployment(1)) }, []string{"ns/web"}},
		{"ReplicaSet added", func(r *fixture) { r.replicaSetAdded(of()) }, []string{"ns/web"}},
		{"orphan added enqueues all matching Deployments", func(r *fixture) { r.replicaSetAdded(of(orphan)) }, []string{"ns/twin", "ns/web"}},
		{"orphan that no Deployment selects", func(r *fixture) { r.replicaSetAdded(of(orphan, func(s set) set { s.Labels = nil; return s })) }, nil},
		{"terminating orphan", func(r *fixture) { r.replicaSetAdded(of(orphan, terminating)) }, nil},
		{"ReplicaSet of a deleted Deployment with the same name", func(r *fixture) { r.replicaSetAdded(of(by("web", "earlier"))) }, nil},
		{"ReplicaSet with an owner of another kind", func(r *fixture) {
			r.replicaSetAdded(of(func(s set) set { s.OwnerReferences[0].Kind = "Rollout"; return s }))
		}, nil},
		{"ReplicaSet updated", func(r *fixture) { r.replicaSetUpdated(of(), of(newerVersion)) }, []string{"ns/web"}},
		{"resync", func(r *fixture) { r.replicaSetUpdated(of(), of()) }, nil},
		{"controllerRef changed", func(r *fixture) { r.replicaSetUpdated(of(), of(newerVersion, by("db", "db"))) }, []string{"ns/db", "ns/web"}},
		{"controllerRef removed enqueues the old owner and all matching Deployments", func(r *fixture) { r.replicaSetUpdated(of(), of(newerVersion, orphan)) }, []string{"ns/twin", "ns/web"}},
		{"orphan relabeled", func(r *fixture) { r.replicaSetUpdated(of(orphan), of(newerVersion, orphan, relabeled)) }, []string{"ns/db"}},
		{"other update of an orphan", func(r *fixture) { r.replicaSetUpdated(of(orphan), of(newerVersion, orphan)) }, nil},
		{"orphan recreated", func(r *fixture) { r.replicaSetUpdated(of(orphan), of(newerVersion, orphan, later)) }, []string{"ns/twin", "ns/web"}},
		{"ReplicaSet recreated with another owner", func(r *fixture) { r.replicaSetUpdated(of(), of(newerVersion, later, by("db", "db"))) }, []string{"ns/db", "ns/web"}},
		{"ReplicaSet deleted", func(r *fixture) { r.replicaSetDeleted(of()) }, []string{"ns/web"}},
		{"deletion missed", func(r *fixture) { r.replicaSetDeleted(cache.DeletedFinalStateUnknown{Key: "ns/web-v1", Obj: of()}) }, []string{"ns/web"}},
		{"orphan deleted", func(r *fixture) { r.replicaSetDeleted(of(orphan)) }, nil},
		{"tombstone with another type", func(r *fixture) { r.replicaSetDeleted(cache.DeletedFinalStateUnknown{Key: "ns/web-v1", Obj: "?"}) }, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newFixture(t, newDeployment(1))
			for _, d := range []*appsv1.Deployment{deploymentNamed("twin", "twin", "web"), deploymentNamed("db", "db", "db")} {
				r.deployments[d.Name] = d
			}
			r.deliver()
			if diff := cmp.Diff(test.want, enqueuedKeys(t, r, func() { test.event(r) })); diff != "" {
				t.Errorf("enqueued keys (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPodEnded checks when the end of a pod enqueues the Deployment. The pod must be the last
// running pod of its ReplicaSet, and the rollout must be waiting for its end.
func TestPodEnded(t *testing.T) {
	set := newSetOf(newDeployment(1), "v1", 1, 0)
	pod := func(name string, phase corev1.PodPhase) *corev1.Pod { return podOf(set, name, phase) }
	deletePod := func(pod *corev1.Pod) func(*fixture) { return func(r *fixture) { r.podDeleted(pod) } }
	tests := []struct {
		name     string
		strategy func(*appsv1.Deployment)
		left     []*corev1.Pod
		event    func(*fixture)
		enqueues bool
	}{
		{"last pod deleted", asRecreate, nil, deletePod(pod("a", corev1.PodRunning)), true},
		{"deletion missed", asRecreate, nil, func(r *fixture) {
			r.podDeleted(cache.DeletedFinalStateUnknown{Key: "ns/a", Obj: pod("a", corev1.PodRunning)})
		}, true},
		{"another pod is running", asRecreate, []*corev1.Pod{pod("b", corev1.PodRunning)}, deletePod(pod("a", corev1.PodRunning)), false},
		{"only terminal pods are left", asRecreate, []*corev1.Pod{pod("b", corev1.PodFailed), pod("c", corev1.PodSucceeded)}, deletePod(pod("a", corev1.PodRunning)), true},
		{"last pod becomes terminal", asRecreate, []*corev1.Pod{pod("a", corev1.PodFailed)}, func(r *fixture) {
			r.podUpdated(pod("a", corev1.PodRunning), pod("a", corev1.PodFailed))
		}, true},
		{"other pod update", asRecreate, []*corev1.Pod{pod("a", corev1.PodRunning)}, func(r *fixture) {
			r.podUpdated(pod("a", corev1.PodPending), pod("a", corev1.PodRunning))
		}, false},
		{"pod was terminal before", asRecreate, []*corev1.Pod{pod("a", corev1.PodFailed)}, func(r *fixture) {
			r.podUpdated(pod("a", corev1.PodFailed), pod("a", corev1.PodFailed))
		}, false},
		{"pod recreated without an owner", asRecreate, nil, func(r *fixture) {
			later := pod("a", corev1.PodRunning)
			later.UID, later.OwnerReferences = "later", nil
			r.podUpdated(pod("a", corev1.PodRunning), later)
		}, true},
		{"ReplicaSet has replicas", asRecreate, nil, func(r *fixture) {
			r.sets[set.Name] = newSetOf(newDeployment(1), "v1", 1, 1)
			r.deliver()
			r.podDeleted(pod("a", corev1.PodRunning))
		}, false},
		{"ReplicaSet status still has replicas", asRecreate, nil, func(r *fixture) {
			r.sets[set.Name] = newSetOf(newDeployment(1), "v1", 1, 0, withAvailablePods(1))
			r.deliver()
			r.podDeleted(pod("a", corev1.PodRunning))
		}, false},
		{"RollingUpdate does not wait", func(*appsv1.Deployment) {}, nil, deletePod(pod("a", corev1.PodRunning)), false},
		{"orphan", asRecreate, nil, func(r *fixture) {
			orphan := pod("a", corev1.PodRunning)
			orphan.OwnerReferences = nil
			r.podDeleted(orphan)
		}, false},
		{"pod of a deleted ReplicaSet with the same name", asRecreate, nil, func(r *fixture) {
			earlier := pod("a", corev1.PodRunning)
			earlier.OwnerReferences[0].UID = "earlier"
			r.podDeleted(earlier)
		}, false},
		{"pod of a ReplicationController with the same name", asRecreate, nil, func(r *fixture) {
			other := pod("a", corev1.PodRunning)
			other.OwnerReferences[0].Kind = "ReplicationController"
			r.podDeleted(other)
		}, false},
		{"tombstone with another type", asRecreate, nil, func(r *fixture) { r.podDeleted(cache.DeletedFinalStateUnknown{Key: "ns/a", Obj: "?"}) }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newFixture(t, newDeployment(1, test.strategy), set)
			r.setPods(t, test.left...)
			if got := enqueuedKeys(t, r, func() { test.event(r) }); (len(got) > 0) != test.enqueues {
				t.Errorf("enqueued %v, want one key: %t", got, test.enqueues)
			}
		})
	}
}

func TestRecordedWritesAreDropped(t *testing.T) {
	for name, event := range map[string]func(*fixture){
		"deleted":             func(r *fixture) { r.deploymentDeleted(newDeployment(1)) },
		"deletion missed":     func(r *fixture) { r.deploymentDeleted(cache.DeletedFinalStateUnknown{Key: key, Obj: newDeployment(1)}) },
		"recreated":           func(r *fixture) { r.deploymentUpdated(newDeployment(1), deploymentNamed("web", "later", "web")) },
		"not found by a sync": func(r *fixture) { clear(r.deployments); r.deliver(); _ = r.sync(r.t.Context(), key) },
		"updated":             func(r *fixture) { r.deploymentUpdated(newDeployment(1), newDeployment(2)) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t, newDeployment(1))
			owner := ownership.ID{Key: key, UID: "deployment"}
			r.deploymentWrites.Wrote(owner, deploymentsResource, "999")
			event(r)
			if remembers := r.deploymentWrites.StaleReason(key) != ""; remembers != (name == "updated") {
				t.Errorf("recorded writes are kept: %t", remembers)
			}
		})
	}
}
