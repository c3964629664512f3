package catalog

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func asStatus(err error, status *apierrors.APIStatus) bool { return errors.As(err, status) }

// informedSubject is an informer of ConfigMaps that the subject runs.
type informedSubject struct {
	*live
	mu         sync.Mutex
	present    map[string]bool
	tombstones []string // deleted, by a list that lacked them
	changed    chan struct{}
}

// inform starts the informer and returns when it has synced.
func inform(l *live) *informedSubject {
	l.t.Helper()
	i := &informedSubject{live: l, present: map[string]bool{}, changed: make(chan struct{}, 1)}
	factory := informers.NewSharedInformerFactoryWithOptions(l.subject, 0, informers.WithNamespace(l.namespace))
	informer := factory.Core().V1().ConfigMaps().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { i.note(obj, true) },
		DeleteFunc: func(obj any) { i.note(obj, false) },
	}); err != nil {
		l.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.t.Context()))
	factory.StartWithContext(ctx)
	l.t.Cleanup(func() { cancel(); factory.Shutdown() })
	if !cache.WaitForCacheSync(l.t.Context().Done(), informer.HasSynced) {
		l.t.Fatal("the informer does not sync")
	}
	return i
}

func (i *informedSubject) note(obj any, present bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
		i.tombstones = append(i.tombstones, obj.(*corev1.ConfigMap).Name)
	}
	i.present[obj.(*corev1.ConfigMap).Name] = present
	select {
	case i.changed <- struct{}{}:
	default:
	}
}

func (i *informedSubject) has(name string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.present[name]
}

// learns waits until the informer has an object, or no longer.
func (i *informedSubject) learns(name string, present bool) {
	i.t.Helper()
	timeout := time.After(20 * time.Second)
	for i.has(name) != present {
		select {
		case <-i.changed:
		case <-timeout:
			i.t.Fatalf("the informer has %s: %v, want %v", name, !present, present)
		}
	}
}

// firesOnce waits until a fault has fired.
func (i *informedSubject) firesOnce() {
	i.t.Helper()
	i.Await(i.t, "firing", func(r history.Record) bool { return r.Fault != nil && r.Fault.Event == history.FaultFired })
}

// TestLiveHolds: a held watch tells nothing, and then all.
func TestLiveHolds(t *testing.T) {
	for name, params := range map[string]string{
		"watch-stall": "{resource: configmaps}",
		"watch-delay": "{resource: configmaps, delay: 10m}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := startLive(t)
			i := inform(l)
			heal := l.inject(name, params)
			l.commit("a")
			l.commit("b")
			i.firesOnce()
			if i.has("a") || i.has("b") {
				t.Error("the informer knows")
			}
			heal()
			i.learns("a", true)
			i.learns("b", true)
			held := l.Await(t, "delivery", func(r history.Record) bool { return r.Delivery != nil && r.Delivery.Object.Name == "a" })
			if held.Delivery.Held == 0 {
				t.Error("the history does not say that the event was held")
			}
		})
	}
}

// TestLiveEnds: a watch ends in each way, and the informer goes on. What was
// deleted while it was blind comes as a tombstone if the informer lists: it has to
// after a 410, and client-go does so of its own after a reset in mid-stream.
func TestLiveEnds(t *testing.T) {
	for _, how := range []string{"closed", "reset", "disconnected", "expired"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			l := startLive(t)
			i := inform(l)
			l.commit("gone")
			i.learns("gone", true)
			l.inject("watch-end", "{resource: configmaps, how: "+how+", blind: 300ms}")
			l.remove("gone")
			l.commit("new")
			if !i.has("gone") {
				t.Error("the informer was not blind")
			}
			i.learns("gone", false)
			i.learns("new", true)
			closed := l.Await(t, "end of a watch", func(r history.Record) bool {
				return r.WatchClosed != nil && r.WatchClosed.Resource == configMaps.Resource
			})
			if want := how + " by a fault (watch-end)"; closed.WatchClosed.Reason != want {
				t.Errorf("the watch was %s, want %s", closed.WatchClosed.Reason, want)
			}
			told := slices.ContainsFunc(l.All(), func(r history.Record) bool { return r.Delivery != nil && r.Delivery.Type == history.Error })
			i.mu.Lock()
			defer i.mu.Unlock()
			lists := how == "expired" || how == "reset"
			if told != (how == "expired") || slices.Contains(i.tombstones, "gone") != lists {
				t.Errorf("told of a 410: %v, tombstones %v", told, i.tombstones)
			}
		})
	}
}

