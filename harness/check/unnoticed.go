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
	if news, of := newsOf(r); of == endpointsResource && news != history.Deleted {
		return // wakes nobody
	}
	for _, w := range m.wakes {
		if w.service != (objectName{}) {
			u.hear(m, r, w.item)
		}
	}
}

// hear takes in news of a Service or of one of its pods.
func (u unnoticed) hear(m *Model, r *history.Record, i item) {
	switch news, of := newsOf(r); {
	case of != podResource:
		delete(u, i)
	case news.OfObject():
		u.turn(m, i, r.Delivery.Object.UID)
	default: // a list: of most pods it says what was known
		for uid := range i.process.view.faces.of {
			u.turn(m, i, uid)
		}
	}
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

// turn takes in what has become of a pod, or that it is as it was.
func (u unnoticed) turn(m *Model, i item, uid types.UID) {
	known := i.process.view.faces.of[uid]
	n := len(known)
	switch {
	case n > 0 && known[n-1].since < m.at: // nothing that Endpoints show
		return
	case n < 2: // it was not known before
		delete(u, i)
		return
	}
	switch before, now := known[n-2].value, known[n-1].value; {
	case !now.sameMember(before):
		delete(u, i)
	case now.ended && !before.ended:
		if u[i] == nil {
			u[i] = map[types.UID]time.Duration{}
		}
		u[i][uid] = m.at
	}
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
