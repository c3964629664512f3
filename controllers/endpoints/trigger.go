package endpoints

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/podfacts"
)

// moments are the times at which what a Service's Endpoints follow from last
// changed, as far as objects tell.
type moments struct {
	service types.UID
	created time.Time
	// pods holds when the readiness of each selected pod changed.
	pods map[types.UID]time.Time
}

func momentsOf(service *corev1.Service, pods []*corev1.Pod) *moments {
	m := &moments{service: service.UID, created: service.CreationTimestamp.Time, pods: make(map[types.UID]time.Time, len(pods))}
	for _, pod := range pods {
		if changed := podfacts.ReadinessChanged(pod); !changed.IsZero() {
			m.pods[pod.UID] = changed
		}
	}
	return m
}

// trigger returns the time of the first change since the moments before, which
// are nil when there were none. It is the Service's creation for one not seen
// before, and zero when no object tells when it changed.
func (m *moments) trigger(before *moments) time.Time {
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

// diary remembers the moments of the last sync of each Service that came to its
// end: a change stays the trigger until it has been written. It is safe for
// concurrent use.
type diary struct {
	mu    sync.Mutex
	byKey map[string]*moments
}

func newDiary() *diary { return &diary{byKey: map[string]*moments{}} }

func (d *diary) last(key string) *moments {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.byKey[key]
}

func (d *diary) put(key string, m *moments) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.byKey[key] = m
}

func (d *diary) forget(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byKey, key)
}
