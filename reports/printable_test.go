package reports

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"ReplicaSet web\n\tü…":           "ReplicaSet web\n\tü…",
		"\x1b[31m \x1b]0;title\a \x00\r": `\x1b[31m \x1b]0;title\a \x00\r`,
		"\u009b31m \xff�":                `\u009b31m \xff�`,
	} {
		if got := Printable(text); got != want {
			t.Errorf("Printable(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestControlCharacters checks that no text of a run writes control characters to a terminal or to
// Markdown.
func TestControlCharacters(t *testing.T) {
	const bad = "x\x1b]0;title\a\x00"
	run := Run{
		Scenario: bad, Subject: bad, Directory: bad, Reason: bad, Reproduce: bad, Description: bad, Verdict: check.Fail,
		Results: []check.Result{{Check: bad, Verdict: check.Fail, Reason: bad, Evidence: []check.Evidence{{Summary: bad, Expected: bad}}}},
		Faults:  []check.FaultCount{{Name: bad, Fired: 1, Summary: bad}},
	}
	for name, runs := range map[string][]Run{"one run": {run}, "two runs": {run, run}} {
		var b bytes.Buffer
		for _, err := range []error{Terminal(&b, runs, 0), Markdown(&b, runs, "")} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if i := strings.IndexFunc(b.String(), isControl); i >= 0 {
			t.Errorf("%s: found control characters at %q", name, b.String()[max(0, i-50):i+20])
		}
	}
}
