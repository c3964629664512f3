package check

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// unnoticed is, by the key of a Service in a work queue, the pods that a process was
// told have ended, and of which nothing else changed that wakes the Service (contract
// Endpoints 1); and when. It is what has come since anything else woke the Service.
type unnoticed map[item]map[types.UID]time.Duration

func (u unnoticed) observe(m *Model, r *history.Record) {
	switch {
	case begins(r):
		forgetEnded(u)
	case m.sent != nil && m.sent.publication != nil:
		// What was decided before it was told may be sent after.
		maps.DeleteFunc(u[m.sent.item], func(_ types.UID, told time.Duration) bool { return m.at-told > lag })
	}
	for _, w := range m.wakes {
		if w.service == (objectName{}) {
			continue
		}
		wakes, ended := newsOfService(m, r, w.item)
		if wakes {
			delete(u, w.item)
			continue
		}
		for _, uid := range ended {
			u.add(m, w.item, uid)
		}
	}
}

// add notes that a pod has ended and nobody woke.
func (u unnoticed) add(m *Model, i item, pod types.UID) {
	if u[i] == nil {
		u[i] = map[types.UID]time.Duration{}
	}
	u[i][pod] = m.at
}

// explains reports whether what is pending about a Service is just that some process has
// not noticed such ends: its Endpoints are what they were to be if those pods ran on.
func (u unnoticed) explains(m *Model, s *service) bool {
	for key := range m.keys(item{service: nameOf(s.Ref)}) {
		running := u[key]
		if len(running) > 0 && len(m.truth.pendingServiceWith(s, running)) == 0 {
			return true
		}
	}
	return false
}
