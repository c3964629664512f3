package mutant

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// Matrix has the results of runs of scenarios on mutants, and on the unmodified controllers.
//
// It need not be complete. If a run is missing, it is unknown whether the scenario catches the
// mutant.
type Matrix struct {
	// Unmodified has the results of the unmodified controllers. The keys are the base of the
	// controllers (ours or upstream) and the name of the scenario.
	Unmodified map[Base]map[string]Baseline `json:"unmodified"`
	// Cells has the results of the mutants. The keys are the ID of the mutant and the name of the
	// scenario. With the same seed, the unmodified controllers pass this scenario.
	Cells map[string]map[string]Cell `json:"mutants"`
}

// Baseline is the result of the unmodified controllers in one scenario.
type Baseline struct {
	Fingerprint string        `json:"of"` // the fingerprint of the scenario
	Verdict     check.Verdict `json:"verdict"`
	// Duration is the time from the first to the last record of the history.
	Duration time.Duration `json:"duration"`
	// Exercised are the IDs of the checks that the run exercised, in alphabetical order.
	Exercised []string `json:"exercised"`
}

// Cell is the result of one mutant in one scenario.
type Cell struct {
	Fingerprint string        `json:"of"` // the fingerprint of the mutant and the scenario
	Verdict     check.Verdict `json:"verdict"`
	Failed      []string      `json:"failed,omitempty"` // the IDs of the failed checks
}

// Finding says whether scenarios catch a mutant.
type Finding string

// These are the findings.
const (
	// Caught means that one of the expected checks failed in one of the scenarios.
	Caught Finding = "caught"
	// Missed means that all of the scenarios ran, and no expected check failed.
	Missed Finding = "missed"
	// NotMeasured means that a run is missing or unknown, and no other run caught the mutant.
	NotMeasured Finding = "not measured"
)

// Texts contains scenarios as YAML, by name. Their field description has a fixed value, so that
// results stay up to date if only a description changes.
type Texts map[string]string

// NewMatrix returns a matrix without results.
func NewMatrix() *Matrix {
	return &Matrix{Unmodified: map[Base]map[string]Baseline{}, Cells: map[string]map[string]Cell{}}
}

// AddCurrent adds the results of another matrix that are up to date. They replace older ones.
func (x *Matrix) AddCurrent(other *Matrix, all []Mutant, texts Texts) {
	for base, row := range other.Unmodified {
		for name, baseline := range row {
			if baseline.Fingerprint == fingerprint(base, texts[name]) {
				x.setBaseline(base, name, baseline)
			}
		}
	}
	for i := range all {
		m := &all[i]
		for name, cell := range other.Cells[m.ID] {
			if cell.Fingerprint == m.cellFingerprint(texts[name]) {
				x.setCell(m.ID, name, cell)
			}
		}
	}
}

// AddOutcomes adds the runs that detected mutants according to the outcomes of trials.
func (x *Matrix) AddOutcomes(all []Mutant, outcomes map[string]Outcome, texts Texts) {
	for i := range all {
		m := &all[i]
		if last := outcomes[m.ID]; m.StateOf(last) == Detected {
			x.setCell(m.ID, last.Scenario, Cell{m.cellFingerprint(texts[last.Scenario]), check.Fail, last.Checks})
		}
	}
}

// setBaseline stores the result of a scenario with the unmodified controllers in the matrix.
func (x *Matrix) setBaseline(base Base, scenario string, b Baseline) {
	if x.Unmodified[base] == nil {
		x.Unmodified[base] = map[string]Baseline{}
	}
	x.Unmodified[base][scenario] = b
}

// setCell stores the result of a scenario with a mutant in the matrix.
func (x *Matrix) setCell(id, scenario string, c Cell) {
	if x.Cells[id] == nil {
		x.Cells[id] = map[string]Cell{}
	}
	x.Cells[id][scenario] = c
}

// Find returns whether at least one of the scenarios catches the mutant.
func (x *Matrix) Find(m *Mutant, scenarios []string) Finding {
	finding := Missed
	for _, name := range scenarios {
		switch {
		case !x.measured(m, name):
			finding = NotMeasured
		case m.detectedBy(x.Cells[m.ID][name].Failed):
			return Caught
		}
	}
	return finding
}

// measured reports whether the mutant ran in the scenario. A run with the verdict unknown does
// not count.
func (x *Matrix) measured(m *Mutant, scenario string) bool {
	cell, has := x.Cells[m.ID][scenario]
	return has && cell.Verdict != check.Unknown
}

// Rate counts mutants by [Finding]: caught, missed, or not measured. It leaves out mutants that no
// check can observe.
type Rate map[Finding]int

// Rate counts the mutants that the given scenarios catch, miss, or have not measured. It leaves out
// mutants that no check can observe.
func (x *Matrix) Rate(all []Mutant, scenarios []string) Rate {
	rate := Rate{}
	for i := range all {
		if all[i].UnobservableReason == "" {
			rate[x.Find(&all[i], scenarios)]++
		}
	}
	return rate
}

// String returns the rate as text, such as "at least 90 of 126 (71 %), 5 not measured".
func (r Rate) String() string {
	all := r[Caught] + r[Missed] + r[NotMeasured]
	text := fmt.Sprintf("%d of %d (%d %%)", r[Caught], all, 100*r[Caught]/max(1, all))
	if n := r[NotMeasured]; n > 0 {
		return fmt.Sprintf("at least %s, %d %s", text, n, NotMeasured)
	}
	return text
}

// newBaseline returns the result of a run of the unmodified controllers.
func newBaseline(base Base, text string, run *reports.Run) Baseline {
	exercised := slices.DeleteFunc(slices.Clone(run.Results), func(r check.Result) bool {
		return r.Verdict == check.NotExercised || r.Verdict == check.Unknown
	})
	return Baseline{fingerprint(base, text), run.Verdict, run.Duration.Round(100 * time.Millisecond), slices.Sorted(slices.Values(idsOf(exercised)))}
}

// newCell returns the result of a run of a mutant.
func newCell(m *Mutant, text string, run *reports.Run) Cell {
	return Cell{m.cellFingerprint(text), run.Verdict, idsOf(failedChecks(run))}
}

// cellFingerprint returns a hash of the mutant and of the scenario. A result with another hash
// is out of date.
func (m *Mutant) cellFingerprint(text string) string { return fingerprint(m.Base, m.Edits, text) }

// fingerprint returns a short hash of values that can be encoded as JSON.
func fingerprint(values ...any) string {
	content, err := json.Marshal(values)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:6])
}
