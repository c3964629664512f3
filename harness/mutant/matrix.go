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

// Matrix has the results of scenarios that ran on mutants and on the unmodified controllers.
//
// A matrix may be incomplete. If a run is missing, it is not known whether the scenario detects
// the mutant.
type Matrix struct {
	// Unmodified has the results of the unmodified controllers. The first key says which
	// controllers they are (ours or upstream), and the second key is the scenario's name.
	Unmodified map[Base]map[string]Baseline `json:"unmodified"`
	// Cells has the results of the mutants. The first key is the mutant's ID, and the second key
	// is the scenario's name. The unmodified controllers pass each of these scenarios with the
	// same seed.
	Cells map[string]map[string]Cell `json:"mutants"`
}

// Baseline is the result of the unmodified controllers in one scenario. Results of mutants count
// only if the unmodified controllers passed.
type Baseline struct {
	Fingerprint string        `json:"of"` // a hash of the scenario, to recognize old results
	Verdict     check.Verdict `json:"verdict"`
	// Duration is the time from the first to the last record of the run's history.
	Duration time.Duration `json:"duration"`
	// Exercised has the IDs of the checks that the run exercised, sorted. A run exercises a check
	// if something happened that could have broken the guarantee.
	Exercised []string `json:"exercised"`
}

// Cell is the result of one mutant in one scenario: the verdict and the failed checks.
type Cell struct {
	Fingerprint string        `json:"of"` // a hash of the mutant and the scenario, to recognize old results
	Verdict     check.Verdict `json:"verdict"`
	Failed      []string      `json:"failed,omitempty"` // the IDs of the checks that failed
}

// Finding says whether any of several scenarios detects a mutant, such as "caught".
type Finding string

// These values of [Finding] say whether any of several scenarios detects a mutant.
const (
	// Caught means that in at least one of the scenarios, one of the checks in Mutant.Checks
	// failed.
	Caught Finding = "caught"
	// Missed means that the mutant ran in all of the scenarios, and none of the checks in
	// Mutant.Checks failed.
	Missed Finding = "missed"
	// NotMeasured means that the result of a scenario is missing or unknown, and no other scenario
	// detected the mutant.
	NotMeasured Finding = "not measured"
)

// Texts has scenarios as YAML, by the scenario's name. All descriptions are replaced by a fixed
// text, so that a new description does not make results out of date.
type Texts map[string]string

// NewMatrix returns a matrix without results.
func NewMatrix() *Matrix {
	return &Matrix{Unmodified: map[Base]map[string]Baseline{}, Cells: map[string]map[string]Cell{}}
}

// AddCurrent copies results of another matrix to x, if they are up to date. They replace older
// results. A result is up to date if its fingerprint is that of the current mutant and scenario.
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

// AddOutcomes adds a result for each mutant that a trial detected. The result is that of the run
// that detected the mutant.
func (x *Matrix) AddOutcomes(all []Mutant, outcomes map[string]Outcome, texts Texts) {
	for i := range all {
		m := &all[i]
		if last := outcomes[m.ID]; m.StateOf(last) == Detected {
			x.setCell(m.ID, last.Scenario, Cell{m.cellFingerprint(texts[last.Scenario]), check.Fail, last.Checks})
		}
	}
}

// setBaseline stores the result that the unmodified controllers had in a scenario.
func (x *Matrix) setBaseline(base Base, scenario string, b Baseline) {
	if x.Unmodified[base] == nil {
		x.Unmodified[base] = map[string]Baseline{}
	}
	x.Unmodified[base][scenario] = b
}

// setCell stores the result that the mutant with the given ID had in a scenario.
func (x *Matrix) setCell(id, scenario string, c Cell) {
	if x.Cells[id] == nil {
		x.Cells[id] = map[string]Cell{}
	}
	x.Cells[id][scenario] = c
}

// Find returns whether the scenarios detect the mutant: Caught, Missed or NotMeasured.
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

// measured reports whether the matrix has a result of the mutant in the scenario. The verdict
// unknown does not count as a result.
func (x *Matrix) measured(m *Mutant, scenario string) bool {
	cell, has := x.Cells[m.ID][scenario]
	return has && cell.Verdict != check.Unknown
}

// Rate has the number of mutants for each [Finding]. It leaves out mutants that no check can
// observe.
type Rate map[Finding]int

// Rate returns the numbers of mutants that the given scenarios detect or miss. It also returns
// for how many mutants this was not measured. It leaves out mutants that no check can observe.
func (x *Matrix) Rate(all []Mutant, scenarios []string) Rate {
	rate := Rate{}
	for i := range all {
		if all[i].UnobservableReason == "" {
			rate[x.Find(&all[i], scenarios)]++
		}
	}
	return rate
}

// String returns the share of detected mutants, such as "at least 90 of 126 (71 %), 5 not
// measured".
func (r Rate) String() string {
	all := r[Caught] + r[Missed] + r[NotMeasured]
	text := fmt.Sprintf("%d of %d (%d %%)", r[Caught], all, 100*r[Caught]/max(1, all))
	if n := r[NotMeasured]; n > 0 {
		return fmt.Sprintf("at least %s, %d %s", text, n, NotMeasured)
	}
	return text
}

// newBaseline converts a run of the unmodified controllers to an entry of the matrix of mutants and
// scenarios. The argument text is the scenario's YAML.
func newBaseline(base Base, text string, run *reports.Run) Baseline {
	exercised := slices.DeleteFunc(slices.Clone(run.Results), func(r check.Result) bool {
		return r.Verdict == check.NotExercised || r.Verdict == check.Unknown
	})
	return Baseline{fingerprint(base, text), run.Verdict, run.Duration.Round(100 * time.Millisecond), slices.Sorted(slices.Values(idsOf(exercised)))}
}

// newCell converts a run of a mutant to an entry of the matrix of mutants and scenarios. The
// argument text is the scenario's YAML.
func newCell(m *Mutant, text string, run *reports.Run) Cell {
	return Cell{m.cellFingerprint(text), run.Verdict, idsOf(failedChecks(run))}
}

// cellFingerprint returns a hash of the mutant and of the scenario's YAML. A result with another
// hash is out of date.
func (m *Mutant) cellFingerprint(text string) string { return fingerprint(m.Base, m.Edits, text) }

// fingerprint returns a short hash of values. Another fingerprint shows that a stored result is out
// of date. All values must be encodable as JSON.
func fingerprint(values ...any) string {
	content, err := json.Marshal(values)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:6])
}
