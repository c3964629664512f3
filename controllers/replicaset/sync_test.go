package replicaset

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// sortDeletes sorts the delete requests before a comparison, because the controller sends them
// concurrently.
var sortDeletes = cmp.Transformer("sortDeletes", func(calls []string) []string {
	sorted := slices.Clone(calls)
	slices.SortStableFunc(sorted, func(a, b string) int {
		if strings.HasPrefix(a, "delete ") && strings.HasPrefix(b, "delete ") {
			return strings.Compare(a, b)
		}
		return 0
	})
	return sorted
})

// TestSync checks which requests a sync sends to the API server, and in which order. It also
// checks whether the next sync may create or delete pods.
func TestSync(t *testing.T) {
	tests := []struct {
		name        string
		set         *appsv1.ReplicaSet
		live        *appsv1.ReplicaSet
		pods        []*corev1.Pod
		before      func(*fixture)
		answers     map[string][]error
		wantCalls   []string
		wantErr     string
		wantPending bool
	}{
		{name: "settled", set: newSet(1, reporting(1)), pods: []*corev1.Pod{newPod("a")}},
		{name: "missing pods", set: newSet(3, reporting(0)), wantCalls: repeat(create, 3), wantPending: true},
		{name: "new ReplicaSet", set: newSet(0), wantCalls: []string{status}},
		{name: "burst", set: newSet(1200, reporting(0)), wantCalls: repeat(create, Burst), wantPending: true},
		{
			name: "excess pods", set: newSet(1, reporting(3)),
			pods:      []*corev1.Pod{newPod("a", phase(corev1.PodRunning)), newPod("b"), newPod("c", phase(corev1.PodRunning), node("n"))},
			before:    func(r *fixture) { r.callErrors["delete pods b"] = []error{errTooManyRequests} },
			wantCalls: []string{"delete pods a", "delete pods b", status},
			wantErr:   "slow down", wantPending: true,
		},
		{name: "deleted pod", set: newSet(0, reporting(1)), pods: []*corev1.Pod{newPod("a")}, answers: map[string][]error{"delete pods a": {errNotFound}}, wantCalls: []string{"delete pods a"}},
		{
			name: "failed, succeeded and terminating pods are replaced, not deleted", set: newSet(1, reporting(0)),
			pods:      []*corev1.Pod{newPod("a", phase(corev1.PodFailed)), newPod("b", phase(corev1.PodSucceeded)), newPod("c", terminating)},
			wantCalls: []string{create, status}, wantPending: true,
		},
		{name: "pods of other owners are not changed", set: newSet(0, reporting(0)), pods: []*corev1.Pod{newPod("a", controlledByAnother), newPod("b", orphaned, relabeled)}},
		{name: "adoption reads the owner first", set: newSet(1, reporting(0)), pods: []*corev1.Pod{newPod("a", orphaned)}, wantCalls: []string{read, "patch pods a", status}},
		{
			name: "owner is terminating in the API server", set: newSet(2, reporting(0)), live: newSet(2, deleting), pods: []*corev1.Pod{newPod("a", orphaned)},
			wantCalls: []string{read}, wantErr: "has been terminating since",
		},
		{
			name: "failed adoption ends the sync", set: newSet(2, reporting(0)), pods: []*corev1.Pod{newPod("a", orphaned)},
			answers: map[string][]error{"patch pods a": {errTooManyRequests}}, wantCalls: []string{read, "patch pods a"}, wantErr: "slow down",
		},
		{name: "release", set: newSet(0, reporting(0)), pods: []*corev1.Pod{newPod("a", relabeled)}, wantCalls: []string{"patch pods a"}},
		{name: "inactive pods are not released", set: newSet(0, reporting(0)), pods: []*corev1.Pod{newPod("a", relabeled, phase(corev1.PodFailed))}},
		{name: "inactive pods are not adopted", set: newSet(0, reporting(0)), pods: []*corev1.Pod{newPod("a", orphaned, phase(corev1.PodSucceeded)), newPod("b", orphaned, terminating)}},
		{name: "terminating owner: status only", set: newSet(3, deleting), pods: []*corev1.Pod{newPod("a", orphaned), newPod("b", relabeled)}, wantCalls: []string{status}},
		{
			name: "unmet expectations: still adopts and writes the status", set: newSet(3, reporting(0)), pods: []*corev1.Pod{newPod("a", orphaned)},
			before:    func(r *fixture) { r.expectations.ExpectCreations(mustOwner(r).ID(), 2) },
			wantCalls: []string{read, "patch pods a", status}, wantPending: true,
		},
		{
			name: "event after listing the pods", set: newSet(3, reporting(0)), pods: []*corev1.Pod{newPod("a", orphaned)},
			before: func(r *fixture) {
				id := mustOwner(r).ID()
				r.expectations.ExpectCreations(id, 2)
				r.duringCall["patch pods a"] = func() { r.expectations.CreationsFailed(id, 2) }
			},
			wantCalls: []string{read, "patch pods a", status},
		},
		{
			name: "expectations expire after 5 minutes", set: newSet(1, reporting(0)),
			before: func(r *fixture) {
				r.expectations.ExpectCreations(mustOwner(r).ID(), 2)
				r.clock.SetTime(now.Add(5 * time.Minute))
			},
			wantCalls: []string{create}, wantPending: true,
		},
		{
			name: "slow start stops after the first create", set: newSet(500, reporting(0)), answers: map[string][]error{create: {errTooManyRequests}},
			wantCalls: []string{create, status}, wantErr: "slow down",
		},
		{
			name: "slow start stops after the batch that failed", set: newSet(500, reporting(0)), answers: map[string][]error{create: {nil, errTooManyRequests, nil}},
			wantCalls: append(repeat(create, 3), status), wantErr: "slow down", wantPending: true,
		},
		{name: "terminating namespace is not an error and is not retried", set: newSet(500, reporting(0)), answers: map[string][]error{create: {namespaceTerminating()}}, wantCalls: []string{create}, wantPending: true},
		{name: "a status conflict is retried once", set: newSet(0), answers: map[string][]error{status: {errConflict, nil}}, wantCalls: []string{status, read, status}},
		{name: "status conflict is retried only once", set: newSet(0), answers: map[string][]error{status: {errConflict}}, wantCalls: []string{status, read, status}, wantErr: "modified"},
		{name: "other status errors are not retried", set: newSet(0), answers: map[string][]error{status: {errTooManyRequests}}, wantCalls: []string{status}, wantErr: "slow down"},
		{
			name: "status is not written to a recreated owner", set: newSet(0), live: newSet(0, func(s *appsv1.ReplicaSet) { s.UID = "later" }),
			answers: map[string][]error{status: {errConflict}}, wantCalls: []string{status, read}, wantErr: "was recreated",
		},
		{
			name: "status never goes back to an older generation", set: newSet(0), live: newSet(0, func(s *appsv1.ReplicaSet) { s.Status.ObservedGeneration = 2 }),
			answers: map[string][]error{status: {errConflict}}, wantCalls: []string{status, read}, wantErr: "observedGeneration 2",
		},
		{
			name: "own pods not in the cache yet", set: newSet(3), pods: []*corev1.Pod{newPod("a")},
			before: func(r *fixture) { r.writes.Wrote(mustOwner(r).ID(), "pods", "11") }, wantErr: "sync deferred",
		},
		{
			name: "own status not in the cache yet", set: newSet(3),
			before: func(r *fixture) { r.writes.Wrote(mustOwner(r).ID(), "replicasets", "11") }, wantErr: "sync deferred",
		},
		{
			name: "own deletion not in the cache yet", set: newSet(0), pods: []*corev1.Pod{newPod("a")},
			before: func(r *fixture) { r.writes.Deleted(mustOwner(r).ID(), "pods", "ns/a", "a") }, wantErr: "sync deferred",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newFixture(t, test.set, test.pods...)
			if test.live != nil {
				r.live = test.live
			}
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
			if diff := cmp.Diff(test.wantCalls, r.calls, sortDeletes); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if pending := !r.expectations.Satisfied(mustOwner(r).ID()); pending != test.wantPending {
				t.Errorf("expectations pending: %t, want %t", pending, test.wantPending)
			}
		})
	}
}

