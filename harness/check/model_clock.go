package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// pausedTime measures for how long a process was paused, for example with SIGSTOP. A paused
// process keeps its caches and requests, and its clock stops.
type pausedTime struct {
	total  time.Duration // the duration of all pauses that have ended
	since  time.Duration // when the current pause began; valid only while paused is true
	paused bool
}

// processOf returns the name of the process that a record is about. The process sent a
// request, received a response, list or event, started, or ended. The result is "" for records
// of no process, such as commits.
func (m *Model) processOf(r *history.Record) string {
	switch {
	case r.Response != nil && m.calls[r.Response.ID] != nil:
		return m.calls[r.Response.ID].process.name
	case r.Request != nil:
		return r.Request.Subject
	case r.List != nil:
		return r.List.Subject
	case r.Delivery != nil:
		return r.Delivery.Subject
	case r.Process != nil:
		return r.Process.Name
	}
	return ""
}

// clockOffset returns how far the clock of a process is behind the time of the run. This is
// the total duration of its pauses until now.
func (m *Model) clockOffset(name string) time.Duration {
	pauses := m.pauses[name]
	switch {
	case pauses == nil:
		return 0
	case pauses.paused:
		return pauses.total + m.now - pauses.since
	}
	return pauses.total
}

// stall records that gauntlet got no CPU time for the given duration. The subject probably got
// none either (allowed behavior paused-process).
//
// A stall therefore counts neither as idle time of a process nor towards the expiry of its
// lease.
func (m *Model) stall(duration time.Duration) {
	for name, p := range m.processes {
		p.extendActivity(duration, m.now-m.clockOffset(name))
		p.lease.stalled += duration
	}
}

// pause stops the clock of a process. It does nothing if the process is already paused.
func (m *Model) pause(name string) {
	if m.pauses[name] == nil {
		m.pauses[name] = new(pausedTime)
	}
	if pauses := m.pauses[name]; !pauses.paused {
		pauses.paused, pauses.since = true, m.now
	}
}

// resume starts the clock of a paused process again. It does nothing if the process is not
// paused.
func (m *Model) resume(name string) {
	if pauses := m.pauses[name]; pauses != nil && pauses.paused {
		pauses.total += m.now - pauses.since
		pauses.paused = false
	}
}

// mayWork reports whether a process is not paused and may still hold the lease.
//
// A stall of the machine does not count towards the expiry of the lease. A process that has
// never written a lease may always work, because it may run without leader election.
func (m *Model) mayWork(p *process) bool {
	if pauses := m.pauses[p.name]; pauses != nil && pauses.paused {
		return false
	}
	return p.lease.identity == "" || m.now-m.clockOffset(p.name)-p.lease.stalled <= p.lease.expiresAt()
}
