package deployment

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
)

// tester contains the methods of testing.T and rapid.T that the helpers of these tests call.
type tester interface {
	Helper()
	Context() context.Context
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// settle runs syncs until the controller writes nothing any more. After each sync, the
// ReplicaSets get their pods.
func settle(t tester, r *fixture) {
	t.Helper()
	for range 200 {
		before := r.version
		if err := r.sync(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if r.version == before {
			return
		}
		r.syncReplicaSets()
	}
	t.Fatalf("writes did not stop; the last calls: %v", r.calls[len(r.calls)-5:])
}

// replicas returns spec.replicas of each ReplicaSet in the fake API server. The key is the image
// in the pod template.
func replicas(r *fixture) map[string]int32 {
	by := map[string]int32{}
	for _, set := range r.sets {
		by[set.Spec.Template.Spec.Containers[0].Image] += *set.Spec.Replicas
	}
	return by
}

// TestScaleToCurrentSize checks a scaling whose only active ReplicaSet already has the new size.
// Its annotations still have the former size, but the scaling must end
// (kubernetes/kubernetes#102551).
func TestScaleToCurrentSize(t *testing.T) {
	was := newDeployment(5, surgeAndUnavailable(0, 1))
	d := newDeployment(5, surgeAndUnavailable(0, 1), image("v2"))
	r := newFixture(t, d, newSetOf(was, "v1", 1, 4, withAvailablePods(4)), newSetOf(was, "v2", 2, 0))
	r.updateSpec(scaled(4))
	settle(t, r)
	if diff := cmp.Diff(map[string]int32{"v1": 0, "v2": 4}, replicas(r)); diff != "" {
		t.Errorf("replicas (-want +got):\n%s", diff)
	}
}

// TestScaleDuringRecreate checks a change of spec.replicas during a rollout with the strategy
// Recreate. The rollout has several active ReplicaSets, and must complete.
func TestScaleDuringRecreate(t *testing.T) {
	was := newDeployment(5, asRecreate)
	r := newFixture(t, newDeployment(4, asRecreate, image("v2")), newSetOf(was, "v1", 1, 3, withAvailablePods(3)), newSetOf(was, "v2", 2, 2, withAvailablePods(2)))
	settle(t, r)
	if diff := cmp.Diff(map[string]int32{"v1": 0, "v2": 4}, replicas(r)); diff != "" {
		t.Errorf("replicas (-want +got):\n%s", diff)
	}
}

// TestScaleAfterPartialFailure checks the retry of a scaling that failed halfway. The retry must
// keep the original proportions (kubernetes/kubernetes#44734).
func TestScaleAfterPartialFailure(t *testing.T) {
	was := newDeployment(10, surgeAndUnavailable(3, 2))
	r := newFixture(t, newDeployment(15, surgeAndUnavailable(5, 2), image("v2"), asPaused), newSetOf(was, "v1", 1, 8, withAvailablePods(8)), newSetOf(was, "v2", 2, 5))
	r.callErrors["update replicasets web-v2"] = []error{errTooManyRequests, nil}
	if err := r.sync(t.Context(), key); err == nil {
		t.Fatal("sync returned no error")
	}
	settle(t, r)
	if diff := cmp.Diff(map[string]int32{"v1": 12, "v2": 8}, replicas(r)); diff != "" {
		t.Errorf("replicas (-want +got):\n%s", diff)
	}
}

// TestLostResponses checks a create of a ReplicaSet that succeeds although its response is an
// error. The next sync must find the ReplicaSet and must not count a collision.
func TestLostResponses(t *testing.T) {
	for _, stale := range []bool{false, true} {
		t.Run(fmt.Sprintf("stale caches: %t", stale), func(t *testing.T) {
			d := newDeployment(3)
			r := newFixture(t, d)
			r.cachesStale = stale
			r.lostResponses[createCall(d)] = true
			if err := r.sync(t.Context(), key); err == nil {
				t.Fatal("the response was not lost")
			}
			if err := r.sync(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			r.cachesStale = false
			r.deliver()
			settle(t, r)
			if got := *r.onlyReplicaSet(t).Spec.Replicas; got != 3 {
				t.Errorf("%d replicas, want 3", got)
			}
			if count := r.deployment().Status.CollisionCount; count != nil {
				t.Errorf("collisionCount %d, want none", *count)
			}
		})
	}
}

// TestRecreatedDeployment checks that the controller finds its own new ReplicaSet by name. The
// cache still contains the ReplicaSet with this name of a deleted Deployment.
func TestRecreatedDeployment(t *testing.T) {
	d := newDeployment(3)
	former := withCollidingName(d)
	former.Spec.Template = *d.Spec.Template.DeepCopy()
	r := newFixture(t, d, former)
	delete(r.sets, former.Name)
	r.cachesStale = true
	r.lostResponses[createCall(d)] = true
	if err := r.sync(t.Context(), key); err == nil {
		t.Fatal("the response was not lost")
	}
	for range 2 { // the second sync waits for the cache
		if err := r.sync(t.Context(), key); err != nil && r.replicaSetWrites.StaleReason(key) == "" {
			t.Fatal(err)
		}
	}
	r.cachesStale = false
	r.deliver()
	settle(t, r)
	if got := *r.onlyReplicaSet(t).Spec.Replicas; got != 3 {
		t.Errorf("%d replicas, want 3", got)
	}
	if count := r.deployment().Status.CollisionCount; count != nil {
		t.Errorf("collisionCount %d, want none", *count)
	}
}

// TestCollision checks that the new ReplicaSet gets another name if its name is already taken.
func TestCollision(t *testing.T) {
	d := newDeployment(3)
	own, twin := withCollidingName(d), withCollidingName(d)
	own.OwnerReferences[0].UID = d.UID
	own.Labels = nil // so that the Deployment does not adopt it
	twin.Spec.Template = *d.Spec.Template.DeepCopy()
	for _, test := range []struct {
		name string
		set  *appsv1.ReplicaSet
		want map[string]int32
	}{
		{"other template, other owner", withCollidingName(d), map[string]int32{"v1": 3, "v9": 1}},
		{"other template, same owner", own, map[string]int32{"v1": 3, "v9": 1}},
		{"same template, other owner", twin, map[string]int32{"v1": 3 + 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newFixture(t, d.DeepCopy(), test.set)
			settle(t, r)
			if got := r.deployment().Status.CollisionCount; got == nil || *got != 1 {
				t.Errorf("collisionCount %v, want 1", got)
			}
			if diff := cmp.Diff(test.want, replicas(r)); diff != "" {
				t.Errorf("replicas (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCollisionIsCountedOnce checks that collisionCount grows only once for one collision, even
// if the cache stays stale.
func TestCollisionIsCountedOnce(t *testing.T) {
	d := newDeployment(3)
	r := newFixture(t, d, withCollidingName(d))
	r.cachesStale = true
	for range 3 {
		if err := r.sync(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.deployment().Status.CollisionCount; got == nil || *got != 1 {
		t.Errorf("collisionCount %v, want 1", got)
	}
}

func TestRollback(t *testing.T) {
	unable := func(what string) string { return "Warning DeploymentRollbackRevisionNotFound Unable to find " + what }
	tests := []struct {
		name  string
		to    string
		sets  int // number of revisions; the last one is that of the new ReplicaSet
		image string
		event string
	}{
		{"to a revision", "1", 3, "v1", `Normal DeploymentRollback Rolled back deployment "web" to revision 1`},
		{"to the previous revision", "0", 3, "v2", `Normal DeploymentRollback Rolled back deployment "web" to revision 2`},
		{"to a missing revision", "9", 3, "v3", unable("the revision to rollback to.")},
		{"to the previous revision, with one revision", "0", 1, "v1", unable("last revision.")},
		{"not a number", "first", 3, "v3", unable(`the revision to rollback to: expected a number, got "first"`)},
		{"empty annotation", "", 3, "v3", unable(`the revision to rollback to: expected a number, got ""`)},
		{"to the current revision", "3", 3, "v3", `Warning DeploymentRollbackTemplateUnchanged The rollback revision contains the same template as current deployment "web"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDeployment(3, image(fmt.Sprintf("v%d", test.sets)), annotated(appsv1.DeprecatedRollbackTo, test.to))
			var sets []*appsv1.ReplicaSet
			for i := 1; i < test.sets; i++ {
				sets = append(sets, newSetOf(d, fmt.Sprintf("v%d", i), int64(i), 0))
			}
			sets = append(sets, newSetOf(d, fmt.Sprintf("v%d", test.sets), int64(test.sets), 3, withAvailablePods(3)))
			r := newFixture(t, d, sets...)
			if err := r.sync(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{writeSpec}, r.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			settle(t, r)
			if got := r.deployment().Spec.Template.Spec.Containers[0].Image; got != test.image {
				t.Errorf("image %s, want %s", got, test.image)
			}
			if got := replicas(r)[test.image]; got != 3 {
				t.Errorf("%d replicas of %s, want 3", got, test.image)
			}
			if _, requested := rollbackTo(r.deployment().Annotations); requested {
				t.Error("the rollback annotation was not removed")
			}
			if diff := cmp.Diff(test.event, r.events.recorded[0]); diff != "" || countRollbacks(r) != 1 {
				t.Errorf("events %v\nfirst (-want +got):\n%s", r.events.recorded, diff)
			}
		})
	}
}

// TestRollbackHappensOnce checks that the controller does a rollback only once, and emits its
// event only once. The cache does not contain the rollback yet when the next sync runs.
func TestRollbackHappensOnce(t *testing.T) {
	d := newDeployment(3, image("v2"), annotated(appsv1.DeprecatedRollbackTo, "0"))
	r := newFixture(t, d, newSetOf(d, "v1", 1, 0), newSetOf(d, "v2", 2, 3, withAvailablePods(3)))
	r.cachesStale = true
	for range 3 {
		if err := r.sync(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{writeSpec}, r.calls); diff != "" || countRollbacks(r) != 1 {
		t.Errorf("events %v, calls (-want +got):\n%s", r.events.recorded, diff)
	}
}

// TestRollbackKeepsReplacedTemplate checks a rollback while no ReplicaSet has the Deployment's
// template yet. Afterwards, a ReplicaSet with this template must exist, so that users can return
// to it.
func TestRollbackKeepsReplacedTemplate(t *testing.T) {
	d := newDeployment(3, image("v2"), annotated(appsv1.DeprecatedRollbackTo, "1"))
	r := newFixture(t, d, newSetOf(d, "v1", 1, 3, withAvailablePods(3)))
	settle(t, r)
	if diff := cmp.Diff(map[string]int32{"v1": 3, "v2": 0}, replicas(r)); diff != "" {
		t.Errorf("replicas (-want +got):\n%s", diff)
	}
	if got := r.deployment().Annotations[revisionAnnotation]; got != "3" {
		t.Errorf("revision %s, want 3", got)
	}
}

func countRollbacks(r *fixture) int {
	n := 0
	for _, event := range r.events.recorded {
		if strings.Contains(event, " "+reasonRollback) {
			n++
		}
	}
	return n
}

// TestFailedUpdateKeepsProgress checks a sync that cannot update the new ReplicaSet, but writes a
// status that shows progress. The progress deadline must start again, because the next sync compares
// with this status.
func TestFailedUpdateKeepsProgress(t *testing.T) {
	d := newDeployment(3, image("v2"), deadline(60), progressing(reasonReplicaSetUpdated, 30*time.Second))
	r := newFixture(t, d, newSetOf(d, "v1", 3, 3, withAvailablePods(3)), newSetOf(d, "v2", 1, 1, withAvailablePods(1)))
	r.callErrors["update replicasets web-v2"] = []error{errTooManyRequests}
	if err := r.sync(t.Context(), key); err == nil {
		t.Fatal("the sync returned no error, although it could not update the revision")
	}
	status := &r.deployments["web"].Status
	if got := findCondition(status.Conditions, appsv1.DeploymentProgressing); status.UpdatedReplicas != 1 || got == nil || !got.LastUpdateTime.Time.Equal(now) {
		t.Errorf("%d updated replicas, condition %v; want 1, and the lastUpdateTime %v", status.UpdatedReplicas, got, now)
	}
}
