// Package bench measures what our controllers and kube-controller-manager need for the same work:
// CPU time, memory, requests and time. docs/performance.md describes the method.
//
// The absolute values depend on the machine, so only the ratios of the two are meaningful. The
// benchmark has no limits: it prints the ratios beside the goals.
package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// The options of BenchmarkControllers are environment variables.
const (
	podsVariable  = "BENCH_PODS"  // the rungs of the ladder, such as 100,1000,5000
	loadsVariable = "BENCH_LOADS" // the loads, such as ladder,idle
	pairsVariable = "PAIRS"       // maximum number of pairs of each load
	baseVariable  = "BENCH_BASE"  // the subject to compare with, such as exec:bin/old
	outVariable   = "BENCH_OUT"   // the file for benchstat

	profileVariable = "BENCH_PROFILE" // the directory for CPU profiles of the subjects
)

// precision is the half-width of the confidence interval of the CPU ratio at which a load has
// enough pairs.
const precision = 0.05

// pairsDefault is the default of PAIRS. pairsLeast is the smallest number of pairs whose interval
// can end a load, because a few equal pairs may be chance.
const (
	pairsDefault = 8
	pairsLeast   = 4
)

// BenchmarkControllers compares the costs of our controllers with those of
// kube-controller-manager.
//
// It runs each load in pairs. A pair is one run on each subject, with a new control plane for each
// run. In every second pair, our controllers run first. A load ends when the 95 % confidence
// interval of its CPU ratio is ±5 %, or after PAIRS pairs.
func BenchmarkControllers(b *testing.B) {
	limit := number(b, pairsVariable, pairsDefault)
	base := subject.Upstream
	if value := os.Getenv(baseVariable); value != "" {
		var err error
		if base, err = subject.ParseTarget(value); err != nil {
			b.Fatalf("%s: %v", baseVariable, err)
		}
	}
	for b.Loop() {
		var results []result
		for _, l := range loads(b) {
			r := result{load: l}
			for len(r.pairs) < limit && (len(r.pairs) < pairsLeast || r.interval() > precision) {
				r.pairs = append(r.pairs, measurePair(b, l, base, len(r.pairs)%2 == 1))
				b.Logf("%s: pair %d: CPU ratio %.3f ±%.1f %%", l.name(), len(r.pairs), r.ratio(), 100*r.interval())
			}
			results = append(results, r)
		}
		fmt.Println(table(results))
		for _, r := range results {
			b.ReportMetric(r.ratio(), r.load.name()+"-CPU-ratio")
		}
		write(b, results)
	}
}

// number returns the value of an environment variable, which must be a positive number. If it is
// not set, number returns the parameter none.
func number(b *testing.B, variable string, none int) int {
	b.Helper()
	value := os.Getenv(variable)
	if value == "" {
		return none
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		b.Fatalf("%s=%s: expected a number of at least 1", variable, value)
	}
	return n
}

// loads returns the loads that the environment variables select.
func loads(b *testing.B) (all []load) {
	b.Helper()
	for _, name := range list(loadsVariable, "ladder,idle,services,rollouts") {
		switch name {
		case "ladder":
			for _, text := range list(podsVariable, "100,1000,5000") {
				pods, err := strconv.Atoi(text)
				if err != nil || pods < 4 {
					b.Fatalf("%s: found %q; expected numbers of at least 4", podsVariable, text)
				}
				all = append(all, ladder(pods))
			}
		case "idle":
			all = append(all, idle(number(b, "BENCH_IDLE", 1000)))
		case "services":
			all = append(all, services(number(b, "BENCH_SERVICES", 100), 10))
		case "rollouts":
			all = append(all, rollouts(number(b, "BENCH_ROLLOUTS", 100), 4))
		default:
			b.Fatalf("%s: found %q; expected ladder, idle, services or rollouts", loadsVariable, name)
		}
	}
	return all
}

// list returns the elements of an environment variable, which are separated by commas.
func list(variable, none string) []string {
	value := os.Getenv(variable)
	if value == "" {
		value = none
	}
	return strings.Split(value, ",")
}

// pair contains the costs of the phases of two runs of one load.
type pair struct{ ours, base []cost }

// measurePair runs a load on both subjects, one after the other.
func measurePair(b *testing.B, l load, base subject.Target, oursFirst bool) (p pair) {
	b.Helper()
	if oursFirst {
		p.ours = measure(b, l, subject.Ours)
	}
	p.base = measure(b, l, base)
	if !oursFirst {
		p.ours = measure(b, l, subject.Ours)
	}
	return p
}

// repository is the directory of the repository, relative to this package.
var repository = filepath.Join("..", "..")

// write writes all values to a file for benchstat, one line for each phase, pair and subject.
func write(b *testing.B, results []result) {
	b.Helper()
	path := os.Getenv(outVariable)
	if path == "" {
		path = filepath.Join(repository, "out", "bench", "controllers.txt")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(benchstat(results)), 0o644); err != nil {
		b.Fatal(err)
	}
	b.Logf("wrote %s, for benchstat -col /subject", path)
}
