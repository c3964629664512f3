package catalog

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestAPIServerRestart: nobody gets an answer while it is down, the subject least;
// its successor has what was stored, and no history to watch on from.
func TestAPIServerRestart(t *testing.T) {
	l := startLive(t)
	old := l.commit("old")
	l.commit("between")
	heal := l.inject("api-server-restart", "downtime: 30s")
	l.awaitFired()
	if err := l.create("meanwhile"); !cluster.Unavailable(err) {
		t.Errorf("a request of the subject meanwhile: %v", err)
	}
	if _, err := l.admin.CoreV1().ConfigMaps(l.namespace).Get(t.Context(), "old", metav1.GetOptions{}); !cluster.Unavailable(err) {
		t.Errorf("a request of admin's meanwhile: %v", err)
	}
	begun := time.Now()
	heal() // cuts the downtime short
	if took := time.Since(begun); took > 25*time.Second {
		t.Logf("healed after %s: a slow machine?", took)
	}
	if err := controlPlane.cluster.Health(t.Context()); err != nil {
		t.Error(err)
	}
	if !l.exists("old") || l.exists("meanwhile") {
		t.Error("the API server does not have what it had stored, and that alone")
	}
	watch, err := l.subject.CoreV1().ConfigMaps(l.namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: old.ResourceVersion})
	if err == nil { // it may also be told so by the first event
		event := <-watch.ResultChan()
		watch.Stop()
		err = apierrors.FromObject(event.Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("a watch from before: %v; expected that the version is too old", err)
	}
	if err := l.create("after"); err != nil {
		t.Error(err)
	}
}

// TestEtcdRestart: while etcd is down nothing can be committed; what was, stays.
func TestEtcdRestart(t *testing.T) {
	l := startLive(t)
	l.commit("old")
	heal := l.inject("etcd-restart", "downtime: 30s")
	l.awaitFired()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := l.subject.CoreV1().ConfigMaps(l.namespace).Create(ctx, configMap("meanwhile"), metav1.CreateOptions{}); !cluster.Unavailable(err) {
		t.Errorf("a request meanwhile: %v", err)
	}
	heal()
	if !l.exists("old") {
		t.Error("what was stored is gone")
	}
	if err := l.create("after"); err != nil {
		t.Error(err)
	}
}

// TestEtcdCompact: once the API server has forgotten the past too, nobody has it;
// without a compaction the next one reads it from etcd.
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
				t.Fatalf("a page of a list: %v, %v", page, err)
			}
			l.commit("c")
			if test.compact {
				heal := l.inject("etcd-compact", "every: 50ms")
				l.awaitFired()
				heal()
			}
			if err := l.forget(); err != nil {
				t.Fatal(err)
			}
			_, past := maps.List(t.Context(), metav1.ListOptions{
				ResourceVersion: first.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
			})
			_, rest := maps.List(t.Context(), metav1.ListOptions{Limit: 1, Continue: page.Continue})
			for what, err := range map[string]error{"the past": past, "the rest of a list": rest} {
				if apierrors.IsResourceExpired(err) != test.compact || (err != nil) != test.compact {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// forget has the API server forget what it has in its caches.
func (l *live) forget() error {
	if err := controlPlane.cluster.Halt(l.t.Context(), cluster.APIServer); err != nil {
		return err
	}
	return controlPlane.cluster.Resume(l.t.Context(), cluster.APIServer)
}

// awaitFired waits until a fault has fired.
func (l *live) awaitFired() {
	l.t.Helper()
	l.Await(l.t, "fault", func(r history.Record) bool { return r.Fault != nil && r.Fault.Event == history.FaultFired })
}
