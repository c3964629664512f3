package check

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// needlessWritesCheck is the row of needless-writes in All.
var needlessWritesCheck = Check{
	ID:               "needless-writes",
	Guarantee:        "A controller does not write an object again and again as it is already.",
	Contract:         "ReplicaSet 14, Endpoints 8",
	Property:         Safety,
	AllowedBehaviors: []string{"lost-response", "truncated-endpoints", "trigger-time-annotation"},
	New:              newNeedlessWritesChecker,
}

// needlessMax is how many needless writes of one object are let pass in a life of
// a process: a status is sent again after a conflict without a look whether that
// is needed, and between a look and a write somebody else may write the same.
const needlessMax = 5

// needlessWritesChecker: a controller does not write what is there already. Of Endpoints,
// that is told by what it was shown of the version that it writes from: a new
// trigger time alone is no change. Of all else, by the answer, which is the very
// version that was written from, or that was there when what names no version was sent:
// an API server makes no new one of what changes nothing.
//
// A write after one of the same object that failed is not counted, nor is one of
// a Deployment after a call for its ReplicaSets that failed: the failure is
// written into its status each time.
type needlessWritesChecker struct {
	findings
	byProcess map[*process]map[objectName]*needlessWrites
}

// needlessWrites is what is kept of an object that a process writes.
type needlessWrites struct {
	failed  bool // the latest write
	count   int
	records []int64 // of the latest few
}

func newNeedlessWritesChecker(Settings) Checker {
	return &needlessWritesChecker{byProcess: map[*process]map[objectName]*needlessWrites{}}
}

func (checker *needlessWritesChecker) Observe(m *Model, r *history.Record) {
	if r.Process != nil {
		maps.DeleteFunc(checker.byProcess, func(p *process, _ map[objectName]*needlessWrites) bool { return p.ended })
	}
	answered := m.answered
	if answered == nil {
		return
	}
	if d := answered.deployment(); d != nil && !answered.response.OK() {
		checker.of(answered.process, nameOf(d.Ref)).failed = true
	}
	if answered.update == nil {
		return
	}
	checker.exercised++
	kept := checker.of(answered.process, nameOf(answered.update.Ref))
	again := kept.failed
	kept.failed = !answered.response.OK()
	if kept.failed || again || !answered.changesNothing() {
		if !kept.failed && kept.count == 0 { // nothing that counts
			delete(checker.byProcess[answered.process], nameOf(answered.update.Ref))
		}
		return
	}
	kept.count++
	kept.records = append(kept.records, answered.seq)
	kept.records = kept.records[max(0, len(kept.records)-needlessMax):]
	if kept.count <= needlessMax {
		return
	}
	checker.addViolation(func() Evidence {
		return Evidence{
			Summary:  fmt.Sprintf("%s wrote %s %s though nothing in it was to change", answered.process.name, answered.update.Ref, times(kept.count)),
			Expected: "writes of what differs from what is there",
			Object:   &answered.update.Ref,
			At:       m.now,
			Records:  append([]int64{}, kept.records...),
		}
	})
}

func (checker *needlessWritesChecker) of(p *process, name objectName) *needlessWrites {
	if checker.byProcess[p] == nil {
		checker.byProcess[p] = map[objectName]*needlessWrites{}
	}
	if checker.byProcess[p][name] == nil {
		checker.byProcess[p][name] = &needlessWrites{}
	}
	return checker.byProcess[p][name]
}

// deployment is the Deployment that the call was for, nil if it was for none.
func (answered *answeredCall) deployment() *deployment {
	if answered.rollout == nil {
		return nil
	}
	return answered.process.view.deployments[answered.rollout.uid]
}

// changesNothing reports whether an update that succeeded wrote what was there.
func (answered *answeredCall) changesNothing() bool {
	from := cmp.Or(answered.update.Version, answered.update.committedVersion)
	return answered.update.unchanged || answered.response.Object != nil && answered.response.Object.Version == from
}
