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

// informedSubject is an informer of ConfigMaps, which acts as the controller under test.
type informedSubject struct {
	*live
	mu         sync.Mutex
	present    map[string]bool
	tombstones []string // deleted objects whose deletion the informer detected in a list
	changed    chan struct{}
}

// inform starts an informer and waits until its cache has synced.
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
		l.t.Fatal("the informer did not sync")
	}
	return i
}

// note records whether the informer's cache contains an object. It also records whether the
// informer detected the object's deletion in a list.
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

// awaitCached waits until the informer's cache contains an object. If present is false, it waits
// until the cache does not contain the object.
func (i *informedSubject) awaitCached(name string, present bool) {
	i.t.Helper()
	timeout := time.After(20 * time.Second)
	for i.has(name) != present {
		select {
		case <-i.changed:
		case <-timeout:
			i.t.Fatalf("the cache contains %s: %v, want %v", name, !present, present)
		}
	}
}

// awaitFired waits until the history has a "fired" record, which says that a fault has changed
// something.
func (i *informedSubject) awaitFired() {
	i.t.Helper()
	i.Await(i.t, "firing", func(r history.Record) bool { return r.Fault != nil && r.Fault.Event == history.FaultFired })
}

// TestLiveHolds checks that the informer receives no event of a held watch until the fault is
// healed. After that, the informer must receive all events.
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
			i.awaitFired()
			if i.has("a") || i.has("b") {
				t.Error("the informer received a held event")
			}
			heal()
			i.awaitCached("a", true)
			i.awaitCached("b", true)
			held := l.Await(t, "delivery", func(r history.Record) bool { return r.Delivery != nil && r.Delivery.Object.Name == "a" })
			if held.Delivery.Held == 0 {
				t.Error("the delivery record has no hold")
			}
		})
	}
}

// TestLiveEnds ends a watch in each way that watch-end supports, and checks that the informer
// continues. After a 410 or a reset of the stream, the informer lists again. It must then detect
// an object that was deleted during the hold.
func TestLiveEnds(t *testing.T) {
	for _, how := range []string{"closed", "reset", "disconnected", "expired"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			l := startLive(t)
			i := inform(l)
			l.commit("gone")
			i.awaitCached("gone", true)
			l.inject("watch-end", "{resource: configmaps, how: "+how+", blind: 300ms}")
			l.remove("gone")
			l.commit("new")
			if !i.has("gone") {
				t.Error("the informer received an event during the hold")
			}
			i.awaitCached("gone", false)
			i.awaitCached("new", true)
			closed := l.Await(t, "end of a watch", func(r history.Record) bool {
				return r.WatchClosed != nil && r.WatchClosed.Resource == configMaps.Resource
			})
			if want := how + " by a fault (watch-end)"; closed.WatchClosed.Reason != want {
				t.Errorf("the watch was %s, want %s", closed.WatchClosed.Reason, want)
			}
			gotExpired := slices.ContainsFunc(l.All(), func(r history.Record) bool { return r.Delivery != nil && r.Delivery.Type == history.Error })
			i.mu.Lock()
			defer i.mu.Unlock()
			lists := how == "expired" || how == "reset"
			if gotExpired != (how == "expired") || slices.Contains(i.tombstones, "gone") != lists {
				t.Errorf("received a 410: %v, tombstones %v; want a 410 only if the watch expired, and tombstone gone only after a list", gotExpired, i.tombstones)
			}
		})
	}
}

// TestLiveEndsAgain checks that a watch-end fault with the parameter every ends a watch in every
// round.
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
	i.awaitCached("a", true)
}

// TestLiveSkip checks that the informer never receives one version of an object. The informer
// must receive the object's later version.
func TestLiveSkip(t *testing.T) {
	l := startLive(t)
	i := inform(l)
	l.commit("kept")
	i.awaitCached("kept", true)
	l.inject("watch-skip", "{resource: configmaps, name: short, type: ADDED}")
	short := l.commit("short")
	l.commit("other") // this event waits behind the held event
	l.remove("short")
	i.awaitFired()
	i.awaitCached("other", true)
	version, err := history.ParseVersion(short.ResourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	received := slices.ContainsFunc(l.All(), func(r history.Record) bool { return r.Delivery != nil && r.Delivery.Object.Name == "short" })
	fired := l.Await(t, "firing", func(r history.Record) bool { return r.Fault != nil && r.Fault.Event == history.FaultFired })
	if i.mu.Lock(); i.present["short"] || !i.present["kept"] || received || fired.Fault.Object.Version != version {
		t.Errorf("cached: %v, received the skipped object: %v, firing at version %d; want the skip of version %d", i.present, received, fired.Fault.Object.Version, version)
	}
	i.mu.Unlock()
}

// TestLiveSkipNothing checks that the informer receives the held event if no later event of the
// same object arrives.
func TestLiveSkipNothing(t *testing.T) {
	l := startLive(t)
	i := inform(l)
	l.inject("watch-skip", "{resource: configmaps, within: 300ms}")
	l.commit("a")
	i.awaitCached("a", true)
	held := l.Await(t, "delivery", func(r history.Record) bool { return r.Delivery != nil && r.Delivery.Object.Name == "a" })
	if held.Delivery.Held == 0 || l.fired() != 0 {
		t.Errorf("the event was held for %v and the fault fired %d times; want a hold and no firing", held.Delivery.Held, l.fired())
	}
}

// TestLiveBookmarks checks that the API server sends a bookmark before the timeout of a watch. The
// controller under test must receive this bookmark only without the fault.
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
		l.commit("b") // without this change the API server sends no bookmark
		bookmarks := 0
		for event := range stream.ResultChan() {
			if event.Type == watch.Bookmark {
				bookmarks++
			}
		}
		if lost != (bookmarks == 0) || lost != (l.fired() > 0) {
			t.Errorf("with the fault: %v: %d bookmarks received and %d dropped; want the bookmark dropped only with the fault", lost, bookmarks, l.fired())
		}
	}
}

// TestLiveStale checks a controller under test that starts during a stale-list fault. Its list
// must contain an object that has been deleted since the injection. Its watch must then correct
// the cache.
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
		t.Errorf("outdated list at version %d contains the deleted object: %v; at version %d the new object: %v", versions[0], has(old, "gone"), versions[1], has(old, "new"))
	}
	for asked, version := range map[string]string{"the latest state": "", "a newer version": later.ResourceVersion} {
		if got := list(version); has(got, "gone") || !has(got, "new") {
			t.Errorf("the list of %s is outdated, want the current objects", asked)
		}
	}

	i := inform(l) // the informer first sends a streaming list; after the refusal it sends a list
	i.awaitCached("gone", false)
	i.awaitCached("new", true)
	fired := l.Await(t, "firing at a list", func(r history.Record) bool {
		return r.Fault != nil && r.Fault.Event == history.FaultFired && r.Fault.Detail != "" && r.Fault.Request > l.responseTo("list", 2).ID
	})
	if fired.Fault.Object == nil || fired.Fault.Object.Version != versions[0] {
		t.Errorf("record of the firing: %+v, want an object with the version of the outdated list", fired.Fault)
	}
	heal()
	if got := list("0"); has(got, "gone") {
		t.Error("lists are outdated after healing")
	}
}
