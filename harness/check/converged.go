package check

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// newConverged judges the owners of pods.
func newConverged(s Settings) Checker {
	backingOff := newWaiting()
	return newSettlement(s, realm{
		nothing: "there was nothing to converge",
		touched: func(w *world) bool {
			for uid := range w.touched {
				if w.owners[uid] != nil {
					return true
				}
			}
			return false
		},
		all: func(m *Model, namespace string) []types.UID { return inOrder(m.truth.owners, namespace) },
		pending: func(m *Model, uid types.UID) (*history.Ref, []pending) {
			o := m.truth.owners[uid]
			return &o.Ref, m.truth.pending(o, m.start.Time.Add(m.now))
		},
		watch: backingOff.observe,
		weakness: func(m *Model, uid types.UID) *KnownIssue {
			if backingOff.explains(m, uid) {
				return longBackOff
			}
			return nil
		},
	})
}

// newEndpointsExact judges the Services whose Endpoints the subject keeps.
func newEndpointsExact(s Settings) Checker {
	lost, ends := lostWrites{}, unnoticed{}
	givenUp := newDropped(func(c *call) bool { return c.publication != nil })
	return newSettlement(s, realm{
		nothing: "there was no Service with a selector",
		touched: func(w *world) bool { return len(w.published) > 0 },
		all: func(m *Model, namespace string) []types.UID {
			w := m.truth
			return slices.DeleteFunc(inOrder(w.services, namespace), func(uid types.UID) bool { return !w.services[uid].managed() })
		},
		pending: func(m *Model, uid types.UID) (*history.Ref, []pending) {
			s := m.truth.services[uid]
			return &s.Ref, m.truth.pendingService(s)
		},
		watch: func(m *Model, r *history.Record) {
			lost.observe(m, r)
			givenUp.observe(m, r)
			ends.observe(m, r)
		},
		weakness: func(m *Model, uid types.UID) *KnownIssue {
			s := m.truth.services[uid]
			key := item{service: nameOf(s.Ref)}
			switch {
			case hasKey(m, lost, key):
				return lostEndpoints
			case givenUp.explains(m, key):
				return droppedKey
			case ends.explains(m, s):
				return unnoticedEnd
			}
			return nil
		},
	})
}
