package e2eframework

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// report logs the verdict, and calls t.Error for each of the problems. If the test has failed for
// any reason, report also logs what the faults did.
func report(t *testing.T, result *reports.Run, problems []string) {
	t.Logf("verdict of the checks: %s: %s; report: %s/report.html", result.Verdict, result.Reason, result.Directory)
	for _, r := range result.Results {
		if r.Verdict == check.Unknown && r.Reason != result.Reason {
			t.Logf("check %s: unknown: %s", r.Check, r.Reason)
		}
	}
	for _, problem := range problems {
		t.Error(problem)
	}
	if !t.Failed() {
		return
	}
	lines, err := firings(result.Directory)
	if err != nil {
		t.Errorf("reading the actions of the faults from the history: %v", err)
	}
	for _, line := range lines {
		t.Log(line)
	}
}

// violations returns one text per failed check, with the check's evidence. The test fails with
// these texts.
func violations(result *reports.Run) (all []string) {
	for _, r := range result.Results {
		if r.Verdict != check.Fail {
			continue
		}
		lines := []string{fmt.Sprintf("check %s: %s", r.Check, r.Reason)}
		for _, evidence := range r.Evidence {
			lines = append(lines, reports.EvidenceLines(evidence)...)
		}
		all = append(all, strings.Join(lines, "\n    "))
	}
	return all
}

// withoutEffect returns one error message per problem with faults that had no effect. A fault with
// mustFire must have an effect. At least one of the injected faults must have an effect; otherwise,
// the feature has tested nothing under faults.
func withoutEffect(result *reports.Run) (all []string) {
	injected, fired := 0, 0
	for _, fault := range result.Faults {
		injected += fault.Injected
		fired += fault.Fired
		if fault.Missed() {
			all = append(all, fmt.Sprintf("fault %s has mustFire, but had no effect", fault.Name))
		}
	}
	if injected > 0 && fired == 0 && len(all) == 0 {
		all = append(all, "the feature was not tested under faults: "+result.Reason)
	}
	return all
}

// firingsMax is the maximum number of fault actions that report logs for a failed test.
const firingsMax = 10

// firings returns one line per action of a fault in a run, for the log of a failed test. A line
// contains the fault, the time since the start of the recording, the action and the object.
//
// If a fault withheld the response to a create, the line contains the object name that the API
// server generated.
func firings(runDirectory string) ([]string, error) {
	var fired []history.Record
	byRequest := map[uint64]int{} // index in fired, by request ID
	total := 0
	for record, err := range history.ReadFile(filepath.Join(runDirectory, "history.jsonl")) {
		if err != nil {
			return nil, err
		}
		switch fault, response := record.Fault, record.Response; {
		case fault != nil && fault.Event == history.FaultFired:
			total++
			if len(fired) < firingsMax {
				byRequest[fault.Request] = len(fired)
				fired = append(fired, *record)
			}
		case response != nil && response.Object != nil:
			if i, ok := byRequest[response.ID]; ok {
				fired[i].Fault.Object = &response.Object.Ref
			}
		}
	}
	var lines []string
	for _, r := range fired {
		line := fmt.Sprintf("fault %s at %.3f s: %s", r.Fault.Name, r.At.Seconds(), r.Fault.Detail)
		if r.Fault.Object != nil {
			line += ": " + r.Fault.Object.String()
		}
		lines = append(lines, line)
	}
	if total > len(fired) {
		lines = append(lines, fmt.Sprintf("and %d more actions of faults", total-len(fired)))
	}
	return lines, nil
}
