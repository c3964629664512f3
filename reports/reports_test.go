package reports

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

var update = flag.Bool("update", false, "write the golden files anew")

// result returns a check's result without evidence.
func result(id string, verdict check.Verdict, tested int, reason string) check.Result {
	return check.Result{Check: id, Verdict: verdict, Reason: reason, Exercised: tested}
}

// run returns a run of the given scenario with the given verdict.
func run(scenario string, verdict check.Verdict, reason string, results ...check.Result) Run {
	return Run{
		Scenario:    scenario,
		Description: "Scales " + scenario + " <and> checks the result.",
		Subject:     "ours",
		Provider:    "embedded",
		Seed:        42,
		Directory:   "out/20260102T030405-" + scenario + "-ours-seed42",
		Duration:    6543 * time.Millisecond,
		Versions:    map[string]string{"kube-apiserver": "v1.36.3", "etcd": "v3.6.8", "gauntlet": "abc1234"},
		Results:     results,
		Verdict:     verdict,
		Reason:      reason,
		Reproduce:   "gauntlet run " + scenario + " --subject=ours --seed=42",
	}
}

func passed(scenario string) Run {
	return run(scenario, check.Pass, "every check passed",
		result("burst-limit", check.Pass, 1200, "never more than 500 creates outstanding"),
		result("expectations", check.Pass, 31, "no batch before the one before it was seen"),
		result("ownership", check.NotExercised, 0, "there was no other controller's pod"),
		result("converged", check.Pass, 3, "converged 0.4 s after the faults were healed"),
	)
}

// notKept returns a passed run of a campaign, which has deleted the run's directory.
func notKept(scenario, subject string) Run {
	r := run(scenario, check.Pass, "every check passed")
	r.Subject, r.Directory, r.Reproduce, r.Versions = subject, "", "", nil
	return r
}

// knownUpstreamRun returns a run of the upstream controllers that shows a known upstream
// issue.
func knownUpstreamRun() Run {
	r := run("stuck-scaling", check.KnownUpstream, "rollout-complete: as upstream is known to",
		check.Result{
			Check: "rollout-complete", Verdict: check.KnownUpstream, Reason: "spec.replicas is 3 and the Deployment has 5, 60s after all faults were healed; known upstream issue stuck-scaling",
			Exercised: 1, Violations: 1,
			Evidence: []check.Evidence{{Summary: "spec.replicas of the ReplicaSet is 3; the Deployment has 5", Expected: "5 within 60s after all faults were healed", At: time.Minute, Records: []int64{900}, KnownIssue: "stuck-scaling"}},
		},
		result("burst-limit", check.Pass, 3, "never more than 3 creates outstanding"),
	)
	return on("upstream", r)
}

// on returns a copy of the run with other controllers under test (another subject).
func on(subject string, r Run) Run {
	for _, text := range []*string{&r.Directory, &r.Reproduce} {
		*text = strings.ReplaceAll(*text, r.Subject, subject)
	}
	r.Subject = subject
	return r
}

func failed(scenario string) Run {
	broken := check.Result{
		Check:      "expectations",
		Verdict:    check.Fail,
		Reason:     "5 creates for pods that the cache did not contain yet",
		Exercised:  12,
		Violations: 5,
		Evidence: []check.Evidence{
			{
				Summary:  "ReplicaSet gauntlet/web: create 14 of a batch of 10, 10 of them not yet seen; a summary that is longer than a line of the terminal continues in the next line",
				Expected: "no create before 10 pods are seen",
				Object:   &history.Ref{Resource: "replicasets.apps", Namespace: "gauntlet", Name: "web", UID: "u-1", Version: 77},
				At:       3214567891 * time.Nanosecond,
				Records:  []int64{1201, 1207},
			},
			{Summary: "ReplicaSet gauntlet/a|b: `code`, *stars* & <b>tags</b>", At: 4 * time.Second, Records: []int64{1300}},
		},
	}
	r := run(scenario, check.Fail, "1 of 4 checks failed",
		result("burst-limit", check.Pass, 40, "never more than 40 creates outstanding"),
		broken,
		result("ownership", check.NotExercised, 0, "there was no other controller's pod"),
		result("no-writes-when-settled", check.Unknown, 0, "the history ends before the subject settled"),
	)
	r.Subject = "exec:bin/mutant"
	return r
}