// TestLiveEndsAgain: watches end round after round.
func TestLiveEndsAgain(t *testing.T) {
	l := startLive(t)
	i := inform(l)
	l.inject("watch-end", "{resource: configmaps, how: reset, every: 50ms, times: 3}")
	for n := range 3 {
		seen := 0
		l.Await(t, "end of a watch", func(r history.Record) bool {
			if r.WatchClosed != nil {
				seen++
			}
			return seen > n
		})
	}
	l.commit("a")
	i.learns("a", true)
}

// TestLiveBookmarks: the API server sends a bookmark to a watch that is about to
// time out, and the subject gets none while they are lost.
func TestLiveBookmarks(t *testing.T) {
	for _, lost := range []bool{false, true} {
		l := startLive(t)
		if lost {
			l.inject("bookmark-loss", "{resource: configmaps}")
		}
		seconds := int64(4)
		stream, err := l.subject.CoreV1().ConfigMaps(l.namespace).Watch(t.Context(),
			metav1.ListOptions{AllowWatchBookmarks: true, TimeoutSeconds: &seconds, ResourceVersion: l.commit("a").ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		l.commit("b") // nothing new, no bookmark
		bookmarks := 0
		for event := range stream.ResultChan() {
			if event.Type == watch.Bookmark {
				bookmarks++
			}
		}
		if lost != (bookmarks == 0) || lost != (l.fired() > 0) {
			t.Errorf("lost %v: %d bookmarks came, %d were lost", lost, bookmarks, l.fired())
		}
	}
}

// TestLiveStale: a subject that starts while lists are old lists what is gone, at
// the older version, and its watch brings it up to date.
func TestLiveStale(t *testing.T) {
	l := startLive(t)
	l.commit("gone")
	heal := l.inject("stale-list", "{resource: configmaps}")
	l.remove("gone")
	later := l.commit("new")
	list := func(version string) *corev1.ConfigMapList {
		t.Helper()
		got, err := l.subject.CoreV1().ConfigMaps(l.namespace).List(t.Context(), metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	has := func(of *corev1.ConfigMapList, name string) bool {
		return slices.ContainsFunc(of.Items, func(o corev1.ConfigMap) bool { return o.Name == name })
	}
	old := list("0")
	versions := []history.Version{}
	for _, text := range []string{old.ResourceVersion, later.ResourceVersion} {
		version, err := history.ParseVersion(text)
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, version)
	}
	if !has(old, "gone") || has(old, "new") || versions[0] >= versions[1] {
		t.Errorf("an old list has version %d, and what is gone: %v, what came at %d: %v", versions[0], has(old, "gone"), versions[1], has(old, "new"))
	}
	for asked, version := range map[string]string{"the newest state": "", "a state not older than what it knows": later.ResourceVersion} {
		if got := list(version); has(got, "gone") || !has(got, "new") {
			t.Errorf("asked for %s, the list is old", asked)
		}
	}

	i := inform(l) // it asks for a streaming list first, and lists when that is refused
	i.learns("gone", false)
	i.learns("new", true)
	shown := l.Await(t, "list of what is gone", func(r history.Record) bool {
		return r.Fault != nil && r.Fault.Event == history.FaultFired && r.Fault.Detail != "" && r.Fault.Request > l.answerTo("list", 2).ID
	})
	if shown.Fault.Object == nil || shown.Fault.Object.Version != versions[0] {
		t.Errorf("the history says %+v", shown.Fault)
	}
	heal()
	if got := list("0"); has(got, "gone") {
		t.Error("lists are old though the fault is healed")
	}
}
