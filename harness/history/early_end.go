package history

import (
	"cmp"
	"strings"
)

// EarlyEnd finds out why a run ended before its last phase ([PhaseEnd]) began. The zero value has
// read no record.
//
// If a process dies, the run ends. Only records of the teardown then follow, such as the healing
// of faults and the stop of other processes. A death after which the run went on is not the reason.
type EarlyEnd struct {
	died string // the death that may have ended the run; "" if there is none
}

// Observe reads the next record of the history.
func (e *EarlyEnd) Observe(r *Record) {
	switch {
	case r.Process != nil && r.Process.Event == ProcessDied:
		e.died = cmp.Or(e.died, describeDeath(r.Process))
	case r.continuesRun():
		e.died = ""
	}
}

// describeDeath returns the name of a process that died, and the reason if it is known.
func describeDeath(p *Process) string {
	reason, _, _ := strings.Cut(p.Detail, ";") // the rest of the detail is the end of a log
	if strings.HasPrefix(reason, p.Name) {
		return reason
	}
	return strings.TrimSuffix(p.Name+" died: "+reason, ": ")
}

// continuesRun reports whether the record shows that the run has not ended. Such a record begins a
// phase, a step or a fault, or starts a process.
func (r *Record) continuesRun() bool {
	return r.Phase != nil || r.Step != nil && r.Step.Event == StepBegun || r.Fault != nil && r.Fault.Event == FaultInjected ||
		r.Process != nil && r.Process.Event == ProcessStarted
}

// Reason returns why the run ended early, in one line.
func (e *EarlyEnd) Reason() string {
	if e.died == "" {
		return "the history ends before the run did"
	}
	return "the run ended early: " + e.died
}

// Summary returns the source of the gap and the first line of its detail. Further lines of a
// detail are the end of a log.
func (g *Gap) Summary() string {
	detail, _, _ := strings.Cut(g.Detail, "\n")
	return g.Source + ": " + detail
}
