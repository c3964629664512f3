package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
)

// Pair has the costs of two runs of one scenario, one on each subject. The runs were executed
// one after the other.
type Pair struct{ Subject, Base Cost }

// Ratio compares one metric of the subject with that of the base, over several pairs of runs. A
// pair is one run on each of the two.
type Ratio struct {
	Metric string // such as "CPU time", the text of a step, or a verb with a resource
	Unit   string // s, KiB or MiB; empty for a number of requests
	// Subject and Base have one value for each pair. Values with the same index are from one
	// pair.
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
// complete, and both must have completed the same steps.
func (p Pair) Comparable() bool {
	return !p.Subject.Unfinished && !p.Base.Unfinished && slices.EqualFunc(p.Subject.Steps, p.Base.Steps, func(a, b Step) bool { return a.Index == b.Index })
}

// Ratios compares every metric that all comparable pairs have.
//
// The metrics are the duration of each step, the time to converge, the time with wrong
// Endpoints, CPU time, peak memory and bytes. The numbers of requests by verb and resource
// follow, sorted by name. Ratios omits a metric that is 0 in every run, such as bytes of a
// subject without the fault proxy.
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

// ratio returns the values of one metric in all pairs. The function of computes the value for
// one run, or NaN if the run does not have the metric.
func ratio(metric, unit string, pairs []Pair, of func(Cost) float64) Ratio {
	r := Ratio{Metric: metric, Unit: unit}
	for _, pair := range pairs {
		r.Subject = append(r.Subject, of(pair.Subject))
		r.Base = append(r.Base, of(pair.Base))
	}
	return r
}

// calls returns each verb and resource that occurs in any run, sorted by name.
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

// hasAllValues reports whether the metric has a value in every run. A missing value is NaN.
func (r Ratio) hasAllValues() bool {
	return !slices.ContainsFunc(slices.Concat(r.Subject, r.Base), math.IsNaN)
}

// allZero reports whether the metric is 0 in every run.
func (r Ratio) allZero() bool {
	return !slices.ContainsFunc(slices.Concat(r.Subject, r.Base), func(v float64) bool { return v != 0 })
}

// Median returns the median of the pairs' ratios. The ratio of a pair is the subject's value
// divided by the base's value.
//
// If only the base's value is 0, the ratio is +Inf. If both are 0, it is 1.
func (r Ratio) Median() float64 { return median(r.ratios()) }

// Spread returns the lowest and the highest of the pairs' ratios.
func (r Ratio) Spread() (low, high float64) {
	all := r.ratios()
	return slices.Min(all), slices.Max(all)
}

// ratios returns the subject's value divided by the base's value for each pair.
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

// median returns the median of the values, which must not be empty.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Finding says whether the subject used less or more of a resource than the base, according to
// a statistical test.
type Finding string

// The findings.
const (
	Less Finding = "less" // the subject used less than the base
	Same Finding = "same" // the test shows no difference
	More Finding = "more" // the subject used more than the base
)

// PairsMin is the minimum number of pairs with which the statistical test in [Ratio.Finding]
// can show a difference.
const PairsMin = 4

// significance is the significance level of the test in [Ratio.Finding]: the highest p-value
// that counts as a difference.
const significance = 0.05

// Finding tests whether the subject's values differ from the base's values, and returns the
// result with the p-value.
//
// It uses the Mann-Whitney U test with a significance level of 5 %. With fewer than PairsMin
// pairs, the finding is always Same.
func (r Ratio) Finding() (finding Finding, p float64) {
	thresholds := &benchmath.Thresholds{CompareAlpha: significance}
	// NewSample sorts its argument, so it gets a copy. The values of r keep the order of the
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

// String returns the comparison as one line.
//
// An example is "CPU time: 1.2 s to 2.4 s, ratio 0.50 (0.48-0.53), less (p=0.008, 5 pairs)".
// Here 1.2 s is the median of the subject, 2.4 s the median of the base, 0.50 the median ratio
// of the pairs, and (0.48-0.53) the range of these ratios.
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
