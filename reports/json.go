package reports

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// schema is the version of the format of verdicts.json that [JSON] writes. [ReadDirectory] also
// reads version 1.
const schema = 2

type jsonReport struct {
	Schema  int           `json:"schema"`
	Verdict check.Verdict `json:"verdict"`
	Reason  string        `json:"reason"`
	Runs    []jsonRun     `json:"runs"`
}

type jsonRun struct {
	Scenario        string            `json:"scenario"`
	Description     string            `json:"description"`
	Subject         string            `json:"subject"`
	Provider        string            `json:"provider"`
	Seed            uint64            `json:"seed"`
	Controllers     []string          `json:"controllers,omitempty"`
	Directory       string            `json:"directory"`
	Size            int               `json:"size"`
	Started         time.Time         `json:"started,omitzero"`
	DurationSeconds float64           `json:"durationSeconds"`
	StalledSeconds  float64           `json:"stalledSeconds,omitempty"`
	VirtualTime     bool              `json:"virtualTime,omitempty"`
	Versions        map[string]string `json:"versions"`
	Verdict         check.Verdict     `json:"verdict"`
	Reason          string            `json:"reason"`
	FailedChecks    []string          `json:"failedChecks,omitempty"`
	Reproduce       string            `json:"reproduce"`
	// Again is the old name of the JSON field reproduce, from schema 1. JSON writes both fields
	// with the same value until the next release.
	Again             string       `json:"again"`
	Faults            []jsonFault  `json:"faults,omitempty"`
	UnusedPermissions []string     `json:"unusedPermissions,omitempty"`
	Results           []jsonResult `json:"results"`
}

type jsonFault struct {
	Name     string `json:"name"`
	Injected int    `json:"injected"`
	Fired    int    `json:"fired"`
	Summary  string `json:"summary,omitempty"`
	MustFire bool   `json:"mustFire,omitempty"`
}

type jsonResult struct {
	Check     string        `json:"check"`
	Verdict   check.Verdict `json:"verdict"`
	Reason    string        `json:"reason"`
	Exercised int           `json:"exercised"`
	// Tested is the old name of the JSON field exercised, from schema 1. JSON writes both fields
	// with the same value until the next release.
	Tested     int            `json:"tested"`
	Violations int            `json:"violations,omitempty"`
	Evidence   []jsonEvidence `json:"evidence,omitempty"`
	Guarantee  string         `json:"guarantee"`
	Contract   string         `json:"contract"`
	Scope      string         `json:"scope,omitempty"`
	// Clause is the old name of the JSON field contract, from schema 1. JSON writes both fields
	// with the same value until the next release.
	Clause string `json:"clause"`
}

type jsonEvidence struct {
	Summary    string        `json:"summary"`
	Expected   string        `json:"expected,omitempty"`
	Object     *history.Ref  `json:"object,omitempty"`
	At         time.Duration `json:"at"`
	Records    []int64       `json:"records,omitempty"`
	Cached     string        `json:"cached,omitempty"`
	Stalled    time.Duration `json:"stalled,omitempty"`
	KnownIssue string        `json:"knownIssue,omitempty"`
	// Weakness is the number by which schema 1 identifies a known upstream issue. ReadDirectory
	// reads this field; JSON never writes it.
	Weakness int `json:"weakness,omitempty"` // the number of a known upstream issue in schema 1
}

// JSON writes runs in the format of verdicts.json, which the package documentation describes.
func JSON(w io.Writer, runs []Run) error { return series{runs: runs}.json(w) }

// json writes the runs of the series in the format of verdicts.json.
func (s series) json(w io.Writer) error {
	verdict, reason := s.summarize()
	report := jsonReport{Schema: schema, Verdict: verdict, Reason: reason, Runs: []jsonRun{}}
	for _, run := range s.runs {
		report.Runs = append(report.Runs, run.json())
	}
	if err := writeJSON(w, report); err != nil {
		return fmt.Errorf("writing the verdicts as JSON: %w", err)
	}
	return nil
}

