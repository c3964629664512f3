package bench

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// These are the goals for the ratios: the value of our controllers divided by that of
// kube-controller-manager.
const (
	cpuGoal      = 0.8
	requestsGoal = 1.0
	memoryGoal   = 0.5
	timeGoal     = 0.9
)

// result contains all pairs of one load.
type result struct {
	load  load
	pairs []pair
}

// logRatios returns the logarithm of the CPU ratio of each pair, over all phases.
func (r *result) logRatios() (all []float64) {
	for _, p := range r.pairs {
		var ours, base time.Duration
		for i := range p.ours {
			ours, base = ours+p.ours[i].cpu, base+p.base[i].cpu
		}
		all = append(all, math.Log(ours.Seconds()/base.Seconds()))
	}
	return all
}

// ratio returns the geometric mean of the pairs' CPU ratios.
func (r *result) ratio() float64 {
	mean, _ := meanAndInterval(r.logRatios())
	return math.Exp(mean)
}

// interval returns the half-width of the 95 % confidence interval of the CPU ratio, as a part of
// the ratio. It is +Inf for less than two pairs.
func (r *result) interval() float64 {
	_, half := meanAndInterval(r.logRatios())
	return math.Expm1(half)
}

// students contains the two-sided 95 % quantiles of Student's t distribution, for 1, 2, 3…
// degrees of freedom. For more degrees, the last value is close enough.
var students = []float64{12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086}

// meanAndInterval returns the mean of values, and the half-width of its 95 % confidence interval.
func meanAndInterval(values []float64) (mean, half float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	if len(values) < 2 {
		return mean, math.Inf(1)
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, students[min(len(values)-2, len(students)-1)] * math.Sqrt(squares/(n-1)/n)
}

// metric is a value of a cost that the output contains, such as the CPU time.
type metric struct {
	name  string
	unit  string // the unit for benchstat
	goal  float64
	value func(*cost) float64
}

// metrics are the values that the table and the file for benchstat contain.
var metrics = []metric{
	{"CPU", "cpu-sec/op", cpuGoal, func(c *cost) float64 { return c.cpu.Seconds() }},
	{"user", "user-sec/op", 0, func(c *cost) float64 { return c.user.Seconds() }},
	{"GC", "gc-sec/op", 0, func(c *cost) float64 { return c.gc.Seconds() }},
	{"allocs", "allocs/op", 0, func(c *cost) float64 { return c.allocs }},
	{"bytes", "B/op", 0, func(c *cost) float64 { return c.allocated }},
	{"memory", "peak-B", memoryGoal, func(c *cost) float64 { return c.peak }},
	{"requests", "requests/op", requestsGoal, func(c *cost) float64 { return float64(c.total()) }},
	{"traffic", "wire-B/op", 0, func(c *cost) float64 { return float64(c.sent + c.received) }},
	{"events", "events/op", 0, func(c *cost) float64 { return float64(c.events) }},
	{"time", "sec/op", timeGoal, func(c *cost) float64 { return c.took.Seconds() }},
	{"API server", "apiserver-cpu-sec/op", 0, func(c *cost) float64 { return c.apiServer.Seconds() }},
}

// compare compares a metric in one phase. It returns the geometric mean of the pairs' ratios, and the
// half-width of its interval. The mean is NaN if a value is 0.
func (r *result) compare(phase int, m *metric) (ratio, half float64) {
	var logs []float64
	for _, p := range r.pairs {
		logs = append(logs, math.Log(m.value(&p.ours[phase])/m.value(&p.base[phase])))
	}
	mean, half := meanAndInterval(logs)
	return math.Exp(mean), math.Expm1(half)
}

// medians returns the medians of a metric in one phase.
func (r *result) medians(phase int, of func(*cost) float64) (ours, base float64) {
	var all [2][]float64
	for _, p := range r.pairs {
		all[0], all[1] = append(all[0], of(&p.ours[phase])), append(all[1], of(&p.base[phase]))
	}
	return median(all[0]), median(all[1])
}

func median(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// table formats all results. These are the ratios of each phase, the slopes, and the kinds of
// requests of which ours sends more.
func table(results []result) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "load\tphase\tpairs\tours CPU\tbase CPU\t±\tAPI server\t")
	for _, m := range metrics {
		fmt.Fprint(w, m.name+"\t")
	}
	fmt.Fprintln(w)
	for i := range results {
		results[i].rows(w)
	}
	fmt.Fprint(w, "goal\t\t\t\t\t\t\t")
	for _, m := range metrics {
		if m.goal > 0 {
			fmt.Fprintf(w, "≤%.1f", m.goal)
		}
		fmt.Fprint(w, "\t")
	}
	fmt.Fprintln(w)
	w.Flush()
	text.WriteString("Ratios ours/base; ± is the 95 % interval of the CPU ratio; * misses the goal. API server is its part of the CPU time beside ours, and beside the base.\n")
	for i := range results {
		text.WriteString(results[i].moreRequests())
	}
	text.WriteString(slopes(results))
	return text.String()
}

