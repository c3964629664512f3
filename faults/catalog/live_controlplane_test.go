package catalog

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestAPIServerRestart checks that every request fails during the downtime. The new API server
// must have the stored objects, but no watch events from before its start.
func TestAPIServerRestart(t *testing.T) {
	l := startLive(t)
	old := l.commit("old")
	l.commit("between")
	heal := l.inject("api-server-restart", "downtime: 30s")
	l.awaitFired()
	if err := l.create("meanwhile"); !cluster.Unavailable(err) {
		t.Errorf("request of the subject during the downtime: error %v, want an error of an unavailable API server", err)
	}
	if _, err := l.admin.CoreV1().ConfigMaps(l.namespace).Get(t.Context(), "old", metav1.GetOptions{}); !cluster.Unavailable(err) {
		t.Errorf("request without the proxy during the downtime: error %v, want an error of an unavailable API server", err)
	}
	begun := time.Now()
	heal() // heal ends the downtime
	if took := time.Since(begun); took > 25*time.Second {
		t.Logf("healed after %s: a slow machine?", took)
	}
	if err := controlPlane.cluster.Health(t.Context()); err != nil {
		t.Error(err)
	}
	if !l.exists("old") || l.exists("meanwhile") {
		t.Error("the API server does not have exactly the stored objects")
	}
	watch, err := l.subject.CoreV1().ConfigMaps(l.namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: old.ResourceVersion})
	if err == nil { // the error may also come in the first watch event
		event := <-watch.ResultChan()
		watch.Stop()
		err = apierrors.FromObject(event.Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("watch from an old version: error %v; want Expired", err)
	}
	if err := l.create("after"); err != nil {
		t.Error(err)
	}
}

// TestEtcdRestart checks that the API server commits no write while etcd is down, and that
// stored objects remain.
func TestEtcdRestart(t *testing.T) {
	l := startLive(t)
	l.commit("old")
	heal := l.inject("etcd-restart", "downtime: 30s")
	l.awaitFired()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := l.subject.CoreV1().ConfigMaps(l.namespace).Create(ctx, configMap("meanwhile"), metav1.CreateOptions{}); !cluster.Unavailable(err) {
		t.Errorf("request of the subject during the downtime: error %v, want an error of an unavailable API server", err)
	}
	heal()
	if !l.exists("old") {
		t.Error("a stored object is gone")
	}
	if err := l.create("after"); err != nil {
		t.Error(err)
	}
}

// TestEtcdCompact checks that a restarted API server cannot serve a compacted version. Without
// the compaction, the API server must read this version from etcd.
func TestEtcdCompact(t *testing.T) {
	for _, test := range []struct {
		name    string
		compact bool
	}{{"compacted", true}, {"not", false}} {
		t.Run(test.name, func(t *testing.T) {
			l := startLive(t)
			first := l.commit("a")
			l.commit("b")
			maps := l.subject.CoreV1().ConfigMaps(l.namespace)
			page, err := maps.List(t.Context(), metav1.ListOptions{Limit: 1})
			if err != nil || page.Continue == "" {
				t.Fatalf("listing the first page: got %v, error %v; want a continue token and no error", page, err)
			}
			l.commit("c")
			if test.compact {
				heal := l.inject("etcd-compact", "every: 50ms")
				l.awaitFired()
				heal()
			}
			if err := l.restartAPIServer(); err != nil {
				t.Fatal(err)
			}
			_, past := maps.List(t.Context(), metav1.ListOptions{
				ResourceVersion: first.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
			})
			_, rest := maps.List(t.Context(), metav1.ListOptions{Limit: 1, Continue: page.Continue})
			for what, err := range map[string]error{"older version": past, "next page": rest} {
				if apierrors.IsResourceExpired(err) != test.compact || (err != nil) != test.compact {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// restartAPIServer restarts the API server, so that its watch caches are empty.
func (l *live) restartAPIServer() error {
	restartable, ok := controlPlane.cluster.(cluster.Restartable)
	if !ok {
		return fmt.Errorf("%T: expected a cluster.Restartable", controlPlane.cluster)
	}
	if err := restartable.Halt(l.t.Context(), cluster.APIServer); err != nil {
		return err
	}
	return restartable.Resume(l.t.Context(), cluster.APIServer)
}

// awaitFired waits until the history has a "fired" record, which says that a fault has changed
// something.
func (l *live) awaitFired() {
	l.t.Helper()
	l.Await(l.t, "fault", func(r history.Record) bool { return r.Fault != nil && r.Fault.Event == history.FaultFired })
}
