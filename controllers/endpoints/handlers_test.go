package endpoints

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/workloop"
)

// runLoop runs the work queue loop for the duration d of virtual time, in a synctest bubble.
func runLoop(t *testing.T, loop *workloop.Loop, d time.Duration) {
	t.Helper()
	drain, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		loop.Run(t.Context(), drain, nil, 1)
	}()
	time.Sleep(d)
	close(drain)
	<-done
	time.Sleep(time.Minute) // wait until the queue's goroutines have ended, at their next tick
}

// enqueuedAt calls event and returns the keys that the event handlers then enqueue. The values
// are the times from the event until a worker gets the key.
func enqueuedAt(t *testing.T, r *fixture, event func()) map[string][]time.Duration {
	t.Helper()
	r.loop.BeforeWork = nil // only the event enqueues keys
	runLoop(t, r.loop, 0)
	waits := map[string][]time.Duration{}
	begin := time.Now()
	r.loop = workloop.New("test", func(_ context.Context, key string) error {
		waits[key] = append(waits[key], time.Since(begin))
		return nil
	})
	event()
	runLoop(t, r.loop, time.Hour)
	return waits
}

func TestEnqueuedKeys(t *testing.T) {
	const web, all, db = "ns/web", "ns/all", "ns/db"
	ip := at("10.1.0.1")
	selecting := func(name string, selector map[string]string) *corev1.Service {
		return newService(func(s *corev1.Service) { s.Name, s.Spec.Selector = name, selector })
	}
	updated := func(change ...func(*corev1.Pod)) func(*fixture) {
		return func(r *fixture) { r.podChanged(newPod("p", ip), newPod("p", ip, append(change, newerVersion)...)) }
	}
	hostname := func(p *corev1.Pod) { p.Spec.Hostname = "h" }
	subdomain := func(p *corev1.Pod) { p.Spec.Subdomain = "s" }
	moved := func(p *corev1.Pod) { p.Status.PodIPs[0].IP = "10.1.0.9" }
	relabeled := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "db", "x": "y"} }
	bare := func(p *corev1.Pod) { p.Labels = nil }
	tests := []struct {
		name  string
		event func(*fixture)
		want  []string
	}{
		{"pod added", func(r *fixture) { r.podChanged(nil, newPod("p", ip)) }, []string{all, web}},
		{"pod added without an IP", func(r *fixture) { r.podChanged(nil, newPod("p", nil)) }, nil},
		{"pod added that no Service selects", func(r *fixture) { r.podChanged(nil, newPod("p", ip, labeled("cache"), bare)) }, nil},
		{"pod added in another namespace", func(r *fixture) { r.podChanged(nil, newPod("p", ip, func(p *corev1.Pod) { p.Namespace = "other" })) }, nil},
		{"resync", func(r *fixture) { r.podChanged(newPod("p", ip), newPod("p", ip)) }, nil},
		{"other pod update", updated(func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }), nil},
		{"lastTransitionTime changed", updated(readyTransitionAt(serviceCreated)), nil},
		{"pod got its IP", func(r *fixture) { r.podChanged(newPod("p", nil), newPod("p", ip, newerVersion)) }, []string{all, web}},
		{"pod got another IP", updated(moved), []string{all, web}},
		{"pod got one more IP", func(r *fixture) {
			r.podChanged(newPod("p", ip), newPod("p", []string{"10.1.0.1", "fd00::1"}, newerVersion))
		}, []string{all, web}},
		{"pod became not ready", updated(unready), []string{all, web}},
		{"pod became ready", func(r *fixture) { r.podChanged(newPod("p", ip, unready), newPod("p", ip, newerVersion)) }, []string{all, web}},
		{"pod terminating", updated(terminating), []string{all, web}},
		{"pod got a hostname", updated(hostname), []string{all, web}},
		{"pod got a subdomain", updated(subdomain), []string{all, web}},
		// kube-controller-manager enqueues nothing for this event.
		{"pod failed, condition Ready unchanged", updated(failed), []string{all, web}},
		{"pod without an IP failed", func(r *fixture) { r.podChanged(newPod("p", nil), newPod("p", nil, newerVersion, failed)) }, nil},
		{"relabeled: only Services that stopped or started selecting it", updated(relabeled), []string{db, web}},
		{"all labels removed", updated(bare), []string{all, web}},
		{"labels added", func(r *fixture) { r.podChanged(newPod("p", ip, bare), newPod("p", ip, newerVersion)) }, []string{all, web}},
		{"relabeled, same Services", updated(func(p *corev1.Pod) { p.Labels["y"] = "z" }), nil},
		{"relabeled and not ready", updated(relabeled, unready), []string{all, db, web}},
		{"relabeled and got a hostname", updated(func(p *corev1.Pod) { p.Labels["y"] = "z" }, hostname), []string{all, web}},
		{"relabeled without an IP", func(r *fixture) { r.podChanged(newPod("p", nil), newPod("p", nil, newerVersion, relabeled)) }, nil},
		{"pod recreated", updated(func(p *corev1.Pod) { p.UID = "later" }), []string{all, web}},
		{"pod recreated with other labels", updated(func(p *corev1.Pod) { p.UID = "later" }, relabeled), []string{all, db, web}},
		{"pod deleted", func(r *fixture) { r.podDeleted(newPod("p", ip)) }, []string{all, web}},
		{"failed pod deleted", func(r *fixture) { r.podDeleted(newPod("p", ip, failed)) }, nil},
		{"pod deletion missed", func(r *fixture) { r.podDeleted(cache.DeletedFinalStateUnknown{Key: "ns/p", Obj: newPod("p", ip)}) }, []string{all, web}},
		{"tombstone with another type", func(r *fixture) { r.podDeleted(cache.DeletedFinalStateUnknown{Key: "ns/p", Obj: "?"}) }, nil},

		{"Service updated", func(r *fixture) { r.serviceChanged(newService()) }, []string{web}},
		{"Service deletion missed", func(r *fixture) { r.serviceChanged(cache.DeletedFinalStateUnknown{Key: web, Obj: newService()}) }, []string{web}},
		{"tombstone without an object", func(r *fixture) { r.serviceChanged(cache.DeletedFinalStateUnknown{Key: web, Obj: "?"}) }, nil},

		{"Endpoints without a Service at the start", func(r *fixture) {
			r.cache(newEndpoints(newService(serviceNamed("orphan")), nil))
			r.enqueueLeftovers()
		}, []string{"ns/orphan"}},
		{"Endpoints with a Service at the start", func(r *fixture) {
			r.cache(newEndpoints(newService(), nil))
			r.enqueueLeftovers()
		}, nil},
		{"Endpoints added later", func(r *fixture) { r.endpointsObserved(newEndpoints(newService(), nil)) }, nil},
		{"Endpoints updated", func(r *fixture) { r.endpointsObserved(newEndpoints(newService(), nil)) }, nil},
		{"awaited Endpoints added", func(r *fixture) {
			r.awaitingCache.Store(web, nil)
			r.endpointsObserved(newEndpoints(newService(), nil))
		}, []string{web}},
		{"awaited Endpoints updated", func(r *fixture) {
			r.awaitingCache.Store(web, nil)
			r.endpointsObserved(newEndpoints(newService(), nil))
		}, []string{web}},
		{"other Endpoints updated", func(r *fixture) {
			r.awaitingCache.Store(db, nil)
			r.endpointsObserved(newEndpoints(newService(), nil))
		}, nil},
		{"Endpoints deleted", func(r *fixture) { r.endpointsDeleted(newEndpoints(newService(), nil)) }, []string{web}},
		{"Endpoints deletion missed", func(r *fixture) {
			r.endpointsDeleted(cache.DeletedFinalStateUnknown{Key: web, Obj: newEndpoints(newService(), nil)})
		}, []string{web}},
		{"orphaned Endpoints deleted", func(r *fixture) {
			r.endpointsDeleted(newEndpoints(newService(func(s *corev1.Service) { s.Name = "lock" }), nil))
		}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFixture(t,
					newService(), selecting("all", map[string]string{"x": "y"}), selecting("db", map[string]string{"app": "db"}),
					selecting("narrow", map[string]string{"app": "web", "x": "y", "z": "z"}),
					newService(withoutSelector, func(s *corev1.Service) { s.Name = "manual" }),
					newService(externalName, func(s *corev1.Service) { s.Name = "alias" }))
				got := slices.Sorted(maps.Keys(enqueuedAt(t, r, func() { test.event(r) })))
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("woken (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestBatchPeriod checks that pod events enqueue keys only after the batch period. The period
// begins at the first event. Other events must enqueue keys without delay.
func TestBatchPeriod(t *testing.T) {
	ip := at("10.1.0.1")
	for _, test := range []struct {
		name  string
		event func(*fixture)
		want  []time.Duration
	}{
		{"pod", func(r *fixture) { r.podChanged(nil, newPod("p", ip)) }, []time.Duration{time.Second}},
		{"pods", func(r *fixture) {
			r.podChanged(nil, newPod("p", ip))
			time.Sleep(600 * time.Millisecond)
			r.podChanged(nil, newPod("q", ip))
		}, []time.Duration{time.Second}},
		{"pod deleted", func(r *fixture) { r.podDeleted(newPod("p", ip)) }, []time.Duration{time.Second}},
		{"Service", func(r *fixture) { r.serviceChanged(newService()) }, []time.Duration{0}},
		{"pod and Service", func(r *fixture) { r.podChanged(nil, newPod("p", ip)); r.serviceChanged(newService()) }, []time.Duration{0, time.Second}},
		{"Endpoints deleted", func(r *fixture) { r.endpointsDeleted(newEndpoints(newService(), nil)) }, []time.Duration{0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFixture(t, newService())
				r.batchPeriod = time.Second
				if diff := cmp.Diff(map[string][]time.Duration{key: test.want}, enqueuedAt(t, r, func() { test.event(r) })); diff != "" {
					t.Errorf("wake-ups (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestBatchDelay checks how long the controller collects pod events without a batch period. The
// delay is the duration of the last write, up to a maximum. Other events must not be delayed.
func TestBatchDelay(t *testing.T) {
	podAdded := func(r *fixture) { r.podChanged(nil, newPod("p", at("10.1.0.1"))) }
	shown := func(r *fixture) { r.endpointsObserved(newEndpoints(newService(), nil)) }
	ms := time.Millisecond
	for _, test := range []struct {
		name        string
		takes       time.Duration
		batchPeriod time.Duration
		event       func(*fixture)
		want        time.Duration
	}{
		{"pod", 70 * ms, 0, podAdded, 70 * ms},
		{"pod, after a fast write", 0, 0, podAdded, 0},
		{"pod, after a very slow write", time.Minute, 0, podAdded, maxBatchDelay},
		{"pod, with a batch period", 70 * ms, time.Second, podAdded, time.Second},
		{"pod, with a short batch period", 70 * ms, ms, podAdded, 70 * ms},
		{"own write observed", 70 * ms, time.Second, shown, 70 * ms},
		{"Service", 70 * ms, 0, func(r *fixture) { r.serviceChanged(newService()) }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFixture(t, newService())
				r.callDuration, r.batchPeriod = test.takes, test.batchPeriod
				if err := r.sync(t.Context(), key); err != nil {
					t.Fatal(err)
				}
				r.awaitingCache.Store(key, nil)
				if diff := cmp.Diff(map[string][]time.Duration{key: {test.want}}, enqueuedAt(t, r, func() { test.event(r) })); diff != "" {
					t.Errorf("wake-ups (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestStateOfDeletedServiceIsDropped checks that no field of the controller keeps data about a
// deleted Service.
func TestStateOfDeletedServiceIsDropped(t *testing.T) {
	r := newFixture(t, newEndpoints(newService(), nil))
	r.triggerTimes.put(key, changeTimesOf(newService(), nil))
	r.writeDurations.Store(key, time.Second)
	if err := r.sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if r.triggerTimes.last(key) != nil {
		t.Error("change times of a deleted Service are kept")
	}
	if _, remembered := r.writeDurations.Load(key); remembered {
		t.Error("write duration of a deleted Service is kept")
	}
	if r.writes.StaleReason(key) == "" {
		t.Fatal("recorded delete was dropped before the cache contains it")
	}
	r.endpointsDeleted(newEndpoints(newService(), nil))
	if missing := r.writes.StaleReason(key); missing != "" {
		t.Errorf("recorded delete was kept after the cache contains it: %s", missing)
	}
}
