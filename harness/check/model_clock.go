package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// pausedTime is for how long a process was paused. What it knew and was about to
// do it finds as it left it, however long that was: its clock stands still.
type pausedTime struct {
	total  time.Duration // all that are over
	since  time.Duration // the present one's beginning
	paused bool
}

// processOf names the process that a record is about, "" if it is about none.
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

// clockOffset is by how much the clock of a process is late.
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

// stall takes in that the witness in the subject's path got no time to run, so that
// most likely the subject did not either (paused-process): that it was silent meanwhile says
// nothing of whether it had come to an end. Its clocks went on all the same.
func (m *Model) stall(lasted time.Duration) {
	for name, p := range m.processes {
		p.extendActivity(lasted, m.now-m.clockOffset(name))
		p.lease.stalled += lasted
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

// resume lets the clock of a process go on, if it stood.
func (m *Model) resume(name string) {
	if pauses := m.pauses[name]; pauses != nil && pauses.paused {
		pauses.total += m.now - pauses.since
		pauses.paused = false
	}
}

// mayWork reports whether a process is neither paused nor one whose lease has run out,
// which leaves the work to another: the time not counted in which the machine stood still.
func (m *Model) mayWork(p *process) bool {
	if pauses := m.pauses[p.name]; pauses != nil && pauses.paused {
		return false
	}
	return p.lease.identity == "" || m.now-m.clockOffset(p.name)-p.lease.stalled <= p.lease.expiresAt()
}
