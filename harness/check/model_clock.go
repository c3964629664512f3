package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// hibernation is for how long a process was paused. What it knew and was about to
// do it finds as it left it, however long that was: its clock stands still.
type hibernation struct {
	lasted time.Duration // all that are over
	since  time.Duration // the present one's beginning
	now    bool
}

// concerns names the process that a record is about, "" if it is about none.
func (m *Model) concerns(r *history.Record) string {
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

// behind is by how much the clock of a process is late.
func (m *Model) behind(name string) time.Duration {
	h := m.lived[name]
	switch {
	case h == nil:
		return 0
	case h.now:
		return h.lasted + m.now - h.since
	}
	return h.lasted
}

// stall takes in that the witness in the subject's path got no time to run, so that
// most likely the subject did not either (trap 41): that it was silent meanwhile says
// nothing of whether it had come to an end. Its clocks went on all the same.
func (m *Model) stall(lasted time.Duration) {
	for name, p := range m.processes {
		p.silent(lasted, m.now-m.behind(name))
		p.tenure.stalled += lasted
	}
}

// hibernate stops the clock of a process.
func (m *Model) hibernate(name string) {
	if m.lived[name] == nil {
		m.lived[name] = new(hibernation)
	}
	if h := m.lived[name]; !h.now {
		h.now, h.since = true, m.now
	}
}

// wakeUp lets the clock of a process go on, if it stood.
func (m *Model) wakeUp(name string) {
	if h := m.lived[name]; h != nil && h.now {
		h.lasted += m.now - h.since
		h.now = false
	}
}

// mayWork reports whether a process is neither paused nor one whose lease has run out,
// which leaves the work to another: the time not counted in which the machine stood still.
func (m *Model) mayWork(p *process) bool {
	if h := m.lived[p.name]; h != nil && h.now {
		return false
	}
	return p.tenure.identity == "" || m.now-m.behind(p.name)-p.tenure.stalled <= p.tenure.ends()
}
