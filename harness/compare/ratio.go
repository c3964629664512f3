package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
)

// Pair is what two runs of one scenario cost, one on each subject, made one
// after the other.
type Pair struct{ Subject, Base Cost }

// Ratio compares one metric of two subjects over pairs of runs.
type Ratio struct {
	Metric string
	Unit   string // s, KiB, MiB, or nothing for a count
	// Subject and Base are the values of each pair's runs.
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

// Comparable reports whether both runs did the same steps, went to their ends and were seen
// whole. Else what they cost cannot be compared.
func (p Pair) Comparable() bool {
	return !p.Subject.Unfinished && !p.Base.Unfinished && slices.EqualFunc(p.Subject.Steps, p.Base.Steps, func(a, b Step) bool { return a.Index == b.Index })
}

// Ratios compares every metric that all the pairs have whose runs did the same steps:
// the time of each step, the time to converge and for which Endpoints were wrong, CPU
// time, peak memory, bytes, then the requests of each kind that either sent, in order
// of names. What is nothing in every run is left out, as are bytes of runs without the
// fault proxy.
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

// calls are the kinds of requests that any run sent.
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

// hasAllValues reports whether every run has a value.
func (r Ratio) hasAllValues() bool {
	return !slices.ContainsFunc(slices.Concat(r.Subject, r.Base), math.IsNaN)
}

// allZero reports whether there is none of it in any run.
func (r Ratio) allZero() bool {
	return !slices.ContainsFunc(slices.Concat(r.Subject, r.Base), func(v float64) bool { return v != 0 })
}

// Median is the median of the pairs' ratios, subject to base: +Inf where only the
// subject has any, 1 where neither has.
func (r Ratio) Median() float64 { return median(r.ratios()) }

// Spread is the lowest and the highest of the pairs' ratios.
func (r Ratio) Spread() (low, high float64) {
	all := r.ratios()
	return slices.Min(all), slices.Max(all)
}

func (r Ratio) ratios() []float64 {
	all := make([]float64, len(r.Subject))
	for i := range all {
		all[i] = r.Subject[i] / r.Base[i]
		if r.Subject[i] == r.Base[i] {
			all[i] = 1 // zero to zero included
		}
	}
	return all
}

// Medians are the medians of both sides' values.
func (r Ratio) Medians() (subject, base float64) { return median(r.Subject), median(r.Base) }

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Finding is what a comparison amounts to.
type Finding string

// The findings. They are about cost, whatever its unit.
const (
	Less Finding = "less"
	Same Finding = "same" // no difference that the pairs could show
	More Finding = "more"
)

// PairsMin is how many pairs it takes to show a difference.
const PairsMin = 4

// significance is the chance of a difference by accident that is accepted.
const significance = 0.05

// Finding says whether the subject cost more or less than the base, by the
// Mann-Whitney U test at 5 %. P is its p-value. With fewer than PairsMin
// pairs no difference can be shown.
func (r Ratio) Finding() (finding Finding, p float64) {
	thresholds := &benchmath.Thresholds{CompareAlpha: significance}
	// NewSample sorts what it is given, and the values are in the order of pairs.
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

// String is the comparison in a line, such as
// "CPU time: 1.20 s to 2.40 s, ratio 0.50 (0.48-0.53), less (p=0.008, 5 pairs)".
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
