package check

import (
	"maps"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// lostEndpointsWrites contains the key of each Service for which the response to a write of
// Endpoints was lost. The API server may have committed the write, so the known upstream issue
// lost-endpoints may occur. The next successful write of the same Endpoints removes the key.
type lostEndpointsWrites map[workQueueKey]bool

// observe adds the key of a Service when the response to a write of its Endpoints is lost. It
// removes the key when a later write of these Endpoints succeeds.
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
