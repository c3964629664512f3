package reports

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// schema is the version of the format that JSON writes.
const schema = 1

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
	Directory       string            `json:"directory"`
	Size            int               `json:"size"`
	Started         time.Time         `json:"started,omitzero"`
	DurationSeconds float64           `json:"durationSeconds"`
	Versions        map[string]string `json:"versions"`
	Verdict         check.Verdict     `json:"verdict"`
	Reason          string            `json:"reason"`
	Again           string            `json:"again"`
	Results         []jsonResult      `json:"results"`
}

type jsonResult struct {
	check.Result
	Guarantee string `json:"guarantee"`
	Clause    string `json:"clause"`
}

// JSON writes the runs for programs, in the format of the package comment.
func JSON(w io.Writer, runs []Run) error {
	verdict, reason := summarize(runs)
	report := jsonReport{Schema: schema, Verdict: verdict, Reason: reason, Runs: []jsonRun{}}
	for _, run := range runs {
		report.Runs = append(report.Runs, run.json())
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(report); err != nil {
		return fmt.Errorf("writing the verdicts as JSON: %w", err)
	}
	return nil
}

func (r *Run) json() jsonRun {
	run := jsonRun{
		Scenario:        r.Scenario,
		Description:     r.Description,
		Subject:         r.Subject,
		Provider:        r.Provider,
		Seed:            r.Seed,
		Directory:       r.Directory,
		Size:            r.Size,
		Started:         r.Started,
		DurationSeconds: r.Duration.Seconds(),
		Versions:        r.Versions,
		Verdict:         r.Verdict,
		Reason:          r.Reason,
		Again:           r.Reproduce,
		Results:         []jsonResult{},
	}
	if run.Versions == nil {
		run.Versions = map[string]string{}
	}
	for _, result := range r.Results {
		known, _ := check.Find(result.Check)
		run.Results = append(run.Results, jsonResult{Result: result, Guarantee: known.Guarantee, Clause: known.Contract})
	}
	return run
}
