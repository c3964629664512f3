package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// processAliveCheck demands that no process of the controllers under test exits by itself. It
// examines each exit that neither a fault nor a workload step caused.
//
// It skips exits before the first phase of the run.
var processAliveCheck = Check{
	ID:               "process-alive",
	Guarantee:        "No controller process exits by itself, except within 30 seconds after it failed to renew its lease.",
	Contract:         "The binary",
	Property:         Safety,
	Scope:            general,
	ExercisedWhen:    "A process of the subject sends a request, or exits by itself.",
	Ignores:          "Exits before the first phase of the run. Exits that a fault or a step of the workload caused.",
	AllowedBehaviors: []string{"retry-delay"},
	New:              newProcessAliveChecker,
}

// leaseGrace is how long after a failed renewal of the lease the leader may exit. The time is
// measured on the clock of the process, which stops while the process is paused.
const leaseGrace = 30 * time.Second

// subjectPrefix is the prefix of the names of the processes under test, such as subject-0. Other
// processes of a run, such as the API server, have other names.
const subjectPrefix = "subject-"

// processAliveChecker reports processes that exit by themselves. It does not report a leader
// that could not renew its lease, because such a leader must exit.
type processAliveChecker struct{ findings }

func newProcessAliveChecker(Settings) Checker { return &processAliveChecker{} }

func (checker *processAliveChecker) Observe(m *Model, r *history.Record) {
	if m.sent != nil && checker.exercised < len(m.processes) {
		checker.exercised = len(m.processes)
	}
	// A process that exits before the first phase of the run has failed to start. The check does
	// not report such an exit.
	if r.Process == nil || r.Process.Event != history.ProcessDied || m.phase == "" {
		return
	}
	if !strings.HasPrefix(r.Process.Name, subjectPrefix) {
		return
	}
	checker.exercised = max(checker.exercised, 1)
	if p := m.died; p != nil && p.leaseFailed && m.processTime-p.leaseLost <= leaseGrace {
		return
	}
	checker.addViolation(func() Evidence {
		return Evidence{
			Summary:  strings.TrimSuffix(fmt.Sprintf("process %s died: %s", r.Process.Name, r.Process.Detail), ": "),
			Expected: "a process that runs until gauntlet stops it",
			At:       m.now,
			Records:  []int64{m.seq},
		}
	})
}
