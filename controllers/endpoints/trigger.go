package endpoints

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/podutil"
)

// changeTimes contains the times of changes that affect the Endpoints of one Service. These are
// the creation of the Service, and the last change of readiness of each selected pod.
//
// Other changes, such as new labels of a pod, are missing, because no object contains their
// time.
type changeTimes struct {
	service types.UID
	created time.Time
	// pods maps the UID of each selected pod to the time at which its readiness last changed.
	pods map[types.UID]time.Time
}

// changeTimesOf returns the change times of a Service and its selected pods.
func changeTimesOf(service *corev1.Service, pods []*corev1.Pod) *changeTimes {
	m := &changeTimes{service: service.UID, created: service.CreationTimestamp.Time, pods: make(map[types.UID]time.Time, len(pods))}
	for _, pod := range pods {
		if changed := podutil.ReadyTransitionTime(pod); !changed.IsZero() {
			m.pods[pod.UID] = changed
		}
	}
	return m
}

// trigger returns the time of the earliest change of a pod's readiness since the last successful
// sync. The argument before contains the times of that sync. The result is zero if no readiness
// has changed. Other changes have no known time.
//
// If the argument before is nil, or belongs to a deleted Service with the same name, this is the
// first sync of the Service. The result is then the creation time of the Service.
func (m *changeTimes) trigger(before *changeTimes) time.Time {
	if before == nil || before.service != m.service {
		return m.created
	}
	var first time.Time
	for pod, changed := range m.pods {
		if changed.After(before.pods[pod]) && (first.IsZero() || changed.Before(first)) {
			first = changed
		}
	}
	return first
}

// triggerTimeTracker stores for each Service the change times that its last successful sync has
// read. It is safe for concurrent use.
//
// Later changes are not in the Endpoints yet. The next sync writes the time of the earliest of them
// to the annotation endpoints.kubernetes.io/last-change-trigger-time.
type triggerTimeTracker struct {
	mu    sync.Mutex
	byKey map[string]*changeTimes
}

func newTriggerTimeTracker() *triggerTimeTracker {
	return &triggerTimeTracker{byKey: map[string]*changeTimes{}}
}

// last returns the change times of the last successful sync of a Service. It returns nil if no
// sync of the Service has succeeded. The argument key is "namespace/name".
func (d *triggerTimeTracker) last(key string) *changeTimes {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.byKey[key]
}

// put stores the change times from which a successful sync built the Endpoints of a Service. The
// next sync compares its own change times with them, to find the changes since then (see
// changeTimes.trigger).
func (d *triggerTimeTracker) put(key string, m *changeTimes) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.byKey[key] = m
}

// forget drops the change times of a deleted Service.
func (d *triggerTimeTracker) forget(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byKey, key)
}
