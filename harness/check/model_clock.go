package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// pausedTime is the total time for which a process was paused. The clock of a process does
// not advance while it is paused. When the process resumes, it continues with its former
// cache and requests.
type pausedTime struct {
	total  time.Duration // duration of all past pauses
	since  time.Duration // start of the current pause
	paused bool
}

// processOf returns the name of the process that a record concerns. It returns "" if the
// record concerns no process.
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

// clockOffset returns how far the clock of a process is behind because of pauses.
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

// stall records that the fault proxy got no CPU time for a while. The subject probably got
// none either (allowed behavior paused-process), so this time does not count as idle time
// of its processes. Their clocks advance nevertheless.
func (m *Model) stall(duration time.Duration) {
	for name, p := range m.processes {
		p.extendActivity(duration, m.now-m.clockOffset(name))
		p.lease.stalled += duration
	}
}

// pause stops the clock of a process.
func (m *Model) pause(name string) {
	if m.pauses[name] == nil {
		m.pauses[name] = new(pausedTime)
	}
	if pauses := m.pauses[name]; !pauses.paused {
		pauses.paused, pauses.since = true, m.now
	}
}

// resume starts the clock of a paused process again.
func (m *Model) resume(name string) {
	if pauses := m.pauses[name]; pauses != nil && pauses.paused {
		pauses.total += m.now - pauses.since
		pauses.paused = false
	}
}

// mayWork reports whether a process is running and may still hold the lease. If the whole
// machine was stalled, this time does not count for the expiry of the lease.
func (m *Model) mayWork(p *process) bool {
	if pauses := m.pauses[p.name]; pauses != nil && pauses.paused {
		return false
	}
	return p.lease.identity == "" || m.now-m.clockOffset(p.name)-p.lease.stalled <= p.lease.expiresAt()
}
