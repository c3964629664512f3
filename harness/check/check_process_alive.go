package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// processAliveCheck is the row of process-alive in All.
var processAliveCheck = Check{
	ID:               "process-alive",
	Guarantee:        "No process of the subject dies of itself, unless it could not renew its lease.",
	Contract:         "The binary",
	Property:         Safety,
	AllowedBehaviors: []string{"retry-delay"},
	New:              newProcessAliveChecker,
}

// leaseGrace is within what time of a failure to renew its lease a leader may
// exit because of it.
const leaseGrace = 30 * time.Second

// subjectPrefix begins the names of the subject's processes.
const subjectPrefix = "subject-"

// processAliveChecker: no process of the subject dies that nobody stopped, unless it had
// trouble with its lease, which a leader that loses it must exit for.
type processAliveChecker struct{ findings }

func newProcessAliveChecker(Settings) Checker { return &processAliveChecker{} }

func (checker *processAliveChecker) Observe(m *Model, r *history.Record) {
	if m.sent != nil && checker.exercised < len(m.processes) {
		checker.exercised = len(m.processes)
	}
	// One that dies before the chaos has not been started: a broken run, no finding.
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
			Summary:  fmt.Sprintf("%s died: %s", r.Process.Name, r.Process.Detail),
			Expected: "to run until it is stopped",
			At:       m.now,
			Records:  []int64{m.seq},
		}
	})
}
