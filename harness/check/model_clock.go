package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// pausedTime measures for how long a process was paused, for example with SIGSTOP. A paused
// process keeps its caches and its requests in flight, but its clock stops.
type pausedTime struct {
	total  time.Duration // the duration of all pauses that have ended
	since  time.Duration // when the current pause began; valid only while paused is true
	paused bool
}

// processOf returns the name of the process that a record is about: the process that sent,
// received, started or ended. The time of the record is then measured on the clock of this process.
// The result is "" for records that concern no process, such as commits.
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

// clockOf returns the current time on the clock of the process with this name. The clock stops
// while the process is paused or gets no CPU time. It never goes backward.
func (m *Model) clockOf(name string) time.Duration {
	at := m.now - m.stalls.total[machine] - m.stalls.total[name]
	if pauses := m.pauses[name]; pauses != nil {
		at -= pauses.total
		if pauses.paused {
			at -= m.now - pauses.since
		}
	}
	m.clocks[name] = max(m.clocks[name], at)
	return m.clocks[name]
}

// stall adds a period before the current record in which a process, or gauntlet itself, got no CPU
// time. A stall of gauntlet counts for every process. The controllers under test probably got no
// CPU time either (allowed behavior paused-process).
//
// The clock of the process stops for this duration. The time limits of all checks therefore become
// longer.
func (m *Model) stall(s *history.Stall) {
	m.stalls.add(s.Process, m.now, s.Duration)
	for name, p := range m.processes {
		if s.Process == machine || s.Process == name {
			p.lease.recordStall(s.Duration)
		}
	}
	for name, pauses := range m.pauses {
		if pauses.paused && (s.Process == machine || s.Process == name) { // the clock is already stopped
			pauses.since = min(pauses.since+s.Duration, m.now)
		}
	}
}

// pause stops the clock of the process with this name. It does nothing if the process is already
// paused.
func (m *Model) pause(name string) {
	if m.pauses[name] == nil {
		m.pauses[name] = new(pausedTime)
	}
	if pauses := m.pauses[name]; !pauses.paused {
		pauses.paused, pauses.since = true, m.now
	}
}

// resume makes the clock of the process with this name run again after a pause. It does nothing
// if the process is not paused.
func (m *Model) resume(name string) {
	if pauses := m.pauses[name]; pauses != nil && pauses.paused {
		pauses.total += m.now - pauses.since
		pauses.paused = false
	}
}

// mayWork reports whether a process may sync objects now: it is not paused, and may hold the
// lease. A process that has never written a lease may always work, because it may run without
// leader election.
func (m *Model) mayWork(p *process) bool {
	if pauses := m.pauses[p.name]; pauses != nil && pauses.paused {
		return false
	}
	return p.lease.identity == "" || m.clockOf(p.name) <= p.lease.expiresAt()
}
