package check

import (
	"maps"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// lostWrites is the Services of whose Endpoints a write was made that the process
// was not told of, and none since that it was told of.
type lostWrites map[item]bool

func (l lostWrites) observe(m *Model, r *history.Record) {
	if begins(r) {
		forgetEnded(l)
		return
	}
	a := m.answered
	if a == nil || a.publication == nil {
		return
	}
	switch name := a.publication.name; {
	case a.response.OK():
		maps.DeleteFunc(l, func(i item, _ bool) bool { return i.service == name })
	case a.response.Reached && (a.response.ServerCode == 0 || a.response.ServerCode < 300):
		l[a.item] = true
	}
}
