package environment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

func defaultControllers(t *testing.T) []kube.Controller {
	t.Helper()
	controllers, err := kube.ControllersNamed()
	if err != nil {
		t.Fatal(err)
	}
	return controllers
}

// TestSubjectWatchesDenied checks that the notice and the error of a wait name the denied requests.
func TestSubjectWatchesDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newSubjectWatches()
		m.required = []string{"pods"}
		for id, verb := range []string{"list", "watch", "get"} {
			m.observe(&history.Record{Request: &history.Request{ID: uint64(id), Subject: "subject-0", Verb: verb, Resource: "pods"}})
			m.observe(&history.Record{Response: &history.Response{ID: uint64(id), Code: 403, Denied: true}})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*noticeAfter)
		defer cancel()
		var notices []string
		err := m.wait(ctx, func() error { return nil }, func(text string) { notices = append(notices, text) })
		const want = "no replica of the subject watches pods; it watches nothing; the API server denied list pods, watch pods: add these permissions to a role of the subject"
		if len(notices) != 1 || notices[0] != want || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("notices %q, error %v; want %q", notices, err, want)
		}
	})
}

// TestWaitForWatches verifies that wait returns when the leader watches all required resources.
// After a timeout, the error must name the missing resources.
func TestWaitForWatches(t *testing.T) {
	m := newSubjectWatches()
	m.require(kube.Watched(defaultControllers(t)))
	alive := func() error { return nil }
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	const found = "no replica of the subject watches deployments.apps, endpoints, pods, replicasets.apps, replicationcontrollers, services; it watches "
	if err := m.wait(ctx, alive, silent); err == nil || !strings.Contains(err.Error(), found+"nothing") {
		t.Errorf("error %v, want the names of the missing watches", err)
	}
	m.observe(&history.Record{Request: &history.Request{ID: 100, Verb: "watch", Resource: "secrets"}})
	m.observe(&history.Record{Response: &history.Response{ID: 100, Code: 200}})
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := m.wait(ctx, alive, silent); err == nil || !strings.Contains(err.Error(), found+"secrets") {
		t.Errorf("error %v, want the names of the missing watches and of the open one", err)
	}
	for i, resource := range m.required {
		id := uint64(i + 1)
		m.observe(&history.Record{Request: &history.Request{ID: id, Verb: "watch", Resource: resource}})
		m.observe(&history.Record{Response: &history.Response{ID: id, Code: 200}})
	}
	if err := m.wait(t.Context(), alive, silent); err != nil {
		t.Error(err)
	}
	m.observe(&history.Record{WatchClosed: &history.WatchClosed{ID: 1, Resource: m.required[0]}})
	if missing, closed := m.missing(), m.closed(); len(missing) > 0 || !slices.Equal(closed, m.required[:1]) {
		t.Errorf("after the end of a watch, %q are missing and %q closed, want none and %q", missing, closed, m.required[:1])
	}
}

// TestWaitForWatchesOfEndedSubject verifies that wait does not wait for a subject that has ended.
func TestWaitForWatchesOfEndedSubject(t *testing.T) {
	m := newSubjectWatches()
	m.require(kube.Watched(defaultControllers(t)))
	want := errors.New("exited with status 1")
	if err := m.wait(t.Context(), func() error { return want }, silent); !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

// TestEndedReplicasAreForgotten verifies that observe removes the watches and the identity of a
// replica that has ended.
func TestEndedReplicasAreForgotten(t *testing.T) {
	m := newSubjectWatches()
	m.require(kube.Watched(defaultControllers(t)))
	begin := func(replica, identity string, ids uint64) {
		m.observe(&history.Record{Process: &history.Process{Name: replica, Event: history.ProcessStarted}})
		m.observe(&history.Record{Request: &history.Request{
			ID: ids, Subject: replica, Verb: "update", Resource: leaseResource,
			Object: &history.Object{Body: []byte(`{"spec":{"holderIdentity":"` + identity + `"}}`)},
		}})
		for i, resource := range m.required {
			id := ids + uint64(i) + 1
			m.observe(&history.Record{Request: &history.Request{ID: id, Subject: replica, Verb: "watch", Resource: resource}})
			m.observe(&history.Record{Response: &history.Response{ID: id, Code: 200}})
		}
	}
	end := func(replica string) {
		m.observe(&history.Record{Process: &history.Process{Name: replica, Event: history.ProcessStopped}})
	}
	expect := func(when string, wantLeader bool, holders ...string) {
		t.Helper()
		if got := len(m.missing()) == 0; got != wantLeader {
			t.Errorf("%s: a leader watches all resources: %t; want %t", when, got, wantLeader)
		}
		for i, identity := range []string{"a", "b"} {
			if got := m.holder(identity); got != holders[i] {
				t.Errorf("%s: %s is %q; want %q", when, identity, got, holders[i])
			}
		}
	}
	expect("before the start", false, "", "")
	begin("subject-0", "a", 100)
	expect("with a leader", true, "subject-0", "")
	end("subject-0")
	expect("after its end", false, "", "")
	begin("subject-1", "b", 200)
	m.observe(&history.Record{Process: &history.Process{Name: "subject-0", Event: history.ProcessStarted}})
	expect("with another leader", true, "", "subject-1")
	m.required = nil
	end("subject-1")
	expect("without recorded requests", true, "", "")
}

// silent is a callback of a wait that ignores the notice.
func silent(string) {}
