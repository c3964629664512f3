package deployment

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
)

// These are the requests that a sync may send to the API server.
const (
	writeStatus = "update deployments/status web"
	writeSpec   = "update deployments web"
	read        = "get deployments web"
)

func createCall(d *appsv1.Deployment) string { return "create replicasets " + newReplicaSetName(d) }

// reporting gives a Deployment the status that results from its ReplicaSets, and returns the
// Deployment.
func reporting(d *appsv1.Deployment, sets ...*appsv1.ReplicaSet) *appsv1.Deployment {
	l, err := limitsOf(d)
	if err != nil {
		panic(err)
	}
	r := &rollout{deployment: d, limits: l, now: now, estimateProgress: true}
	r.setSets(sets)
	reported := d.DeepCopy()
	reported.Status = r.status()
	if set := r.newSet(); set != nil {
		annotated(revisionAnnotation, set.Annotations[revisionAnnotation])(reported)
	}
	return reported
}

// TestSync checks which requests a sync sends to the API server, and in which order.
func TestSync(t *testing.T) {
	type sets = []*appsv1.ReplicaSet
	d3, d3v2 := newDeployment(3), newDeployment(3, image("v2"))
	recreated := newDeployment(3, image("v2"), asRecreate)
	old := newSetOf(d3, "v1", 1, 3, withAvailablePods(3))
	tests := []struct {
		name       string
		deployment *appsv1.Deployment
		sets       sets
		upToDate   bool // the status of the Deployment matches the ReplicaSets
		pods       []*corev1.Pod
		before     func(*fixture)
		answers    map[string][]error
		want       []string
		wantErr    string
		events     []string
	}{
		{
			name: "up to date", deployment: d3, sets: sets{old}, upToDate: true,
		},
		{
			name: "first rollout", deployment: d3, want: []string{createCall(d3), writeStatus},
			events: []string{"Normal ScalingReplicaSet Scaled up replica set " + newReplicaSetName(d3) + " from 0 to 3"},
		},
		{
			name: "new template: creates a ReplicaSet", deployment: d3v2, sets: sets{old}, upToDate: true,
			want: []string{createCall(d3v2), writeStatus}, events: []string{"Normal ScalingReplicaSet Scaled up replica set " + newReplicaSetName(d3v2) + " from 0 to 1"},
		},
		{
			name:       "scale-up takes precedence over scale-down",
			deployment: d3v2, sets: sets{newSetOf(d3, "v1", 1, 2, withAvailablePods(2)), newSetOf(d3v2, "v2", 2, 1, withAvailablePods(1))}, upToDate: true,
			want: []string{"update replicasets web-v2", writeStatus}, events: []string{"Normal ScalingReplicaSet Scaled up replica set web-v2 from 1 to 2"},
		},
		{
			name: "no scale-up possible: scale-down", deployment: d3v2, sets: sets{old, newSetOf(d3v2, "v2", 2, 1, withAvailablePods(1))}, upToDate: true,
			want: []string{"update replicasets web-v1"}, events: []string{"Normal ScalingReplicaSet Scaled down replica set web-v1 from 3 to 2"},
		},
		{
			name: "neither scale-up nor scale-down: wait", deployment: d3v2, sets: sets{old, newSetOf(d3v2, "v2", 2, 1)}, upToDate: true,
		},
		{
			name:       "maxSurge 0: new ReplicaSet with 0 replicas, old one scaled down at once",
			deployment: newDeployment(3, image("v2"), surgeAndUnavailable(0, 1)), sets: sets{newSetOf(newDeployment(3, surgeAndUnavailable(0, 1)), "v1", 1, 3, withAvailablePods(3))}, upToDate: true,
			want:   []string{createCall(d3v2), "update replicasets web-v1", writeStatus},
			events: []string{"Normal ScalingReplicaSet Scaled down replica set web-v1 from 3 to 2"},
		},
		{
			name: "maxSurge and maxUnavailable: only scale-up", deployment: newDeployment(3, image("v2"), surgeAndUnavailable(1, 1)),
			sets: sets{newSetOf(newDeployment(3, surgeAndUnavailable(1, 1)), "v1", 1, 3, withAvailablePods(3))}, upToDate: true,
			want:   []string{createCall(d3v2), writeStatus},
			events: []string{"Normal ScalingReplicaSet Scaled up replica set " + newReplicaSetName(d3v2) + " from 0 to 1"},
		},
		{
			name: "new ReplicaSet scaled down and up: wait for its status", deployment: d3v2, upToDate: true,
			sets: sets{old, newSetOf(d3v2, "v2", 2, 1, withAvailablePods(2), unobserved)},
		},
		{
			name: "new ReplicaSet scaled up, and its status is late: scale-down", deployment: newDeployment(3, image("v2"), surgeAndUnavailable(2, 0)), upToDate: true,
			sets: sets{
				newSetOf(newDeployment(3, surgeAndUnavailable(2, 0)), "v1", 1, 3, withAvailablePods(3)),
				newSetOf(newDeployment(3, surgeAndUnavailable(2, 0)), "v2", 2, 2, withAvailablePods(1), unobserved),
			},
			want: []string{"update replicasets web-v1", writeStatus}, events: []string{"Normal ScalingReplicaSet Scaled down replica set web-v1 from 3 to 2"},
		},
		{
			name:       "failed scale-down is an error, and the status is written",
			deployment: d3v2, sets: sets{old, newSetOf(d3v2, "v2", 2, 1, withAvailablePods(1))}, upToDate: true,
			answers: map[string][]error{"update replicasets web-v1": {errTooManyRequests}},
			before:  func(r *fixture) { r.updateSpec(func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 0 }) },
			want:    []string{"update replicasets web-v1", writeStatus}, wantErr: "slow down",
		},

		{
			name: "Recreate: old ReplicaSets to 0", deployment: recreated, sets: sets{newSetOf(recreated, "v1", 1, 3, withAvailablePods(3))}, upToDate: true,
			want: []string{"update replicasets web-v1"}, events: []string{"Normal ScalingReplicaSet Scaled down replica set web-v1 from 3 to 0"},
		},
		{
			name: "Recreate: failed scale-down is an error", deployment: recreated, sets: sets{newSetOf(recreated, "v1", 1, 3, withAvailablePods(3))}, upToDate: true,
			answers: map[string][]error{"update replicasets web-v1": {errTooManyRequests}}, want: []string{"update replicasets web-v1"}, wantErr: "slow down",
		},
		{
			name: "Recreate: old status still has replicas", deployment: recreated, sets: sets{newSetOf(recreated, "v1", 1, 0, withAvailablePods(1))}, upToDate: true,
		},
		{
			name: "Recreate: old pod is running", deployment: recreated, sets: sets{newSetOf(recreated, "v1", 1, 0)}, upToDate: true,
			pods: []*corev1.Pod{podOf(old, "p", corev1.PodRunning)},
		},
		{
			name: "Recreate: old pods are terminal", deployment: recreated, sets: sets{newSetOf(recreated, "v1", 1, 0)}, upToDate: true,
			pods:   []*corev1.Pod{podOf(old, "p", corev1.PodFailed)},
			want:   []string{createCall(recreated), writeStatus},
			events: []string{"Normal ScalingReplicaSet Scaled up replica set " + newReplicaSetName(recreated) + " from 0 to 3"},
		},
		{
			name:       "Recreate: reuses an existing ReplicaSet",
			deployment: recreated, sets: sets{newSetOf(recreated, "v1", 1, 0), newSetOf(recreated, "v2", 2, 0)}, upToDate: true,
			want: []string{"update replicasets web-v2", writeStatus}, events: []string{"Normal ScalingReplicaSet Scaled up replica set web-v2 from 0 to 3"},
		},
		{
			name:       "Recreate: pods of the new ReplicaSet do not count",
			deployment: recreated, sets: sets{newSetOf(recreated, "v1", 1, 0), newSetOf(recreated, "v2", 2, 3, withAvailablePods(3))}, upToDate: true,
			pods: []*corev1.Pod{podOf(newSetOf(recreated, "v2", 2, 3), "p", corev1.PodRunning)},
		},

		{
			name: "scaling takes precedence over a new template", deployment: newDeployment(5, image("v2")), sets: sets{old}, upToDate: true,
			want: []string{"update replicasets web-v1", writeStatus}, events: []string{"Normal ScalingReplicaSet Scaled up replica set web-v1 from 3 to 5"},
		},
		{
			name:       "scaling during a rollout is proportional",
			deployment: newDeployment(15, image("v2"), surgeAndUnavailable(5, 2)), sets: sets{newSetOf(newDeployment(10, surgeAndUnavailable(3, 2)), "v1", 1, 8, withAvailablePods(8)), newSetOf(newDeployment(10, surgeAndUnavailable(3, 2)), "v2", 2, 5)}, upToDate: true,
			want:   []string{"update replicasets web-v1", "update replicasets web-v2", writeStatus},
			events: []string{"Normal ScalingReplicaSet Scaled up replica set web-v1 from 8 to 12", "Normal ScalingReplicaSet Scaled up replica set web-v2 from 5 to 8"},
		},

		{
			name: "paused: no new ReplicaSet", deployment: newDeployment(3, image("v2"), asPaused), sets: sets{old}, upToDate: true,
			want: nil,
		},
		{
			name: "paused: scaled", deployment: newDeployment(2, image("v2"), asPaused), sets: sets{old}, upToDate: true,
			want: []string{"update replicasets web-v1"}, events: []string{"Normal ScalingReplicaSet Scaled down replica set web-v1 from 3 to 2"},
		},
		{
			name:       "paused: cleaned up",
			deployment: newDeployment(3, asPaused, image("v2"), historyLimit(1)), sets: sets{newSetOf(d3, "v0", 0, 0), old}, upToDate: true,
			want: []string{"delete replicasets web-v0"},
		},
		{
			name: "resumed: reported before anything else", deployment: newDeployment(3, image("v2"), progressing(reasonPaused, time.Hour)),
			sets: sets{old}, want: []string{writeStatus},
		},
		{
			name:       "paused with a rollback annotation: not cleaned up",
			deployment: newDeployment(3, asPaused, historyLimit(0), annotated(appsv1.DeprecatedRollbackTo, "1")), sets: sets{newSetOf(d3, "v0", 0, 0), old}, upToDate: true,
			want: nil,
		},

		{
			name: "terminating: status only", deployment: newDeployment(9, image("v2"), deleting), sets: sets{old, newSetOf(d3, "v0", 0, 0, orphan)},
			want: []string{writeStatus},
		},

		{
			name:       "complete: cleaned up",
			deployment: newDeployment(3, historyLimit(1)), sets: sets{newSetOf(d3, "v0", 0, 0), newSetOf(d3, "va", 1, 0), newSetOf(d3, "v1", 2, 3, withAvailablePods(3))}, upToDate: true,
			want: []string{"delete replicasets web-v0"},
		},
		{
			name:       "not complete: not cleaned up",
			deployment: newDeployment(3, historyLimit(1)), sets: sets{newSetOf(d3, "v0", 0, 0), newSetOf(d3, "va", 1, 0), newSetOf(d3, "v1", 2, 3, withAvailablePods(2))}, upToDate: true,
		},
		{
			name: "ReplicaSet already deleted", deployment: newDeployment(3, historyLimit(0)), sets: sets{newSetOf(d3, "v0", 0, 0), old}, upToDate: true,
			answers: map[string][]error{"delete replicasets web-v0": {errNotFound}}, want: []string{"delete replicasets web-v0"},
		},
		{
			name: "failed cleanup", deployment: newDeployment(3, historyLimit(0)), sets: sets{newSetOf(d3, "v0", 0, 0), old}, upToDate: true,
			answers: map[string][]error{"delete replicasets web-v0": {errTooManyRequests}},
			want:    []string{"delete replicasets web-v0"}, wantErr: "of an old revision: slow down",
		},

		{
			name: "adoption reads the Deployment first", deployment: reporting(d3, old), sets: sets{newSetOf(d3, "v1", 1, 3, withAvailablePods(3), orphan)},
			want: []string{read, "patch replicasets web-v1"},
		},
		{
			name:       "adopted and written in one sync",
			deployment: reporting(newDeployment(2), newSetOf(newDeployment(2), "v1", 1, 2, withAvailablePods(3))), sets: sets{newSetOf(newDeployment(2), "v1", 1, 3, withAvailablePods(3), orphan)},
			want:   []string{read, "patch replicasets web-v1", "update replicasets web-v1"},
			events: []string{"Normal ScalingReplicaSet Scaled down replica set web-v1 from 3 to 2"},
		},
		{
			name: "failed adoption ends the sync", deployment: newDeployment(9), sets: sets{newSetOf(d3, "v1", 1, 3, orphan)},
			answers: map[string][]error{"patch replicasets web-v1": {errTooManyRequests}}, want: []string{read, "patch replicasets web-v1"}, wantErr: "slow down",
		},
		{
			name: "release", deployment: reporting(d3, old), sets: sets{old, newSetOf(d3, "v0", 0, 1, relabeled)},
			want: []string{"patch replicasets web-v0"},
		},
		{
			name:       "ReplicaSets of other owners are not changed",
			deployment: reporting(d3, old), sets: sets{old, newSetOf(d3, "v0", 0, 1, controlledByAnother), newSetOf(d3, "vx", 0, 1, orphan, relabeled)},
		},

		{
			name:       "minReadySeconds is copied to the new ReplicaSet",
			deployment: newDeployment(3, func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 5 }), sets: sets{old}, upToDate: true,
			want: []string{"update replicasets web-v1"},
		},
		{
			name: "annotations are copied, also while paused", deployment: newDeployment(3, annotated("team", "blue"), asPaused), sets: sets{old}, upToDate: true,
			want: []string{"update replicasets web-v1"},
		},
		{
			name:       "reused ReplicaSet gets the highest revision",
			deployment: newDeployment(3), sets: sets{newSetOf(d3, "v1", 1, 0), newSetOf(d3, "v2", 2, 3, withAvailablePods(3))}, upToDate: true,
			want:   []string{"update replicasets web-v1", "update replicasets web-v1", writeStatus},
			events: []string{"Normal ScalingReplicaSet Scaled up replica set web-v1 from 0 to 1"},
		},

		{
			name: "terminating namespace: no event, no condition", deployment: newDeployment(3, deadline(600)),
			answers: map[string][]error{createCall(d3): {namespaceTerminating()}}, want: []string{createCall(d3)},
		},
		{
			name: "failed create is reported, and only that", deployment: newDeployment(3, deadline(600)),
			answers: map[string][]error{createCall(d3): {errTooManyRequests}}, want: []string{createCall(d3), writeStatus}, wantErr: "slow down",
			events: []string{"Warning ReplicaSetCreateError Failed to create new replica set \"" + newReplicaSetName(d3) + "\": slow down"},
		},
		{
			name: "failed create without a progress deadline sets no condition", deployment: d3,
			answers: map[string][]error{createCall(d3): {errTooManyRequests}}, want: []string{createCall(d3)}, wantErr: "slow down",
			events: []string{"Warning ReplicaSetCreateError Failed to create new replica set \"" + newReplicaSetName(d3) + "\": slow down"},
		},

		{
			name:       "empty selector",
			deployment: newDeployment(3, func(d *appsv1.Deployment) { d.Spec.Selector = &metav1.LabelSelector{} }), sets: sets{newSetOf(d3, "v1", 1, 3, orphan)},
			want: []string{writeStatus}, events: []string{"Warning SelectingAll This deployment is selecting all pods. A non-empty selector is required."},
		},
		{name: "malformed selector", deployment: newDeployment(3, func(d *appsv1.Deployment) {
			d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}
		})},
		{name: "unknown strategy", deployment: newDeployment(3, func(d *appsv1.Deployment) { d.Spec.Strategy.Type = "Slowly" }),
			want: []string{writeStatus}, wantErr: `spec.strategy.type "Slowly"`},
		{name: "deleted", deployment: d3, before: func(r *fixture) { delete(r.deployments, "web"); r.deliver() }},
		{
			name: "own ReplicaSet write not in the cache yet", deployment: d3v2, sets: sets{old}, upToDate: true,
			before: func(r *fixture) { r.replicaSetWrites.Wrote(id, replicaSetsResource, "999") }, wantErr: "sync deferred",
		},
		{
			name: "own deletion not in the cache yet", deployment: d3v2, sets: sets{old}, upToDate: true,
			before: func(r *fixture) { r.replicaSetWrites.Deleted(id, replicaSetsResource, "ns/web-v1", "uid-web-v1") }, wantErr: "sync deferred",
		},
		{
			name: "own status not in the cache yet: status is deferred", deployment: newDeployment(5), sets: sets{old},
			before: func(r *fixture) { r.deploymentWrites.Wrote(id, deploymentsResource, "999") },
			want:   []string{"update replicasets web-v1"},
			events: []string{"Normal ScalingReplicaSet Scaled up replica set web-v1 from 3 to 5"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := test.deployment
			if test.upToDate {
				d = reporting(d, test.sets...)
			}
			r := newFixture(t, d.DeepCopy())
			for _, set := range test.sets {
				r.sets[set.Name] = set.DeepCopy()
			}
			r.deliver()
			r.setPods(t, test.pods...)
			for call, errs := range test.answers {
				r.callErrors[call] = errs
			}
			if test.before != nil {
				test.before(r)
			}
			err := r.sync(t.Context(), key)
			if (err != nil) != (test.wantErr != "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("error %v, want one with %q", err, test.wantErr)
			}
			if diff := cmp.Diff(test.want, r.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.events, r.events.recorded); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

var id = ownership.ID{Key: key, UID: "deployment"}

// TestSyncStatusAndEvents checks the status conditions and the emitted events after a sync.
func TestSyncStatusAndEvents(t *testing.T) {
	d := newDeployment(3, deadline(600))
	tests := []struct {
		name       string
		deployment *appsv1.Deployment
		sets       []*appsv1.ReplicaSet
		answers    map[string][]error
		want       string // reason of the expected condition Progressing
		message    string
		observed   int64
		revision   string
		collisions *int32
	}{
		{name: "made", deployment: d, want: reasonNewReplicaSetCreated, message: `Created new replica set "` + newReplicaSetName(d) + `"`, observed: 1, revision: "1"},
		{name: "created again at once", deployment: newDeployment(3, image("v2"), progressing(reasonNewReplicaSetCreated, time.Minute)), sets: []*appsv1.ReplicaSet{newSetOf(d, "v1", 1, 0)},
			want: reasonNewReplicaSetCreated, message: `Created new replica set "` + newReplicaSetName(newDeployment(3, image("v2"))) + `"`, observed: 1, revision: "2"},
		{name: "not created", deployment: d, answers: map[string][]error{createCall(d): {errTooManyRequests}},
			want: reasonReplicaSetCreateError, message: `Failed to create new replica set "` + newReplicaSetName(d) + `": slow down`},
		{name: "found", deployment: d, sets: []*appsv1.ReplicaSet{newSetOf(d, "v1", 4, 3)}, want: reasonFoundNewReplicaSet, message: `Found new replica set "web-v1"`, observed: 1, revision: "4"},
		{name: "paused", deployment: newDeployment(3, progressing(reasonNewReplicaSetAvailable, time.Hour), asPaused), sets: []*appsv1.ReplicaSet{newSetOf(d, "v1", 4, 3)},
			want: reasonPaused, message: "Deployment is paused", observed: 1, revision: "4"},
		{name: "resumed long after the deadline", deployment: newDeployment(3, progressing(reasonPaused, time.Hour)), sets: []*appsv1.ReplicaSet{newSetOf(d, "v1", 4, 3)},
			want: reasonResumed, message: "Deployment is resumed", observed: 1, revision: "4"},
		{name: "after the deadline", deployment: newDeployment(3, progressing(reasonReplicaSetUpdated, time.Hour)), sets: []*appsv1.ReplicaSet{newSetOf(d, "v1", 4, 3)},
			want: reasonProgressDeadlineExceeded, message: `ReplicaSet "web-v1" has timed out progressing.`, observed: 1, revision: "4"},
		{name: "done", deployment: newDeployment(3, progressing(reasonReplicaSetUpdated, time.Hour)), sets: []*appsv1.ReplicaSet{newSetOf(d, "v1", 4, 3, withAvailablePods(3))},
			want: reasonNewReplicaSetAvailable, message: `ReplicaSet "web-v1" has successfully progressed.`, observed: 1, revision: "4"},
		{name: "hash collision", deployment: d, sets: []*appsv1.ReplicaSet{withCollidingName(d)}, collisions: new(int32(1))},
		{name: "terminating: revision is unchanged", deployment: newDeployment(3, deleting, annotated(revisionAnnotation, "3")),
			sets: []*appsv1.ReplicaSet{newSetOf(d, "v1", 4, 3)}, observed: 1, revision: "3"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newFixture(t, test.deployment, test.sets...)
			r.callErrors = test.answers
			err := r.sync(t.Context(), key)
			if (err != nil) != (len(test.answers) > 0) {
				t.Fatal(err)
			}
			got := r.deployment()
			c := findCondition(got.Status.Conditions, appsv1.DeploymentProgressing)
			switch {
			case c == nil && test.want != "":
				t.Errorf("no condition, want reason %s", test.want)
			case c != nil && (c.Reason != test.want || c.Message != test.message || !c.LastUpdateTime.Time.Equal(now)):
				t.Errorf("condition %+v, want reason %s, message %s, as of now", c, test.want, test.message)
			}
			if got.Status.ObservedGeneration != test.observed {
				t.Errorf("observed generation %d, want %d", got.Status.ObservedGeneration, test.observed)
			}
			if got.Annotations[revisionAnnotation] != test.revision {
				t.Errorf("revision %q, want %q", got.Annotations[revisionAnnotation], test.revision)
			}
			if diff := cmp.Diff(test.collisions, got.Status.CollisionCount); diff != "" {
				t.Errorf("collisions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestProgressIsKeptOutsideRollout checks that the condition Progressing does not change while
// a Deployment is paused or scaled.
func TestProgressIsKeptOutsideRollout(t *testing.T) {
	for name, d := range map[string]*appsv1.Deployment{
		"paused":      newDeployment(3, progressing(reasonPaused, time.Hour), asPaused),
		"scaled":      newDeployment(5, progressing(reasonReplicaSetUpdated, time.Hour)),
		"terminating": newDeployment(3, progressing(reasonReplicaSetUpdated, time.Hour), deleting),
	} {
		t.Run(name, func(t *testing.T) {
			before := findCondition(d.Status.Conditions, appsv1.DeploymentProgressing).Reason
			r := newFixture(t, d, newSetOf(newDeployment(3), "v1", 1, 3))
			if err := r.sync(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			if got := findCondition(r.deployment().Status.Conditions, appsv1.DeploymentProgressing).Reason; got != before {
				t.Errorf("reason %s, want %s unchanged", got, before)
			}
		})
	}
}

// withCollidingName returns a ReplicaSet of another owner with the name of d's new ReplicaSet.
func withCollidingName(d *appsv1.Deployment) *appsv1.ReplicaSet {
	set := newSetOf(d, "v9", 1, 1, controlledByAnother)
	set.Name, set.UID = newReplicaSetName(d), types.UID("foreign")
	return set
}
