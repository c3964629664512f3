package history

import "testing"

// TestEarlyEnd requires that Reason names a process that died only if the run did not go on
// after the death.
func TestEarlyEnd(t *testing.T) {
	died := Record{Process: &Process{Name: "subject-0", Event: ProcessDied, Detail: "subject-0 exited with status 1; last lines of subject-0.log"}}
	silent := Record{Process: &Process{Name: "subject-1", Event: ProcessDied}}
	stopped := Record{Process: &Process{Name: "subject-1", Event: ProcessStopped}}
	for _, test := range []struct {
		name    string
		records []Record
		want    string
	}{
		{"nothing died", []Record{stopped}, "the history ends before the last phase (end)"},
		{"the death ended the run", []Record{died, stopped}, "the run ended early: subject-0 exited with status 1"},
		{"the first of two deaths ended the run", []Record{died, silent}, "the run ended early: subject-0 exited with status 1"},
		{"without a detail", []Record{silent}, "the run ended early: subject-1 died"},
		{"the teardown heals a fault", []Record{died, {Fault: &Fault{Event: FaultHealed}}}, "the run ended early: subject-0 exited with status 1"},
		{"the process was started again", []Record{died, {Process: &Process{Name: "subject-0", Event: ProcessStarted}}}, "the history ends before the last phase (end)"},
		{"a step began", []Record{died, {Step: &Step{Event: StepBegun}}}, "the history ends before the last phase (end)"},
		{"a fault began", []Record{died, {Fault: &Fault{Event: FaultInjected}}}, "the history ends before the last phase (end)"},
		{"a phase began", []Record{died, {Phase: &Phase{Name: PhaseSettle}}}, "the history ends before the last phase (end)"},
	} {
		var end EarlyEnd
		for _, r := range test.records {
			end.Observe(&r)
		}
		if got := end.Reason(); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
