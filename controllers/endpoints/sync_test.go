package endpoints

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
)

// TestSync checks which requests a sync sends to the API server, in which order, and which event
// it emits.
func TestSync(t *testing.T) {
	pods := []*corev1.Pod{newPod("a", at("10.1.0.1"))}
	upToDate := newEndpoints(newService(), pods)
	outdated := newEndpoints(newService(), nil)
	objects := func(more ...runtime.Object) []runtime.Object { return append(more, pods[0]) }
	tests := []struct {
		name          string
		cached        []runtime.Object
		before        func(*fixture)
		liveService   *corev1.Service
		liveEndpoints *endpoints
		answers       map[string][]error
		wantCalls     []string
		wantErr       string
		wantEvent     string
	}{
		{name: "up to date", cached: objects(newService(), upToDate)},
		{name: "no Endpoints yet", cached: objects(newService()), wantCalls: []string{create}},
		{name: "no pods", cached: []runtime.Object{newService()}, wantCalls: []string{create}},
		{name: "outdated", cached: objects(newService(), outdated), wantCalls: []string{update}},
		{name: "ExternalName is ignored", cached: objects(newService(externalName), outdated)},
		{name: "Service without a selector is ignored", cached: objects(newService(withoutSelector), outdated)},
		{name: "Service with an empty selector is ignored", cached: objects(newService(func(s *corev1.Service) { s.Spec.Selector = map[string]string{} }), outdated)},
		{name: "Service with a selector takes precedence over a leader-election record", cached: objects(newService(), newEndpoints(newService(), nil, withLeaderElectionRecord)), wantCalls: []string{update}},

		{name: "Service deleted", cached: objects(upToDate), wantCalls: []string{readService, remove}},
		{name: "Service deleted, no Endpoints", wantCalls: []string{readService, readEndpoints}},
		{name: "Service deleted, Endpoints not in the cache", liveEndpoints: upToDate, wantCalls: []string{readService, readEndpoints, remove}},
		{name: "Service deleted, Endpoints deleted meanwhile", cached: objects(upToDate), answers: map[string][]error{remove: {errNotFound}}, wantCalls: []string{readService, remove}},
		{name: "Service deleted, Endpoints updated meanwhile", cached: objects(upToDate), answers: map[string][]error{remove: {errConflict}}, wantCalls: []string{readService, remove}, wantErr: "modified"},
		{name: "Service deleted, leader-election record", cached: objects(newEndpoints(newService(), pods, withLeaderElectionRecord))},
		{name: "Service deleted, leader-election record not in the cache", liveEndpoints: newEndpoints(newService(), pods, withLeaderElectionRecord), wantCalls: []string{readService, readEndpoints}},
		{name: "Service not in the cache yet", cached: objects(upToDate), liveService: newService(), wantCalls: []string{readService}, wantErr: "sync deferred"},
		{name: "reading the Service fails", cached: objects(upToDate), answers: map[string][]error{readService: {errTooManyRequests}}, wantCalls: []string{readService}, wantErr: "slow down"},
		{name: "reading the Endpoints fails", answers: map[string][]error{readEndpoints: {errTooManyRequests}}, wantCalls: []string{readService, readEndpoints}, wantErr: "slow down"},

		{
			name: "own write not in the cache yet", cached: objects(newService(), outdated),
			before:  func(r *fixture) { r.writes.Wrote(ownership.IDOf(newService()), resource, "11") },
			wantErr: "sync deferred",
		},
		{
			name: "own deletion not in the cache yet", cached: objects(newService(), outdated),
			before:  func(r *fixture) { r.writes.Deleted(ownership.ID{Key: key}, resource, key, outdated.UID) },
			wantErr: "sync deferred",
		},

		{name: "create refused", cached: objects(newService()), answers: map[string][]error{create: {errTooManyRequests}}, wantCalls: []string{create}, wantErr: "slow down", wantEvent: FailedToCreateEndpoint},
		{name: "create forbidden", cached: objects(newService()), answers: map[string][]error{create: {errForbidden}}, wantCalls: []string{create}, wantErr: "forbidden", wantEvent: FailedToCreateEndpoint},
		{name: "created by another client", cached: objects(newService()), answers: map[string][]error{create: {errAlreadyExists}}, wantCalls: []string{create}, wantErr: "already exists", wantEvent: FailedToCreateEndpoint},
		{name: "terminating namespace is not an error", cached: objects(newService()), answers: map[string][]error{create: {namespaceTerminating()}}, wantCalls: []string{create}},
		{name: "update refused", cached: objects(newService(), outdated), answers: map[string][]error{update: {errConflict}}, wantCalls: []string{update}, wantErr: "modified", wantEvent: FailedToUpdateEndpoint},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newFixture(t, test.cached...)
			r.liveService, r.liveEndpoints = test.liveService, test.liveEndpoints
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
			if diff := cmp.Diff(test.wantCalls, r.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if got := r.eventReason(); got != test.wantEvent {
				t.Errorf("event %q, want %q", got, test.wantEvent)
			}
		})
	}
}

