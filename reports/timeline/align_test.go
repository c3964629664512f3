package timeline

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestAlign checks that Align returns the common landmarks of both runs. It must omit
// landmarks that only one run has, or that would reverse the order.
func TestAlign(t *testing.T) {
	run := func(end int, marks []Mark, phases ...Phase) *Timeline {
		return &Timeline{End: time.Duration(end), Marks: marks, Phases: phases}
	}
	step := func(what string, at int) Mark { return Mark{Kind: Step, Action: what, From: time.Duration(at)} }
	a := run(100, []Mark{step("step 0", 10), step("step 1", 20), step("step 2", 30)},
		Phase{history.PhaseChaos, 5}, Phase{history.PhaseSettle, 40}, Phase{history.PhaseQuiet, 50}, Phase{history.PhaseQuiet, 60})
	b := run(300, []Mark{step("step 0", 50), {Kind: Commit, Action: "step 1", From: 51}, step("step 2", 70)},
		Phase{history.PhaseChaos, 15}, Phase{history.PhaseSettle, 60}, Phase{history.PhaseQuiet, 90})
	ofA, ofB := Align(a, b)
	if diff := cmp.Diff([]time.Duration{0, 5, 10, 30, 50, 100}, ofA); diff != "" {
		t.Errorf("of a (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]time.Duration{0, 15, 50, 70, 90, 300}, ofB); diff != "" {
		t.Errorf("of b (-want +got):\n%s", diff)
	}
}
