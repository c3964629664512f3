package check

import (
	"maps"
	"slices"
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

// newsOf is what a process is told, and of which resource; no type of event is a list.
func newsOf(r *history.Record) (news history.EventType, of string) {
	switch {
	case r.Delivery != nil:
		return r.Delivery.Type, r.Delivery.Resource
	case r.List != nil:
		return "", r.List.Resource
	}
	return "", ""
}

// newsOfService reports whether what came wakes a Service (contract Endpoints 1), and
// which of its pods have ended besides. A list says of most pods what was known.
func newsOfService(m *Model, r *history.Record, i item) (wakes bool, ended []types.UID) {
	news, of := newsOf(r)
	switch {
	case of == endpointsResource:
		return news == history.Deleted, nil
	case of != podResource:
		return true, nil
	}
	pods := maps.Keys(i.process.view.faces.of)
	if news.HasObject() {
		pods = slices.Values([]types.UID{r.Delivery.Object.UID})
	}
	for uid := range pods {
		switch podWakes, ends := newsOfPod(m, i.process, uid); {
		case podWakes:
			return true, nil
		case ends:
			ended = append(ended, uid)
		}
	}
	return false, ended
}

// newsOfPod reports whether what a process was just told of a pod wakes its Services,
// and, if not, whether it has ended by it.
func newsOfPod(m *Model, p *process, uid types.UID) (wakes, ends bool) {
	known := p.view.faces.of[uid]
	n := len(known)
	switch {
	case n > 0 && known[n-1].since < m.at: // nothing that Endpoints show
		return false, false
	case n < 2: // it was not known before
		return true, false
	}
	before, now := known[n-2].value, known[n-1].value
	if !now.sameMember(before) {
		return true, false
	}
	return false, now.ended && !before.ended
}

// sameMember reports whether two versions of a pod, which always has the same hostname
// and subdomain, differ in nothing that wakes its Services by contract Endpoints 1.
func (f face) sameMember(before face) bool {
	if f.pod == nil || before.pod == nil || f.ready != before.ready || f.terminating != before.terminating || !maps.Equal(f.labels, before.labels) {
		return false
	}
	a, err := f.reachable()
	b, errBefore := before.reachable()
	return err == nil && errBefore == nil && a.Status.PodIP == b.Status.PodIP && slices.Equal(a.Status.PodIPs, b.Status.PodIPs)
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
