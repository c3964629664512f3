package reports

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// TestWhatFired checks how reports describe what the faults of a run did.
func TestWhatFired(t *testing.T) {
	count := func(name string, fired int) check.FaultCount {
		return check.FaultCount{Name: name, Injected: 1, Fired: fired}
	}
	for _, test := range []struct {
		name   string
		faults []check.FaultCount
		want   string
	}{
		{"none", nil, ""},
		{"once", []check.FaultCount{count("restart", 1)}, "restart once"},
		{"summary", []check.FaultCount{{Name: "api-error", Fired: 2, Summary: "refused 2 of 11 matching requests"}, {Name: "restart", Summary: "stopped 0 replicas"}},
			"api-error refused 2 of 11 matching requests; never fired: restart"},
		{"several", []check.FaultCount{count("api-error", 2), count("restart", 1)}, "api-error 2 times, restart once"},
		{"two of one type", []check.FaultCount{count("api-error", 2), count("restart", 1), count("api-error", 3)}, "api-error 5 times, restart once"},
		{"one never fired", []check.FaultCount{count("api-error", 2), count("watch-delay", 0)}, "api-error 2 times; never fired: watch-delay"},
		{"none fired", []check.FaultCount{count("watch-delay", 0), {Name: "restart"}}, "never fired: watch-delay, restart"},
		{"one of a type never fired", []check.FaultCount{count("api-error", 2), count("api-error", 0)}, "api-error 2 times; never fired: api-error (fault 1)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := Run{Scenario: "s", Subject: "ours", Provider: "kind", Directory: t.TempDir(), Verdict: check.Pass, Faults: test.faults}
			if got := run.faultsText(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			var terminal, markdown, verdicts bytes.Buffer
			if err := Terminal(&terminal, []Run{run}, 0); err != nil {
				t.Fatal(err)
			}
			if err := Markdown(&markdown, []Run{run}, run.Directory); err != nil {
				t.Fatal(err)
			}
			if err := JSON(&verdicts, []Run{run}); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"terminal": terminal.String(), "summary": markdown.String()} {
				if !strings.Contains(text, test.want) || strings.Contains(strings.ToLower(text), "faults") != (test.want != "") {
					t.Errorf("%s: want %q in\n%s", name, test.want, text)
				}
			}
			if err := os.WriteFile(filepath.Join(run.Directory, "verdicts.json"), verdicts.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			read, err := ReadDirectory(run.Directory)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.faults, read[0].Faults); diff != "" {
				t.Errorf("read back (-want +got):\n%s", diff)
			}
		})
	}
}