// TestUpdateIsConditional checks that an update contains the resourceVersion of the cached
// Endpoints.
func TestUpdateIsConditional(t *testing.T) {
	r := newFixture(t, newService(), newPod("a", at("10.1.0.1")), newEndpoints(newService(), nil))
	if err := r.sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if r.written.ResourceVersion != "10" || r.written.UID != "endpoints" {
		t.Errorf("updated resourceVersion %q, UID %q", r.written.ResourceVersion, r.written.UID)
	}
}

// TestDeletionIsConditional checks that a delete request has the UID and the resourceVersion
// as preconditions.
func TestDeletionIsConditional(t *testing.T) {
	r := newFixture(t, newEndpoints(newService(), nil))
	if err := r.sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	want := &metav1.Preconditions{UID: new(types.UID("endpoints")), ResourceVersion: new("10")}
	if diff := cmp.Diff(want, r.deleted.Preconditions); diff != "" {
		t.Errorf("preconditions (-want +got):\n%s", diff)
	}
}

// TestWaitsForOwnWrite checks that a sync waits until the cache contains the controller's last
// write. The event of this write must enqueue the key immediately.
func TestWaitsForOwnWrite(t *testing.T) {
	for _, test := range []struct {
		name   string
		cached []runtime.Object
		call   string
	}{
		{"create", nil, create},
		{"update", []runtime.Object{newEndpoints(newService(), []*corev1.Pod{newPod("b", at("10.1.0.2"))})}, update},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFixture(t, append(test.cached, newService())...)
				// A write of another object advances the resourceVersion of the cache.
				r.cache(newEndpoints(newService(), nil, func(e *endpoints) { e.Name = "other" }))
				for range 3 {
					_ = r.sync(t.Context(), key)
				}
				if diff := cmp.Diff([]string{test.call}, r.calls); diff != "" {
					t.Errorf("calls before the write is in the cache (-want +got):\n%s", diff)
				}
				written := newEndpoints(newService(), nil, func(e *endpoints) { e.ResourceVersion = "20" })
				got := enqueuedAt(t, r, func() {
					r.cache(written)
					r.endpointsObserved(written)
				})
				if diff := cmp.Diff(map[string][]time.Duration{key: {0}}, got); diff != "" {
					t.Errorf("enqueued by the write event (-want +got):\n%s", diff)
				}
				if err := r.sync(t.Context(), key); err != nil || len(r.calls) != 1 {
					t.Errorf("with its write in the cache: error %v, calls %v", err, r.calls)
				}
				if _, awaiting := r.awaitingCache.Load(key); awaiting {
					t.Error("the key still waits for its write")
				}
			})
		})
	}
}

// TestReadsLiveAfterFailedWrite checks that the controller reads the Endpoints from the API
// server after a failed write. The write may have succeeded, so the cache may be stale. This is
// true even if the cached Endpoints equal the desired ones.
func TestReadsLiveAfterFailedWrite(t *testing.T) {
	pod := newPod("a", at("10.1.0.1"))
	ready := newEndpoints(newService(), []*corev1.Pod{pod})
	for _, test := range []struct {
		name string
		live *endpoints
		want []string // requests of the sync after the failed write
	}{
		{"made", newEndpoints(newService(), []*corev1.Pod{newPod("a", at("10.1.0.1"), unready)}, atVersion("11")), []string{readEndpoints, update}},
		{"write without effect", ready, []string{readEndpoints}},
		{"deleted meanwhile", nil, []string{readEndpoints, create}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newFixture(t, newService(), newPod("a", at("10.1.0.1"), unready), ready)
			r.callErrors[update] = []error{errors.New("connection reset"), nil}
			if err := r.sync(t.Context(), key); err == nil {
				t.Fatal("sync returned no error")
			}
			r.cache(pod)
			r.calls, r.liveEndpoints = nil, test.live
			if err := r.sync(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, r.calls); diff != "" {
				t.Errorf("calls after the failure (-want +got):\n%s", diff)
			}
			if _, doubted := r.failedWrites.Load(key); doubted {
				t.Error("failed write was not cleared")
			}
		})
	}
}

// TestTriggerTimeSurvivesFailedWrites checks that the trigger time stays the same until a write
// with it has succeeded.
func TestTriggerTimeSurvivesFailedWrites(t *testing.T) {
	pod := newPod("a", at("10.1.0.1"), readyTransitionAt(serviceCreated.Add(time.Minute)))
	r := newFixture(t, newService(), newEndpoints(newService(), nil))
	if err := r.sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	r.cache(pod)
	r.callErrors[update] = []error{errTooManyRequests, errTooManyRequests, nil}
	for range 3 {
		_ = r.sync(t.Context(), key)
	}
	if got, want := r.written.Annotations[corev1.EndpointsLastChangeTriggerTime], "2026-01-02T03:05:05Z"; got != want {
		t.Errorf("trigger time %q, want %q", got, want)
	}
}