// withoutContract returns a run in which only one of the four controllers is under test. Most
// contract checks do not apply to this run.
func withoutContract() Run {
	const missing = check.InapplicablePrefix
	r := run("services", check.Pass, "3 checks held, 3 not exercised",
		result("process-alive", check.Pass, 4, "no process died"),
		result("endpoints-exact", check.Pass, 7, "every Endpoints matches its Service"),
		result("burst-limit", check.NotExercised, 0, missing+"burst-limit"),
		result("expectations", check.NotExercised, 0, missing+"expectations"),
		result("ownership", check.NotExercised, 0, "there was no other controller's pod"),
		result("scale-down-order", check.NotExercised, 0, missing+"ranks-victims"),
		result("no-writes-when-settled", check.Pass, 1, "no writes for 5 s"),
	)
	r.Controllers = []string{"endpoints-controller"}
	return r
}

// ofOperator returns the run withoutContract with a controller of an operator, which has no contract.
func ofOperator() Run {
	r := withoutContract()
	r.Results = slices.DeleteFunc(r.Results, func(result check.Result) bool { return result.Check == "endpoints-exact" })
	r.Controllers = []string{"widget-controller"}
	return r
}

// samples has the runs that the tests render and compare with golden files.
var samples = map[string][]Run{
	"one-passed": {passed("burst")},
	"one-failed": {failed("watch-delay-pods")},
	"known":      {knownUpstreamRun()},
	"contract":   {withoutContract()},
	"operator":   {ofOperator()},
	"campaign":   {notKept("steady-1", "ours"), notKept("steady-1", "upstream"), notKept("steady-2", "ours")},
	"aborted":    {run("burst", check.Unknown, "starting the control plane: etcd died: address already in use")},
	"many": {
		passed("burst"),
		failed("watch-delay-pods"),
		run("api-errors", check.Unknown, "no injected fault had an effect (1 injected)", result("burst-limit", check.Pass, 3, "never more than 3 creates outstanding")),
		passed("watch-delay-owners"),
		run("pod-churn", check.Unknown, "interrupted"),
		passed("everything"),
		passed("a-scenario-of-another-team-with-quite-a-long-name"),
		passed("one-more"),
	},
}

var renderers = map[string]func(io.Writer, []Run) error{
	"terminal.txt":  func(w io.Writer, runs []Run) error { return Terminal(w, runs, 0) },
	"verdicts.json": JSON,
	"junit.xml":     JUnit,
	"summary.md":    func(w io.Writer, runs []Run) error { return Markdown(w, runs, "out") },
	"github.txt":    Annotations,
}

func TestGolden(t *testing.T) {
	for sample, runs := range samples {
		for file, render := range renderers {
			t.Run(sample+"/"+file, func(t *testing.T) {
				var got bytes.Buffer
				if err := render(&got, runs); err != nil {
					t.Fatal(err)
				}
				golden(t, filepath.Join("testdata", sample, file), got.String())
			})
		}
	}
}

// golden checks that got equals the content of the golden file at path. With -update, it writes
// got to this file instead.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; make golden writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); make golden writes it anew:\n%s", path, diff)
	}
}

// TestTerminalFits checks that no line is wider than the terminal, except paths and commands.
// Users copy paths and commands, so these are not wrapped.
func TestTerminalFits(t *testing.T) {
	for sample, runs := range samples {
		for columns, limit := range map[int]int{0: 100, 40: 80, 80: 80, 89: 89, 90: 90, 200: 100} {
			var got bytes.Buffer
			if err := Terminal(&got, runs, columns); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(got.String()) {
				word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
				if width := text.StringWidthWithoutEscSequences(strings.TrimRight(line, "\n")); width > limit && word != "directory" && word != "reproduce" {
					t.Errorf("%s: a line is %d characters wide, want at most %d:\n%s", sample, width, limit, line)
				}
			}
		}
	}
}

