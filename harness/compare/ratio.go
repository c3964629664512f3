package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
)

// Pair has the costs of two runs of one scenario on two controllers under test: the subject and the
// base. The runs were executed one after the other.
type Pair struct{ Subject, Base Cost }

// Ratio compares one metric, such as CPU time, between two controllers under test: the subject and
// the base. It has the values of several pairs of runs. A pair is one run on the subject and one on
// the base.
type Ratio struct {
	Metric string // such as "CPU time", the text of a step, or "update pods"
	Unit   string // s, KiB or MiB; empty for a number of requests
	// Subject and Base have one value for each pair of runs: index i is the pair's number.
	Subject, Base []float64
}

// These are the metrics that describe a whole run. Other metrics describe a step, or the requests
// with one verb and resource.
const (
	TimeToConverge = "time to converge"
	EndpointsWrong = "time Endpoints were wrong"
	CPUTime        = "CPU time"
	PeakMemory     = "peak memory"
	BytesSent      = "bytes sent"
	BytesReceived  = "bytes received"
)

// Comparable reports whether the costs of the pair's two runs can be compared. Both runs must be
// complete and have completed the same steps.
func (p Pair) Comparable() bool {
	return !p.Subject.Unfinished && !p.Base.Unfinished && slices.EqualFunc(p.Subject.Steps, p.Base.Steps, func(a, b Step) bool { return a.Index == b.Index })
}

// Ratios returns a comparison for every metric that has a value in all comparable pairs.
//
// The metrics are each step's duration, the time to converge, the time with wrong Endpoints, CPU
// time, memory and bytes. The numbers of requests by verb and resource follow, sorted by name.
// Ratios omits a metric that is 0 in every run. For example, a subject without the fault proxy has
// no bytes.
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

// ratio computes one metric, such as CPU time, for both runs of each pair. The last argument is a
// function that extracts the metric from the cost of one run. This function returns NaN if the run
// has no value.
func ratio(metric, unit string, pairs []Pair, of func(Cost) float64) Ratio {
	r := Ratio{Metric: metric, Unit: unit}
	for _, pair := range pairs {
		r.Subject = append(r.Subject, of(pair.Subject))
		r.Base = append(r.Base, of(pair.Base))
	}
	return r
}

// calls returns each combination of verb and resource that a request of any run has, sorted by
// name.
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

// hasAllValues reports whether the metric has a value in every run. [Ratios] omits a metric that
// lacks a value. NaN stands for a missing value.
func (r Ratio) hasAllValues() bool {
	return !slices.ContainsFunc(slices.Concat(r.Subject, r.Base), math.IsNaN)
}

// allZero reports whether the metric is 0 in every run. [Ratios] omits such a metric.
func (r Ratio) allZero() bool {
	return !slices.ContainsFunc(slices.Concat(r.Subject, r.Base), func(v float64) bool { return v != 0 })
}

// Median returns the median of the ratios of all pairs of runs. A pair's ratio is the value in the
// run of the controllers under test, divided by the value in the base run.
//
// If only the base run has the value 0, the ratio is +Inf. If the two values are equal, even 0, the
// ratio is 1.
func (r Ratio) Median() float64 { return median(r.ratios()) }

// Spread returns the lowest and the highest ratio of all pairs of runs. A pair's ratio is the value
// of the controllers under test, such as their CPU time, divided by the value in the base run.
func (r Ratio) Spread() (low, high float64) {
	all := r.ratios()
	return slices.Min(all), slices.Max(all)
}

// ratios returns one ratio for each pair of runs. It is the value of the controllers under test,
// divided by the value in the base run. If the values are equal, even both 0, the ratio is 1.
func (r Ratio) ratios() []float64 {
	all := make([]float64, len(r.Subject))
	for i := range all {
		all[i] = r.Subject[i] / r.Base[i]
		if r.Subject[i] == r.Base[i] {
			all[i] = 1 // also if both values are 0, because 0 / 0 is NaN
		}
	}
	return all
}

// Medians returns the median value of the controllers under test (the subject), and the median
// value of the base runs.
func (r Ratio) Medians() (subject, base float64) { return median(r.Subject), median(r.Base) }

// median returns the median of the values. The caller must pass at least one value.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Finding says whether a metric is lower or higher for the controllers under test than in the base
// runs. It is the result of a statistical test.
type Finding string

// These are the possible results of the statistical test of a metric. If the values are lower, the
// controllers under test are cheaper or faster than the base.
const (
	Less Finding = "less" // the values in the subject's runs are lower than those in the base runs
	Same Finding = "same" // the statistical test shows no difference between the values
	More Finding = "more" // the values in the subject's runs are higher than those in the base runs
)

// PairsMin is the minimum number of pairs of runs with which [Ratio.Finding] can show a
// difference.
const PairsMin = 4

// significance is the highest p-value at which [Ratio.Finding] reports a difference.
const significance = 0.05

// Finding tests whether the values of the controllers under test differ from those in the base
// runs. It returns the finding and the p-value of the test.
//
// The test is the Mann-Whitney U test with a significance level of 5 %. With fewer than PairsMin
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

// String returns the comparison as one line with the finding.
//
// An example is "CPU time: median 1.2 s, base 2.4 s; ratio 0.50 (pairs 0.48 to 0.53); subject: less
// (p=0.008, 5 pairs)". The first median is that of the subject. The ratio is the median of the
// pairs' ratios, which range from 0.48 to 0.53.
func (r Ratio) String() string {
	subject, base := r.Medians()
	low, high := r.Spread()
	finding, p := r.Finding()
	unit := r.Unit
	if unit != "" {
		unit = " " + unit
	}
	return fmt.Sprintf("%s: median %.4g%s, base %.4g%s; ratio %.2f (pairs %.2f to %.2f); subject: %s (p=%.3f, %d pairs)",
		r.Metric, subject, unit, base, unit, r.Median(), low, high, finding, p, len(r.Base))
}
