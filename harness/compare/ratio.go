package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
)

// Pair holds the costs of two runs of one scenario, one on each subject, made one after the
// other.
type Pair struct{ Subject, Base Cost }

// Ratio is the comparison of one metric of two subjects over pairs of runs.
type Ratio struct {
	Metric string
	Unit   string // s, KiB or MiB; empty for a count
	// Subject has the value of the subject in each pair, and Base the value of the base.
	// Both have the order of the pairs.
	Subject, Base []float64
}

// The metrics of a whole run.
const (
	TimeToConverge = "time to converge"
	EndpointsWrong = "time Endpoints were wrong"
	CPUTime        = "CPU time"
	PeakMemory     = "peak memory"
	BytesSent      = "bytes sent"
	BytesReceived  = "bytes received"
)

// Comparable reports whether the costs of the two runs can be compared. Both runs must be
// complete and have completed the same steps.
func (p Pair) Comparable() bool {
	return !p.Subject.Unfinished && !p.Base.Unfinished && slices.EqualFunc(p.Subject.Steps, p.Base.Steps, func(a, b Step) bool { return a.Index == b.Index })
}

// Ratios compares every metric that all comparable pairs have. The metrics are the duration
// of each step, the time to converge, the time with wrong Endpoints, CPU time, peak memory
// and bytes. The requests of each kind follow, sorted by name. Ratios omits metrics that
// are 0 in every run, such as bytes without the fault proxy.
func Ratios(pairs []Pair) []Ratio {
	pairs = slices.DeleteFunc(slices.Clone(pairs), func(p Pair) bool { return !p.Comparable() })
	if len(pairs) == 0 {
		return nil
	}
	var all []Ratio
	for i, step := range pairs[0].Base.Steps {
		all = append(all, ratio(step.Name, "s", pairs, func(c Cost) float64 {
			if i >= len(c.Steps) {
				return math.NaN()
			}
			return c.Steps[i].Duration.Seconds()
		}))
	}
	all = append(all,
		ratio(TimeToConverge, "s", pairs, func(c Cost) float64 {
			if c.Converged == 0 {
				return math.NaN()
			}
			return c.Converged.Seconds()
		}),
		ratio(EndpointsWrong, "s", pairs, func(c Cost) float64 { return c.EndpointsWrong.Seconds() }),
		ratio(CPUTime, "s", pairs, func(c Cost) float64 { return c.CPU.Seconds() }),
		ratio(PeakMemory, "MiB", pairs, func(c Cost) float64 { return float64(c.PeakMemory) / (1 << 20) }),
		ratio(BytesSent, "KiB", pairs, func(c Cost) float64 { return float64(c.Sent) / (1 << 10) }),
		ratio(BytesReceived, "KiB", pairs, func(c Cost) float64 { return float64(c.Received) / (1 << 10) }),
	)
	for _, call := range calls(pairs) {
		all = append(all, ratio(call.String(), "", pairs, func(c Cost) float64 { return float64(c.Requests[call]) }))
	}
	return slices.DeleteFunc(all, func(r Ratio) bool { return !r.hasAllValues() || r.allZero() })
}

func ratio(metric, unit string, pairs []Pair, of func(Cost) float64) Ratio {
	r := Ratio{Metric: metric, Unit: unit}
	for _, pair := range pairs {
		r.Subject = append(r.Subject, of(pair.Subject))
		r.Base = append(r.Base, of(pair.Base))
	}
	return r
}

// calls returns the kinds of requests in all runs, sorted by name.
func calls(pairs []Pair) []Call {
	seen := map[Call]bool{}
	for _, pair := range pairs {
		for _, cost := range []Cost{pair.Subject, pair.Base} {
			for call := range cost.Requests {
				seen[call] = true
			}
		}
	}
	var all []Call
	for call := range seen {
		all = append(all, call)
	}
	slices.SortFunc(all, func(a, b Call) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// hasAllValues reports whether the metric has a value in every run.
func (r Ratio) hasAllValues() bool {
	return !slices.ContainsFunc(slices.Concat(r.Subject, r.Base), math.IsNaN)
}

// allZero reports whether every value is 0.
func (r Ratio) allZero() bool {
	return !slices.ContainsFunc(slices.Concat(r.Subject, r.Base), func(v float64) bool { return v != 0 })
}

// Median returns the median of the pairs' ratios, each the subject's value divided by the
// base's. A ratio is +Inf if only the base's value is 0, and 1 if both values are 0.
func (r Ratio) Median() float64 { return median(r.ratios()) }

// Spread returns the lowest and the highest of the pairs' ratios.
func (r Ratio) Spread() (low, high float64) {
	all := r.ratios()
	return slices.Min(all), slices.Max(all)
}

func (r Ratio) ratios() []float64 {
	all := make([]float64, len(r.Subject))
	for i := range all {
		all[i] = r.Subject[i] / r.Base[i]
		if r.Subject[i] == r.Base[i] {
			all[i] = 1 // also if both are 0
		}
	}
	return all
}

// Medians returns the median of the subject's values and the median of the base's values.
func (r Ratio) Medians() (subject, base float64) { return median(r.Subject), median(r.Base) }

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Finding is the result of a comparison of costs.
type Finding string

// The findings. They say how the cost of the subject relates to that of the base.
const (
	Less Finding = "less"
	Same Finding = "same" // the pairs show no difference
	More Finding = "more"
)

// PairsMin is the minimum number of pairs that can show a difference.
const PairsMin = 4

// significance is the significance level of the test.
const significance = 0.05

// Finding reports whether the subject cost more or less than the base. It uses the
// Mann-Whitney U test with a significance level of 5 %, and p is the p-value. With fewer
// than PairsMin pairs, the test cannot show a difference.
func (r Ratio) Finding() (finding Finding, p float64) {
	thresholds := &benchmath.Thresholds{CompareAlpha: significance}
	// NewSample sorts its argument, so it gets a copy: the values stay in the order of the
	// pairs.
	comparison := benchmath.AssumeNothing.Compare(
		benchmath.NewSample(slices.Clone(r.Subject), thresholds),
		benchmath.NewSample(slices.Clone(r.Base), thresholds),
	)
	subject, base := r.Medians()
	switch {
	case comparison.P > significance || subject == base:
		return Same, comparison.P
	case subject < base:
		return Less, comparison.P
	default:
		return More, comparison.P
	}
}

// String returns the comparison as one line. The line has the medians of the subject and of
// the base, the median and the range of the pairs' ratios, and the finding. An example is
// "CPU time: 1.2 s to 2.4 s, ratio 0.50 (0.48-0.53), less (p=0.008, 5 pairs)".
func (r Ratio) String() string {
	subject, base := r.Medians()
	low, high := r.Spread()
	finding, p := r.Finding()
	unit := r.Unit
	if unit != "" {
		unit = " " + unit
	}
	return fmt.Sprintf("%s: %.4g%s to %.4g%s, ratio %.2f (%.2f-%.2f), %s (p=%.3f, %d pairs)",
		r.Metric, subject, unit, base, unit, r.Median(), low, high, finding, p, len(r.Base))
}
