package check

import (
	"maps"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// lostEndpointsWrites contains a Service if its last write of Endpoints was committed, but
// the process did not receive the response.
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
