package endpoints

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/podutil"
)

// changeTimes holds the times of the last changes that affect a Service's Endpoints. It
// lacks changes whose time no object records.
type changeTimes struct {
	service types.UID
	created time.Time
	// pods holds, by UID, when the readiness of each selected pod last changed.
	pods map[types.UID]time.Time
}

func changeTimesOf(service *corev1.Service, pods []*corev1.Pod) *changeTimes {
	m := &changeTimes{service: service.UID, created: service.CreationTimestamp.Time, pods: make(map[types.UID]time.Time, len(pods))}
	for _, pod := range pods {
		if changed := podutil.ReadyTransitionTime(pod); !changed.IsZero() {
			m.pods[pod.UID] = changed
		}
	}
	return m
}

// trigger returns the time of the earliest change that is newer than the times in before. It
// returns the Service's creation time if before is nil or belongs to another Service. It
// returns zero if no pod has changed, or if no object records when it changed.
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

// triggerTimeTracker holds the change times of the last successful sync of each
// Service. A change therefore determines the trigger time until a write with that
// change succeeds. It is safe for concurrent use.
type triggerTimeTracker struct {
	mu    sync.Mutex
	byKey map[string]*changeTimes
}

func newTriggerTimeTracker() *triggerTimeTracker {
	return &triggerTimeTracker{byKey: map[string]*changeTimes{}}
}

func (d *triggerTimeTracker) last(key string) *changeTimes {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.byKey[key]
}

func (d *triggerTimeTracker) put(key string, m *changeTimes) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.byKey[key] = m
}

func (d *triggerTimeTracker) forget(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byKey, key)
}