func mustOwner(r *fixture) Owner {
	owner, found, err := r.cachedOwner(r.t.Context(), key)
	if err != nil || !found {
		r.t.Fatalf("the fixture has no owner, error %v", err)
	}
	return owner
}

func TestDeletedOwner(t *testing.T) {
	r := newFixture(t, newSet(3))
	id := mustOwner(r).ID()
	r.expectations.ExpectCreations(id, 1)
	r.writes.Wrote(id, "pods", "11")
	if err := r.owners.Delete(newSet(3)); err != nil {
		t.Fatal(err)
	}
	_ = r.writes.StaleReason(key) // the versions cannot be compared, so nothing defers the sync
	if err := r.sync(t.Context(), key); err != nil || len(r.calls) > 0 {
		t.Errorf("error %v, calls %v; want neither", err, r.calls)
	}
	if !r.expectations.Satisfied(id) {
		t.Error("expectations outlive their owner")
	}
}

func TestRelatedPodsByNode(t *testing.T) {
	deployed := func(uid types.UID) func(*appsv1.ReplicaSet) {
		return func(s *appsv1.ReplicaSet) {
			s.Name, s.UID = string(uid), uid
			s.OwnerReferences = []metav1.OwnerReference{{Kind: "Deployment", UID: "deployment", Controller: new(true)}}
		}
	}
	of := func(uid types.UID) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.OwnerReferences[0].UID = uid }
	}
	r := newFixture(t, newSet(1, deployed("new")),
		newPod("a", of("new"), node("n1")), newPod("b", of("new"), node("n2")),
		newPod("c", of("old"), node("n1")), newPod("d", of("old"), node("n1"), terminating), newPod("e", of("other"), node("n1")))
	r.cache(t, newSet(1, deployed("old")))
	r.cache(t, newSet(1, func(s *appsv1.ReplicaSet) { s.Name, s.UID = "alone", "other" }))
	owner, err := r.kind.Owner(newSet(1, deployed("new")))
	if err != nil {
		t.Fatal(err)
	}
	crowd, err := r.relatedPodsByNode(owner, make([]*corev1.Pod, 2), 1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"n1": 2, "n2": 1}, crowd); diff != "" {
		t.Errorf("related pods by node (-want +got):\n%s", diff)
	}
	owner.Object = newSet(1) // has no controller
	if crowd, err = r.relatedPodsByNode(owner, make([]*corev1.Pod, 2), 1); err != nil || len(crowd) > 0 {
		t.Errorf("ReplicaSet without a controller has related pods %v, error %v", crowd, err)
	}
}

