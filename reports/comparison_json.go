package reports

import (
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/compare"
)

// comparisonSchema is the version of the format in which [ComparedJSON] writes compare.json.
const comparisonSchema = 3

// jsonComparisons is the content of compare.json, which the package documentation describes.
type jsonComparisons struct {
	Schema      int              `json:"schema"`
	Verdict     check.Verdict    `json:"verdict"`
	Comparisons []jsonComparison `json:"comparisons"`
}

type jsonComparison struct {
	Scenario string        `json:"scenario"`
	Subject  string        `json:"subject"`
	Base     string        `json:"base"`
	Verdict  check.Verdict `json:"verdict"`
	Pairs    []jsonPair    `json:"pairs"`
	Costs    []jsonCost    `json:"costs"`
}

type jsonPair struct {
	Seed    uint64   `json:"seed"`
	Subject jsonSide `json:"subject"`
	Base    jsonSide `json:"base"`
	Partial bool     `json:"partial"`
	// Partly is the old name of the JSON field partial, from schema 2. ComparedJSON writes both
	// fields with the same value until the next release.
	Partly      bool             `json:"partly"`
	Differences []jsonDifference `json:"differences"`
}

type jsonSide struct {
	Directory string        `json:"directory"`
	Verdict   check.Verdict `json:"verdict"`
	Reason    string        `json:"reason"`
}

type jsonDifference struct {
	Aspect         compare.Aspect         `json:"aspect"`
	Object         string                 `json:"object"`
	What           string                 `json:"what"`
	Subject        string                 `json:"subject,omitempty"`
	Base           string                 `json:"base,omitempty"`
	Classification compare.Classification `json:"classification"`
	// Standing is the old name of the JSON field classification, from schema 2. ComparedJSON writes
	// both fields with the same value until the next release.
	Standing compare.Classification `json:"standing"`
	Reason   string                 `json:"reason,omitempty"`
}

type jsonCost struct {
	Metric  string          `json:"metric"`
	Unit    string          `json:"unit,omitempty"`
	Subject []float64       `json:"subject"`
	Base    []float64       `json:"base"`
	Ratio   *float64        `json:"ratio,omitempty"`
	Low     *float64        `json:"low,omitempty"`
	High    *float64        `json:"high,omitempty"`
	Finding compare.Finding `json:"finding"`
	P       float64         `json:"p"`
}

// ComparedJSON writes comparisons in the format of compare.json, which the package documentation
// describes.
func ComparedJSON(w io.Writer, comparisons []Comparison) error {
	all := jsonComparisons{Schema: comparisonSchema, Verdict: check.Pass, Comparisons: []jsonComparison{}}
	for i := range comparisons {
		c := &comparisons[i]
		all.Verdict = check.Worst(all.Verdict, c.Verdict())
		all.Comparisons = append(all.Comparisons, c.json())
	}
	if err := writeJSON(w, all); err != nil {
		return fmt.Errorf("writing comparisons as JSON: %w", err)
	}
	return nil
}

// ComparisonJSON writes one comparison as a line of JSON, in the format of an item of
// "comparisons" in compare.json.
func ComparisonJSON(w io.Writer, c *Comparison) error {
	if err := writeJSONLine(w, c.json()); err != nil {
		return fmt.Errorf("writing a comparison as JSON: %w", err)
	}
	return nil
}

// json converts the comparison to the format of an item of "comparisons" in compare.json.
func (c *Comparison) json() jsonComparison {
	comparison := jsonComparison{
		Scenario: c.Scenario, Subject: c.Subject, Base: c.Base, Verdict: c.Verdict(), Pairs: []jsonPair{}, Costs: []jsonCost{},
	}
	for i := range c.Pairs {
		pair := &c.Pairs[i]
		encoded := jsonPair{
			Seed: pair.Subject.Seed, Subject: sideOf(&pair.Subject), Base: sideOf(&pair.Base),
			Partial: pair.partial(), Partly: pair.partial(), Differences: []jsonDifference{},
		}
		for _, d := range pair.Differences {
			encoded.Differences = append(encoded.Differences, jsonDifference{
				Aspect: d.Aspect, Object: d.Object, What: d.What, Subject: d.Subject, Base: d.Base,
				Classification: d.Classification, Standing: d.Classification, Reason: d.Reason,
			})
		}
		comparison.Pairs = append(comparison.Pairs, encoded)
	}
	for _, r := range c.Ratios {
		low, high := r.Spread()
		finding, p := r.Finding()
		comparison.Costs = append(comparison.Costs, jsonCost{
			Metric: r.Metric, Unit: r.Unit, Subject: r.Subject, Base: r.Base,
			Ratio: finite(r.Median()), Low: finite(low), High: finite(high), Finding: finding, P: p,
		})
	}
	return comparison
}

// sideOf returns what compare.json contains about one of the two runs of a pair: the run's
// directory, verdict and reason.
func sideOf(run *Run) jsonSide { return jsonSide{run.Directory, run.Verdict, run.Reason} }

// writeJSON writes a value as indented JSON. The characters <, > and & remain as they are.
func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// writeJSONLine writes a value as one line of JSON. The characters <, > and & remain as they are.
func writeJSONLine(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// finite returns a pointer to x. For infinity and NaN, which JSON cannot represent, it returns
// nil.
func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}
