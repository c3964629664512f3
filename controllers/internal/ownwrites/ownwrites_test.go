package ownwrites

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
)

var (
	owner     = ownership.ID{Key: "ns/a", UID: "1"}
	recreated = ownership.ID{Key: "ns/a", UID: "2"}
)

// fakeCache is a cache that has reached the given resourceVersion.
type fakeCache struct {
	version string
	pods    map[string]*corev1.Pod
}

func (c fakeCache) LastStoreSyncResourceVersion() string { return c.version }

func (c fakeCache) GetByKey(key string) (any, bool, error) {
	pod, ok := c.pods[key]
	return pod, ok, nil
}

func pod(uid types.UID, terminating bool) map[string]*corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: uid}}
	if terminating {
		p.DeletionTimestamp = &metav1.Time{}
	}
	return map[string]*corev1.Pod{"ns/p": p}
}

func TestStaleReason(t *testing.T) {
	tests := []struct {
		name  string
		pods  fakeCache
		write func(*Tracker)
		want  string
	}{
		{"no writes", fakeCache{version: "5"}, func(*Tracker) {}, ""},
		{"cache older than the write", fakeCache{version: "9"}, func(l *Tracker) { l.Wrote(owner, "pods", "10") }, "at resourceVersion 9, the last write of this controller is at 10"},
		{"cache at the write", fakeCache{version: "10"}, func(l *Tracker) { l.Wrote(owner, "pods", "10") }, ""},
		{"cache past the write", fakeCache{version: "11"}, func(l *Tracker) { l.Wrote(owner, "pods", "10") }, ""},
		{"newest write counts, in any order", fakeCache{version: "10"}, func(l *Tracker) {
			l.Wrote(owner, "pods", "11")
			l.Wrote(owner, "pods", "9")
		}, "the last write of this controller is at 11"},
		{"cache of another resource older than the write", fakeCache{version: "10"}, func(l *Tracker) {
			l.Wrote(owner, "pods", "10")
			l.Wrote(owner, "replicasets", "8")
		}, "the informer cache of replicasets is at resourceVersion 7"},
		{"cache without a resourceVersion does not block", fakeCache{}, func(l *Tracker) { l.Wrote(owner, "pods", "10") }, ""},
		{"versions that cannot be compared do not block", fakeCache{version: "x"}, func(l *Tracker) { l.Wrote(owner, "pods", "10") }, ""},
		{"deleted, but still in the cache", fakeCache{pods: pod("u", false)}, func(l *Tracker) {
			l.Deleted(owner, "pods", "ns/p", "u")
		}, "still contains ns/p"},
		{"deleted and terminating in the cache", fakeCache{pods: pod("u", true)}, func(l *Tracker) {
			l.Deleted(owner, "pods", "ns/p", "u")
		}, ""},
		{"deleted and recreated", fakeCache{pods: pod("v", false)}, func(l *Tracker) {
			l.Deleted(owner, "pods", "ns/p", "u")
		}, ""},
		{"deleted and gone", fakeCache{}, func(l *Tracker) { l.Deleted(owner, "pods", "ns/p", "u") }, ""},
		{"recreated owner drops the earlier writes", fakeCache{version: "9"}, func(l *Tracker) {
			l.Wrote(owner, "pods", "10")
			l.Wrote(recreated, "pods", "9")
		}, ""},
		{"forgotten with the owner", fakeCache{version: "9"}, func(l *Tracker) {
			l.Wrote(owner, "pods", "10")
			l.Forget(owner)
		}, ""},
		{"kept when a recreated owner is forgotten", fakeCache{version: "9"}, func(l *Tracker) {
			l.Wrote(owner, "pods", "10")
			l.Forget(recreated)
		}, "the last write of this controller is at 10"},
		{"forgotten with the key", fakeCache{version: "9"}, func(l *Tracker) {
			l.Wrote(owner, "pods", "10")
			l.ForgetKey(owner.Key)
		}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			log := New(map[string]Cache{"pods": test.pods, "replicasets": fakeCache{version: "7"}})
			test.write(log)
			got := log.StaleReason(owner.Key)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("StaleReason = %q, want it to contain %q", got, test.want)
			}
		})
	}
}

func TestReached(t *testing.T) {
	for _, test := range []struct {
		cache, version string
		want           bool
	}{{"9", "10", false}, {"10", "10", true}, {"11", "10", true}, {"", "10", false}, {"10", "", false}} {
		if got := Reached(fakeCache{version: test.cache}, test.version); got != test.want {
			t.Errorf("Reached with cache at %q and version %q = %t, want %t", test.cache, test.version, got, test.want)
		}
	}
}