// rows writes one row for each phase of a load.
func (r *result) rows(w *tabwriter.Writer) {
	for i, p := range r.load.phases {
		cpu := &metrics[0]
		ours, base := r.medians(i, cpu.value)
		_, half := r.compare(i, cpu)
		share := func(c *cost) float64 { return c.apiServer.Seconds() / (c.apiServer + c.cpu).Seconds() }
		oursShare, baseShare := r.medians(i, share)
		fmt.Fprintf(w, "%s\t%s\t%d\t%.3f s\t%.3f s\t%.1f %%\t%.0f/%.0f %%\t", r.load.name(), p.name, len(r.pairs), ours, base, 100*half, 100*oursShare, 100*baseShare)
		for j := range metrics {
			m := &metrics[j]
			ratio, _ := r.compare(i, m)
			missed := ""
			if m.goal > 0 && ratio > m.goal {
				missed = "*"
			}
			if math.IsNaN(ratio) || math.IsInf(ratio, 0) || ratio == 0 {
				fmt.Fprint(w, "-\t")
				continue
			}
			fmt.Fprintf(w, "%.2f%s\t", ratio, missed)
		}
		fmt.Fprintln(w)
	}
}

// moreRequests returns a line for each kind of request of which ours sends more than the base.
func (r *result) moreRequests() string {
	var text strings.Builder
	for i, p := range r.load.phases {
		kinds := map[string]bool{}
		for _, pair := range r.pairs {
			for kind := range pair.ours[i].requests {
				kinds[kind] = true
			}
		}
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			ours, base := r.medians(i, func(c *cost) float64 { return float64(c.requests[kind]) })
			if ours > base*requestsGoal {
				fmt.Fprintf(&text, "%s %s: %s: ours %.0f, base %.0f\n", r.load.name(), p.name, kind, ours, base)
			}
		}
	}
	return text.String()
}

// slopes returns a text about each phase of the ladder. It says by which power of the number of pods
// the CPU time and the allocated bytes grow. A power of 1 means that the cost of a pod does not depend on the
// number of pods.
func slopes(results []result) string {
	var text strings.Builder
	rungs := slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.load.kind != "ladder" })
	if len(rungs) < 2 {
		return ""
	}
	for i, p := range rungs[0].load.phases {
		for _, m := range metrics {
			if m.name != "CPU" && m.name != "bytes" && m.name != "requests" {
				continue
			}
			var pods, ours, base []float64
			for j := range rungs {
				of, on := rungs[j].medians(i, m.value)
				pods, ours, base = append(pods, math.Log(float64(rungs[j].load.size))), append(ours, math.Log(of)), append(base, math.Log(on))
			}
			fmt.Fprintf(&text, "slope of %s in %s: ours %.2f, base %.2f (goal ≤ 1.0)\n", m.name, p.name, slope(pods, ours), slope(pods, base))
		}
	}
	return text.String()
}

// slope returns the slope of the line with the least squares through points.
func slope(x, y []float64) float64 {
	meanX, _ := meanAndInterval(x)
	meanY, _ := meanAndInterval(y)
	products, squares := 0.0, 0.0
	for i := range x {
		products += (x[i] - meanX) * (y[i] - meanY)
		squares += (x[i] - meanX) * (x[i] - meanX)
	}
	return products / squares
}

// benchstat formats all values in the format of Go benchmarks, which benchstat reads.
func benchstat(results []result) string {
	var text strings.Builder
	fmt.Fprintf(&text, "goos: %s\ngoarch: %s\npkg: github.com/kube-gauntlet/gauntlet/suites/bench\n", runtime.GOOS, runtime.GOARCH)
	for _, r := range results {
		for _, pair := range r.pairs {
			for i, p := range r.load.phases {
				for name, c := range map[string]*cost{"ours": &pair.ours[i], "base": &pair.base[i]} {
					fmt.Fprintf(&text, "BenchmarkControllers/load=%s/size=%d/phase=%s/subject=%s 1", r.load.kind, r.load.size, p.name, name)
					for _, m := range metrics {
						fmt.Fprintf(&text, " %g %s", m.value(c), m.unit)
					}
					text.WriteString("\n")
				}
			}
		}
	}
	return text.String()
}
