package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// This file judges whether the subject stays up.

// leaseGrace is within what time of a failure to renew its lease a leader may
// exit because of it.
const leaseGrace = 30 * time.Second

// subjectPrefix begins the names of the subject's processes.
const subjectPrefix = "subject-"

// aliveJudge: no process of the subject dies that nobody stopped, unless it had
// trouble with its lease, which a leader that loses it must exit for.
type aliveJudge struct{ findings }

func newAlive(Settings) Checker { return &aliveJudge{} }

func (j *aliveJudge) Observe(m *Model, r *history.Record) {
	if m.sent != nil && j.tested < len(m.processes) {
		j.tested = len(m.processes)
	}
	// One that dies before the chaos has not been started: a broken run, no finding.
	if r.Process == nil || r.Process.Event != history.ProcessDied || m.phase == "" {
		return
	}
	if !strings.HasPrefix(r.Process.Name, subjectPrefix) {
		return
	}
	j.tested = max(j.tested, 1)
	if p := m.died; p != nil && p.leaseFailed && m.at-p.leaseLost <= leaseGrace {
		return
	}
	j.violate(func() Evidence {
		return Evidence{
			Summary:  fmt.Sprintf("%s died: %s", r.Process.Name, r.Process.Detail),
			Expected: "to run until it is stopped",
			At:       m.now,
			Records:  []int64{m.seq},
		}
	})
}
