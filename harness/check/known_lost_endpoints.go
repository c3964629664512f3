package check

import (
	"maps"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// lostEndpointsWrites is the Services of whose Endpoints a write was made that the process
// was not told of, and none since that it was told of.
type lostEndpointsWrites map[workQueueKey]bool

func (l lostEndpointsWrites) observe(m *Model, r *history.Record) {
	if processStarts(r) {
		dropEndedProcesses(l)
		return
	}
	answered := m.answered
	if answered == nil || answered.serviceState == nil {
		return
	}
	switch name := answered.serviceState.name; {
	case answered.response.OK():
		maps.DeleteFunc(l, func(key workQueueKey, _ bool) bool { return key.service == name })
	case answered.response.Reached && (answered.response.ServerCode == 0 || answered.response.ServerCode < 300):
		l[answered.queueKey] = true
	}
}
