package history

import (
	"cmp"
	"strings"
)

// EarlyEnd finds out why a run ended before its last phase ([PhaseEnd]). The reason may be that a
// process died. The zero value is ready to use.
//
// A death is the reason only if the run did not go on after the death. The history then contains
// only the cleanup, such as healed faults and stopped processes.
type EarlyEnd struct {
	died string // describes the process whose death may have ended the run; "" if there is none
}

// Observe reads the next record of the history. It remembers the death of a process until a later
// record shows that the run went on.
func (e *EarlyEnd) Observe(r *Record) {
	switch {
	case r.Process != nil && r.Process.Event == ProcessDied:
		e.died = cmp.Or(e.died, describeDeath(r.Process))
	case r.continuesRun():
		e.died = ""
	}
}

// describeDeath returns a text about a process that died, such as "subject-0 died: exit status
// 1". The reason is left out if it is unknown.
func describeDeath(p *Process) string {
	reason, _, _ := strings.Cut(p.Detail, ";") // the rest of the detail is the end of a log
	if strings.HasPrefix(reason, p.Name) {
		return reason
	}
	return strings.TrimSuffix(p.Name+" died: "+reason, ": ")
}

// continuesRun reports whether the record shows that the run goes on. Such a record begins a phase
// or a step, injects a fault, or says that a process started. Records of the cleanup at the end do
// not count.
func (r *Record) continuesRun() bool {
	return r.Phase != nil || r.Step != nil && r.Step.Event == StepBegun || r.Fault != nil && r.Fault.Event == FaultInjected ||
		r.Process != nil && r.Process.Event == ProcessStarted
}

// Reason returns why the run ended early, as one line such as "the run ended early: subject-0
// died".
func (e *EarlyEnd) Reason() string {
	if e.died == "" {
		return "the history ends before the last phase (end)"
	}
	return "the run ended early: " + e.died
}

// Summary returns one line that says which records are missing from the history, and why. The line
// contains the gap's source and the first line of its detail. It omits the other lines of the
// detail, which are the end of the log of a failed component.
func (g *Gap) Summary() string {
	detail, _, _ := strings.Cut(g.Detail, "\n")
	return g.Source + ": " + detail
}
