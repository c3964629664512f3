package deployment

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
)

// runController runs the controller for the duration d of virtual time, and calls halfway after
// d/2. It enqueues the key once at the start. After that, only the controller itself and the
// events of its own writes enqueue the key.
func runController(t *testing.T, r *fixture, d time.Duration, halfway func()) {
	r.onWrite = func(string) { r.loop.Add(key) }
	r.synced = nil // the informers of the fixture never start
	r.loop.Add(key)
	drain, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		r.Run(t.Context(), drain, 1)
	}()
	time.Sleep(d / 2)
	synctest.Wait() // wait for pending writes, which halfway may read
	halfway()
	time.Sleep(d / 2)
	close(drain)
	<-done
	time.Sleep(time.Minute) // wait until the queue's goroutines have ended, at their next tick
}

// TestRecreateWithFailedPodsLeft checks when a rollout with the strategy Recreate continues. It
// must continue when the last running pod is gone, even if failed pods still exist
// (kubernetes/kubernetes#128798).
func TestRecreateWithFailedPodsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeployment(2, asRecreate, image("v2"))
		old := newSetOf(d, "v1", 1, 0)
		running, failed := podOf(old, "a", corev1.PodRunning), podOf(old, "b", corev1.PodFailed)
		r := newFixtureWithClock(t, clock.RealClock{}, d, old)
		r.setPods(t, running, failed)
		runController(t, r, time.Minute, func() {
			if slices.Contains(r.calls, createCall(d)) {
				t.Error("created the new ReplicaSet while an old pod is running")
			}
			r.setPods(t, failed)
			r.podDeleted(running)
		})
		if !slices.Contains(r.calls, createCall(d)) {
			t.Errorf("calls %v, want %s", r.calls, createCall(d))
		}
	})
}

// TestFailedScaleDownIsRetried checks that the controller retries a failed scale-down. It must
// do so even if the following status update fails too.
func TestFailedScaleDownIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeployment(3, image("v2"))
		r := newFixtureWithClock(t, clock.RealClock{}, d, newSetOf(d, "v1", 1, 3, withAvailablePods(3)), newSetOf(d, "v2", 2, 1, withAvailablePods(1)))
		r.callErrors["update replicasets web-v1"] = []error{errTooManyRequests, nil}
		r.callErrors[writeStatus] = []error{errTooManyRequests, nil}
		runController(t, r, time.Minute, func() {})
		if got := *r.sets["web-v1"].Spec.Replicas; got != 2 {
			t.Errorf("the old ReplicaSet has %d replicas, want 2", got)
		}
	})
}

// TestRecoversAfterOutage checks that the controller recovers from a long outage of the API
// server. It must recover without an event, because it never gives up a key.
func TestRecoversAfterOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeployment(3, deadline(60))
		r := newFixtureWithClock(t, clock.RealClock{}, d)
		r.callErrors[createCall(d)], r.callErrors[writeStatus] = []error{errTooManyRequests}, []error{errTooManyRequests}
		runController(t, r, 4*time.Hour, func() {
			if tries := len(r.calls); tries < 240 || tries > 300 {
				t.Errorf("%d calls in an outage of two hours, want 240 to 300", tries)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			clear(r.callErrors)
		})
		if got := *r.onlyReplicaSet(t).Spec.Replicas; got != 3 {
			t.Errorf("%d replicas, want 3", got)
		}
	})
}

// TestDeferredStatusIsWritten checks a status update that the controller defers because of a
// stale cache. The controller must write the status later, even without an event.
func TestDeferredStatusIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeployment(3)
		r := newFixtureWithClock(t, clock.RealClock{}, d, newSetOf(d, "v1", 1, 3, withAvailablePods(3)))
		r.deploymentWrites.Wrote(id, deploymentsResource, "999")
		runController(t, r, time.Minute, func() {
			if len(r.calls) > 0 {
				t.Errorf("calls %v, want none while the cache is stale", r.calls)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.version = 999
			r.deliver()
		})
		if !slices.Contains(r.calls, writeStatus) {
			t.Errorf("calls %v, want %s", r.calls, writeStatus)
		}
	})
}

// TestDeadlineIsRechecked checks that the controller reports a stuck rollout soon after its
// progress deadline, although no event arrives. It must not report the rollout earlier.
func TestDeadlineIsRechecked(t *testing.T) {
	for _, test := range []struct {
		after time.Duration
		want  string
	}{{599 * time.Second, reasonReplicaSetUpdated}, {601 * time.Second, reasonProgressDeadlineExceeded}} {
		synctest.Test(t, func(t *testing.T) {
			d := newDeployment(3, deadline(600))
			now := time.Now()
			progressing(reasonReplicaSetUpdated, 0)(d)
			d.Status.Conditions[0].LastUpdateTime.Time = now
			r := newFixtureWithClock(t, clock.RealClock{}, d, newSetOf(d, "v1", 1, 3, withAvailablePods(2)))
			if err := r.sync(t.Context(), key); err != nil { // the sync counts the ready pods, which is progress
				t.Fatal(err)
			}
			runController(t, r, test.after, func() {})
			if got := findCondition(r.deployment().Status.Conditions, appsv1.DeploymentProgressing).Reason; got != test.want {
				t.Errorf("after %s: %s, want %s", test.after, got, test.want)
			}
		})
	}
}