func TestTerminalColor(t *testing.T) {
	text.EnableColors() // the test does not depend on the environment, such as NO_COLOR
	render := func(width int) string {
		var b bytes.Buffer
		if err := Terminal(&b, samples["many"], width); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	plain, colored := render(0), render(maxWidth)
	if strings.Contains(plain, "\x1b") {
		t.Error("escape sequences where there is no terminal")
	}
	if !strings.Contains(colored, "\x1b[31;1mFAIL\x1b[0m") {
		t.Error("FAIL is not red on a terminal")
	}
	if diff := cmp.Diff(plain, text.StripEscape(colored)); diff != "" {
		t.Errorf("colors change more than the color (-plain +colored):\n%s", diff)
	}
}

// TestJSONIsReadable checks that decoding the JSON gives the results from which it was written.
func TestJSONIsReadable(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, samples["many"]); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Schema  int
		Verdict check.Verdict
		Runs    []struct {
			Scenario string
			Seed     uint64
			Results  []check.Result
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != 2 || got.Verdict != check.Fail || len(got.Runs) != 8 {
		t.Errorf("schema %d, verdict %s, %d runs; want 2, fail, 8", got.Schema, got.Verdict, len(got.Runs))
	}
	if diff := cmp.Diff(samples["many"][1].Results, got.Runs[1].Results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

// TestUnusedPermissionsText checks that the terminal report counts permissions that a run never
// used, and says nothing about other runs.
func TestUnusedPermissionsText(t *testing.T) {
	run := samples["one-passed"][0]
	for _, test := range []struct {
		unused []string
		want   bool
	}{{nil, false}, {[]string{"get pods", "list pods"}, true}} {
		run.UnusedPermissions = test.unused
		var b strings.Builder
		layout{}.locations(&b, []Run{run})
		if got := strings.Contains(b.String(), "permissions that the run never used: 2; verdicts.json lists them"); got != test.want {
			t.Errorf("unused permissions %v: found\n%s", test.unused, b.String())
		}
	}
}

// TestReadDirectory checks that ReadDirectory returns the runs that were written. A run directory
// that was moved must have its new path.
func TestReadDirectory(t *testing.T) {
	dir := t.TempDir()
	many := slices.Clone(samples["many"])
	many[0].Size = 7
	many[0].UnusedPermissions = []string{"list pods"}
	many[0].Started = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := WriteFiles(dir, many...); err != nil {
		t.Fatal(err)
	}
	got, err := ReadDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(many, got); diff != "" {
		t.Errorf("runs that are read again (-want +got):\n%s", diff)
	}
	r := laggingRun(t, 3)
	if err := WriteFiles(r.Directory, r); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(r.Directory, moved); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadDirectory(moved); err != nil || len(got) != 1 || got[0].Directory != moved {
		t.Errorf("a run that was moved: %+v, %v", got, err)
	}
	for _, seed := range []uint64{r.Seed, r.Seed + 1} {
		environment := fmt.Sprintf(`{"scenario": %q, "subject": %q, "seed": %d}`, r.Scenario, r.Subject, seed)
		if err := os.WriteFile(filepath.Join(moved, "environment.json"), []byte(environment), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadDirectory(moved); (err == nil) != (seed == r.Seed) || err != nil && !strings.Contains(err.Error(), "which environment.json names") {
			t.Errorf("seed %d: error %v; want one for another run than that of environment.json", seed, err)
		}
	}
}

// TestReadDirectorySchema1 checks that ReadDirectory understands the field names and the verdict
// of schema 1.
func TestReadDirectorySchema1(t *testing.T) {
	dir := t.TempDir()
	content := `{"schema": 1, "runs": [{"scenario": "s", "subject": "ours", "provider": "embedded", "verdict": "idle", "again": "gauntlet run s", "results": [
		{"check": "status", "verdict": "idle", "tested": 3, "evidence": [{"summary": "x", "at": 1, "weakness": 1}]}]}]}`
	if err := os.WriteFile(filepath.Join(dir, verdictsName), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := ReadDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := got[0]
	if r.Verdict != check.NotExercised || r.Reproduce != "gauntlet run s" || r.Results[0].Verdict != check.NotExercised || r.Results[0].Exercised != 3 {
		t.Errorf("read %+v", r)
	}
	var b bytes.Buffer
	if err := JSON(&b, got); err != nil || !strings.Contains(b.String(), `"knownIssue": "stuck-scaling"`) {
		t.Errorf("known issue number 1 is not written as stuck-scaling: %v\n%s", err, b.String())
	}
}

func TestReadDirectoryRefuses(t *testing.T) {
	for _, test := range []struct{ name, content, want string }{
		{"nothing", "", "found no verdicts.json; expected a run directory"},
		{"no JSON", "}", "expected the verdicts that gauntlet writes to this file, as JSON: "},
		{"another type", `{"schema": "two"}`, "as JSON: found string at /schema; expected a whole number; to write"},
		{"no runs", `{"schema": 2, "runs": null}`, "found no runs; expected at least one"},
		{"another schema", `{"schema": 99}`, "expected schema 1 to 2, found 99"},
		{"no scenario", `{"schema": 2, "runs": [{"verdict": "pass"}]}`, `runs[0].scenario: found no name; expected the name of the scenario`},
		{"neither a scenario nor a subject", `{"schema": 2, "runs": [{"verdict": "unknown"}]}`, `runs[0].scenario: found no name, and no subject either`},
		{"no provider", `{"schema": 2, "runs": [{"scenario": "x", "subject": "ours", "verdict": "pass"}]}`, `runs[0].provider: found no name; expected the name of the provider`},
		{"an unknown verdict", `{"schema": 2, "runs": [{"scenario": "x", "subject": "ours", "provider": "kind", "verdict": "pass"}, {"verdict": "FAIL"}]}`,
			`runs[1].verdict: found "FAIL"; expected fail, unknown, known-upstream, pass or not-exercised`},
		{"no verdict", `{"schema": 2, "runs": [{}]}`, `runs[0].verdict: found ""`},
		{"an unknown verdict of a check", `{"schema": 2, "runs": [{"scenario": "x", "subject": "ours", "provider": "kind", "verdict": "pass", "results": [{"check": "status", "verdict": "good"}]}]}`,
			`runs[0].results[0].verdict: found "good"`},
		{"a pass with a failed check", `{"schema": 2, "runs": [{"scenario": "x", "subject": "ours", "provider": "kind", "verdict": "pass", "results": [{"check": "ownership", "verdict": "fail"}]}]}`,
			"runs[0].verdict: found pass; expected fail, the worst verdict of its results (ownership)"},
		{"a negative duration", `{"schema": 2, "runs": [{"verdict": "pass", "durationSeconds": -1e300}]}`, "runs[0].durationSeconds: found -1e+300; expected 0 to "},
		{"a negative count", `{"schema": 2, "runs": [{"scenario": "x", "subject": "ours", "provider": "kind", "verdict": "pass", "results": [{"check": "status", "verdict": "pass", "exercised": -5}]}]}`,
			"runs[0].results[0].exercised: found -5; expected 0 or more"},
		{"a negative count of schema 1", `{"schema": 1, "runs": [{"scenario": "x", "subject": "ours", "provider": "kind", "verdict": "pass", "results": [{"check": "status", "verdict": "pass", "tested": -5}]}]}`,
			"runs[0].results[0].tested: found -5; expected 0 or more"},
		{"a negative count of a fault", `{"schema": 2, "runs": [{"scenario": "x", "subject": "ours", "provider": "kind", "verdict": "pass", "faults": [{"name": "crash", "fired": -1}]}]}`,
			"runs[0].faults[0].fired: found -1; expected 0 or more"},
		{"a check without a name", `{"schema": 2, "runs": [{"scenario": "x", "subject": "ours", "provider": "kind", "verdict": "pass", "results": [{"verdict": "pass"}]}]}`,
			"runs[0].results[0].check: found no name; expected the ID of a check"},
		{"a check twice", `{"schema": 2, "runs": [{"scenario": "x", "subject": "ours", "provider": "kind", "verdict": "pass", "results": [{"check": "status", "verdict": "pass"}, {"check": "status", "verdict": "pass"}]}]}`,
			"runs[0].results[1].check: found status, as in results[0]; expected each check once"},
		{"a pass with an unknown check", `{"schema": 2, "runs": [{"scenario": "x", "subject": "ours", "provider": "kind", "verdict": "pass", "results": [{"check": "status", "verdict": "unknown"}]}]}`,
			"runs[0].verdict: found pass; expected unknown, the worst verdict of its results (status)"},
		{"a run twice", `{"schema": 2, "verdict": "pass", "runs": [{"scenario": "x", "subject": "ours", "provider": "kind", "verdict": "pass", "directory": "d"}, {"scenario": "x", "subject": "ours", "provider": "kind", "verdict": "pass", "directory": "d"}]}`,
			`runs[1].directory: found "d", as in runs[0]; expected each run once`},
		{"no verdict of the file", `{"schema": 2, "runs": [{"scenario": "x", "subject": "ours", "provider": "kind", "verdict": "pass"}]}`, `json: verdict: found ""; expected fail, unknown`},
		{"a better verdict of the file", `{"schema": 2, "verdict": "pass", "runs": [{"scenario": "x", "subject": "ours", "provider": "kind", "verdict": "unknown"}]}`, "verdict: found pass; expected unknown, the worst verdict of the runs"},
		{"a failure without a failed run", `{"schema": 2, "verdict": "fail", "runs": [{"scenario": "x", "subject": "ours", "provider": "kind", "verdict": "pass"}]}`, "verdict: found fail; expected pass, the worst verdict of the runs"},
	} {
		dir := t.TempDir()
		if test.content != "" {
			if err := os.WriteFile(filepath.Join(dir, verdictsName), []byte(test.content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ReadDirectory(dir); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v; want %q", test.name, err, test.want)
		}
	}
}

// TestJUnitCounts checks that each JUnit test case is counted once, by its outcome.
func TestJUnitCounts(t *testing.T) {
	for sample, want := range map[string]junitSuites{
		"one-passed": {Tests: 4, Skipped: 1},
		"one-failed": {Tests: 4, Failures: 1, Errors: 1, Skipped: 1},
		"aborted":    {Tests: 1, Errors: 1},
	} {
		var b bytes.Buffer
		if err := JUnit(&b, samples[sample]); err != nil {
			t.Fatal(err)
		}
		var got junitSuites
		if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got.Tests != want.Tests || got.Failures != want.Failures || got.Errors != want.Errors || got.Skipped != want.Skipped {
			t.Errorf("%s: %d tests, %d failures, %d errors, %d skipped; want %d, %d, %d, %d", sample,
				got.Tests, got.Failures, got.Errors, got.Skipped, want.Tests, want.Failures, want.Errors, want.Skipped)
		}
	}
}

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"a|b":           `a\|b`,
		"*a* _b_ `c`":   "\\*a\\* \\_b\\_ \\`c\\`",
		"<b>&":          "&lt;b&gt;&amp;",
		"two\nlines":    "two lines",
		"# a":           `\# a`,
		"a#1":           "a#1",
		`back\slash[1]`: `back\\slash\[1\]`,
	} {
		if got := escape(in); got != want {
			t.Errorf("escape(%q) = %q; want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"plain":  "`plain`",
		"a`b":    "``a`b``",
		"`edge`": "`` `edge` ``",
	} {
		if got := code(in); got != want {
			t.Errorf("code(%q) = %q; want %q", in, got, want)
		}
	}
}

func TestSum(t *testing.T) {
	for _, test := range []struct {
		name        string
		runs        []Run
		wantVerdict check.Verdict
		wantReason  string
	}{
		{"nothing", nil, check.Unknown, "nothing was run"},
		{"one", samples["one-passed"], check.Pass, "1 run: 1 pass"},
		{"many", samples["many"], check.Fail, "8 runs: 1 fail, 2 unknown, 5 pass"},
		{"aborted", samples["aborted"], check.Unknown, "1 run: 1 unknown"},
	} {
		verdict, reason := summarize(test.runs)
		if verdict != test.wantVerdict || reason != test.wantReason {
			t.Errorf("%s: %s, %q; want %s, %q", test.name, verdict, reason, test.wantVerdict, test.wantReason)
		}
	}
}

// TestWriteInterrupted checks that all reports of an interrupted series say so.
func TestWriteInterrupted(t *testing.T) {
	const interrupted = "interrupted after 1 of 40 runs"
	for sample, want := range map[string]check.Verdict{"one-passed": check.Unknown, "many": check.Fail} {
		dir := t.TempDir()
		if err := WriteInterrupted(dir, interrupted, samples[sample]...); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"verdicts.json", "summary.md", PageName} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || !strings.Contains(string(text), interrupted) {
				t.Errorf("%s of %s: error %v; want the text %q", name, sample, err, interrupted)
			}
		}
		var report jsonReport
		if text, err := os.ReadFile(filepath.Join(dir, "verdicts.json")); err != nil || json.Unmarshal(text, &report) != nil || report.Verdict != want {
			t.Errorf("%s: verdict %s, error %v; want %s", sample, report.Verdict, err, want)
		}
	}
}

// TestWriteErrors checks that every report function returns the error of a failed write.
func TestWriteErrors(t *testing.T) {
	full := errors.New("disk full")
	for file, render := range renderers {
		if err := render(failingWriter{full}, samples["many"]); !errors.Is(err, full) {
			t.Errorf("%s: error %v; want %v", file, err, full)
		}
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