func TestSelectors(t *testing.T) {
	for name, test := range map[string]struct {
		selector *metav1.LabelSelector
		matches  bool
		fails    bool
	}{
		"absent":    {nil, false, false},
		"empty":     {&metav1.LabelSelector{}, false, false},
		"labels":    {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, true, false},
		"malformed": {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			owner, err := (&replicaSets{}).Owner(newSet(1, func(s *appsv1.ReplicaSet) { s.Spec.Selector = test.selector }))
			if (err != nil) != test.fails {
				t.Fatalf("error %v", err)
			}
			if err == nil && owner.Selector.Matches(labels.Set{"app": "web"}) != test.matches {
				t.Errorf("matches: %t, want %t", !test.matches, test.matches)
			}
		})
	}
}

// TestRecordsItsWrites checks that a sync waits until the caches contain the writes of the
// previous sync.
func TestRecordsItsWrites(t *testing.T) {
	tests := []struct {
		name string
		set  *appsv1.ReplicaSet
		pods []*corev1.Pod
		want string
	}{
		{"created", newSet(1, reporting(0)), []*corev1.Pod{newPod("old", phase(corev1.PodFailed))}, "the informer cache of pods is at resourceVersion 10, the last write of this controller is at 1001"},
		{"deleted", newSet(0, reporting(1)), []*corev1.Pod{newPod("a")}, "still contains ns/a"},
		{"adopted", newSet(1, reporting(1)), []*corev1.Pod{newPod("a", orphaned)}, "the last write of this controller is at 2000"},
		{"released", newSet(0, reporting(0)), []*corev1.Pod{newPod("a", relabeled)}, "the last write of this controller is at 2000"},
		{"reported", newSet(0), nil, "the informer cache of replicasets is at resourceVersion 10, the last write of this controller is at 3000"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newFixture(t, test.set, test.pods...)
			if err := r.sync(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			if got := r.writes.StaleReason(key); !strings.Contains(got, test.want) {
				t.Errorf("StaleReason = %q, want %q", got, test.want)
			}
		})
	}
}