// RunJSON writes one run as a line of JSON, in the format of an item of "runs" in verdicts.json.
func RunJSON(w io.Writer, run *Run) error {
	if err := writeJSONLine(w, run.json()); err != nil {
		return fmt.Errorf("writing a run as JSON: %w", err)
	}
	return nil
}

// json converts the run to the format of an item of "runs" in verdicts.json.
func (r *Run) json() jsonRun {
	run := jsonRun{
		Scenario:          r.Scenario,
		Description:       r.Description,
		Subject:           r.Subject,
		Provider:          r.Provider,
		Seed:              r.Seed,
		Controllers:       r.Controllers,
		Directory:         r.Directory,
		Size:              r.Size,
		Started:           r.Started,
		DurationSeconds:   r.Duration.Seconds(),
		StalledSeconds:    r.Stalled.Seconds(),
		VirtualTime:       r.VirtualTime,
		Versions:          r.Versions,
		Verdict:           r.Verdict,
		Reason:            r.Reason,
		Reproduce:         r.Reproduce,
		UnusedPermissions: r.UnusedPermissions,
		Again:             r.Reproduce,
		Results:           []jsonResult{},
	}
	if run.Versions == nil {
		run.Versions = map[string]string{}
	}
	for _, fault := range r.Faults {
		run.Faults = append(run.Faults, jsonFault(fault))
	}
	for _, result := range r.Results {
		run.Results = append(run.Results, jsonResultOf(result))
		if result.Verdict == check.Fail {
			run.FailedChecks = append(run.FailedChecks, result.Check)
		}
	}
	return run
}

// jsonResultOf converts a check's result to the format of an item of "results" in verdicts.json.
func jsonResultOf(r check.Result) jsonResult {
	definition, _ := check.Find(r.Check)
	result := jsonResult{
		Check: r.Check, Verdict: r.Verdict, Reason: r.Reason, Exercised: r.Exercised, Tested: r.Exercised, Violations: r.Violations,
		Guarantee: definition.Guarantee, Contract: definition.Contract, Scope: scopeOf(r.Check), Clause: definition.Contract,
	}
	for _, e := range r.Evidence {
		result.Evidence = append(result.Evidence, jsonEvidence{
			Summary: e.Summary, Expected: e.Expected, Object: e.Object, At: e.At, Records: e.Records, Cached: e.Cached, Stalled: e.Stalled, KnownIssue: e.KnownIssue,
		})
	}
	return result
}

// result converts a result that was read from verdicts.json, schema 1 or 2, to a check.Result.
func (r *jsonResult) result() check.Result {
	result := check.Result{
		Check: r.Check, Verdict: currentVerdict(r.Verdict), Reason: r.Reason, Exercised: max(r.Exercised, r.Tested), Violations: r.Violations,
	}
	for _, e := range r.Evidence {
		result.Evidence = append(result.Evidence, check.Evidence{
			Summary: e.Summary, Expected: e.Expected, Object: e.Object, At: e.At, Records: e.Records, Cached: e.Cached, Stalled: e.Stalled,
			KnownIssue: cmp.Or(e.KnownIssue, schema1KnownIssues[e.Weakness]),
		})
	}
	return result
}

// schema1KnownIssues maps the numbers that schema 1 uses for known upstream issues to today's
// slugs, such as stuck-scaling.
var schema1KnownIssues = map[int]string{
	1: "stuck-scaling", 3: "swallowed-error", 4: "dropped-key", 5: "long-back-off", 7: "unnoticed-end",
	8: "early-leftovers", 9: "late-pods", 43: "namesake-status", 44: "lost-endpoints", 45: "recreate-scaling",
}

// currentVerdict returns the current name of a verdict. Schema 1 uses the name idle for
// not-exercised.
func currentVerdict(v check.Verdict) check.Verdict {
	if v == "idle" {
		return check.NotExercised
	}
	return v
}