// runFixture runs the controller for the duration d of virtual time, in a synctest bubble.
func runFixture(t *testing.T, r *fixture, d time.Duration) {
	drain, done := make(chan struct{}), make(chan struct{})
	r.synced = nil // the informers of the fixture never start
	r.loop.Add(key)
	go func() {
		defer close(done)
		r.Run(t.Context(), drain, 1)
	}()
	time.Sleep(d)
	close(drain)
	<-done
	time.Sleep(time.Minute) // wait until the queue's goroutines have ended, at their next tick
}

func TestRequeuesWhenPodBecomesAvailable(t *testing.T) {
	for _, test := range []struct {
		after time.Duration
		want  int32
	}{{19 * time.Second, 0}, {20 * time.Second, 1}} {
		synctest.Test(t, func(t *testing.T) {
			set := newSet(1, func(s *appsv1.ReplicaSet) {
				s.Spec.MinReadySeconds = 30
				s.ResourceVersion = "3000" // keeps the cache up to date with the status write
			})
			pod := newPod("a", func(p *corev1.Pod) { p.Status.Conditions = readySince(time.Now().Add(-10 * time.Second)) })
			r := newFixtureWithClock(t, clock.RealClock{}, set, pod)
			runFixture(t, r, test.after+time.Millisecond)
			if got := r.written[len(r.written)-1].AvailableReplicas; got != test.want {
				t.Errorf("after %s, %d pods are available, want %d", test.after, got, test.want)
			}
		})
	}
}

// TestStalePodCache checks a stale pod cache, for a kind without ReadsOwnWrites. The controller
// must not create a pod twice, even after its expectations have expired. It must continue as
// soon as the cache is up to date.
func TestStalePodCache(t *testing.T) {
	for _, test := range []struct {
		name  string
		shown time.Duration // time at which the cache contains the created pods; 0 means never
		want  int           // expected number of creates
	}{
		{"never in the cache", 0, 2},
		{"in the cache and deleted since", 6 * time.Minute, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFixtureWithClock(t, clock.RealClock{}, newSet(2, func(s *appsv1.ReplicaSet) { s.ResourceVersion = "3000" }), newPod("a", controlledByAnother))
				r.traits.ReadsOwnWrites = false
				if test.shown > 0 {
					time.AfterFunc(test.shown, func() {
						other := newPod("b", controlledByAnother, func(p *corev1.Pod) { p.ResourceVersion = "1500" })
						if err := r.pods.Add(other); err != nil {
							t.Error(err)
						}
					})
				}
				runFixture(t, r, 7*time.Minute)
				creates := slices.DeleteFunc(slices.Clone(r.calls), func(call string) bool { return call != create })
				if len(creates) != test.want {
					t.Errorf("%d creates, want %d", len(creates), test.want)
				}
				if others := len(r.calls) - len(creates); others > 10 { // deferred syncs make no calls
					t.Errorf("%d other calls, want at most 10: %v", others, r.calls)
				}
			})
		})
	}
}

func TestRequeuesWhenExpectationsExpire(t *testing.T) {
	for _, test := range []struct {
		after time.Duration
		want  []string
	}{{5*time.Minute - time.Second, nil}, {5 * time.Minute, []string{create}}} {
		synctest.Test(t, func(t *testing.T) {
			r := newFixtureWithClock(t, clock.RealClock{}, newSet(1, reporting(0)))
			r.expectations.ExpectCreations(mustOwner(r).ID(), 1)
			runFixture(t, r, test.after+time.Millisecond)
			if diff := cmp.Diff(test.want, r.calls); diff != "" {
				t.Errorf("calls after %s (-want +got):\n%s", test.after, diff)
			}
		})
	}
}
