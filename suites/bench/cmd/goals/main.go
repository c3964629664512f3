// Command goals prints one table that compares the results of benchmarks with the goals of gauntlet. It
// reads files in the format of Go benchmarks, such as the output of make bench:
//
//	goals [-base FILE] FILE...
//
// With an earlier file as -base, it also lists each value that became worse by more than a tenth. A
// benchmark that is not in the files is "not measured". The exit status is 0 also if goals are missed,
// because other work on the machine changes the values; it is 2 if a file cannot be read.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchfmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func main() {
	base := flag.String("base", "", "an earlier `file`; list what became worse since then")
	flag.Parse()
	if err := run(os.Stdout, flag.Args(), *base); err != nil {
		fmt.Fprintln(os.Stderr, "goals:", err)
		os.Exit(2)
	}
}

// run reads the files and prints the table. The argument base is an earlier file, or empty.
func run(w io.Writer, paths []string, base string) error {
	if len(paths) == 0 {
		return fmt.Errorf("found no file; expected the output of benchmarks, such as out/bench/benchmarks.txt")
	}
	now, err := read(paths...)
	if err != nil {
		return err
	}
	if err := printGoals(w, now); err != nil {
		return err
	}
	if base == "" {
		return nil
	}
	earlier, err := read(base)
	if err != nil {
		return err
	}
	return printWorse(w, earlier, now)
}

// goal is a bound for the values that a benchmark reports.
type goal struct {
	benchmark string // the name without the prefix Benchmark
	unit      string // a glob
	bound     float64
	least     bool // whether the bound is a minimum; otherwise it is a maximum
	meaning   string
}

// goals are the goals for the harness. The goals for our controllers are ratios, which
// BenchmarkControllers prints in a table of its own; here is the CPU time of each load.
var goals = []goal{
	{"History", "s/million", 2, false, "seconds to check 1,000,000 records"},
	{"History", "cost-ratio", 1.2, false, "CPU time per record, 1,000,000 to 10,000 records"},
	{"History", "memory-ratio", 1.2, false, "heap of the checks, 1,000,000 to 100,000 records"},
	{"Proxy", "proxied/direct", 1.05, false, "time until 1,000 pods are ready, with and without the fault proxy"},
	{"Scenarios", "scenarios/min/core", 20, true, "runs in real time per minute and core"},
	{"Controllers", "*-CPU-ratio", 0.8, false, "CPU time of our controllers to that of kube-controller-manager"},
}

// met reports whether a value meets the goal.
func (g goal) met(value float64) bool {
	if g.least {
		return value >= g.bound
	}
	return value <= g.bound
}

func (g goal) boundText() string {
	if g.least {
		return fmt.Sprintf("≥ %v", g.bound)
	}
	return fmt.Sprintf("≤ %v", g.bound)
}

// measurement identifies a value in the results. The name of the benchmark has no prefix Benchmark and no
// number of CPUs.
type measurement struct{ benchmark, unit string }

// results has the mean of the values of each measurement.
type results map[measurement]float64

// perIteration are the units that every benchmark has. With one iteration, they vary too much to compare.
var perIteration = []string{"ns/op", "B/op", "allocs/op"}

// read returns the results in files.
func read(paths ...string) (results, error) {
	sums, counts := results{}, map[measurement]float64{}
	files := benchfmt.Files{Paths: paths}
	for files.Scan() {
		switch r := files.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, fmt.Errorf("%w; expected a line in the format of Go benchmarks", r)
		case *benchfmt.Result:
			for _, value := range r.Values {
				if r.Iters == 1 && slices.Contains(perIteration, cmp.Or(value.OrigUnit, value.Unit)) {
					continue
				}
				m := measurement{nameOf(r.Name), cmp.Or(value.OrigUnit, value.Unit)}
				sums[m] += cmp.Or(value.OrigValue, value.Value)
				counts[m]++
			}
		}
	}
	if err := files.Err(); err != nil {
		return nil, err
	}
	if len(sums) == 0 {
		return nil, fmt.Errorf("found no result in %s; expected lines that begin with Benchmark", strings.Join(paths, ", "))
	}
	for m, n := range counts {
		sums[m] /= n
	}
	return sums, nil
}

// nameOf returns the name of a benchmark without the number of CPUs, such as "Create/proxy".
func nameOf(name benchfmt.Name) string {
	base, parts := name.Parts()
	text := string(base)
	for _, part := range parts {
		if part[0] != '-' {
			text += string(part)
		}
	}
	return text
}

// printGoals prints a line for each goal, and how many are met.
func printGoals(w io.Writer, now results) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "benchmark\tunit\tvalue\tgoal\t\tmeaning")
	met, missed, none := 0, 0, 0
	for _, g := range goals {
		units := now.units(g)
		if len(units) == 0 {
			none++
			fmt.Fprintf(table, "%s\t%s\t\t%s\tnot measured\t%s\n", g.benchmark, g.unit, g.boundText(), g.meaning)
		}
		for _, unit := range units {
			value, verdict := now[measurement{g.benchmark, unit}], "met"
			if g.met(value) {
				met++
			} else {
				missed, verdict = missed+1, "missed"
			}
			fmt.Fprintf(table, "%s\t%s\t%.4g\t%s\t%s\t%s\n", g.benchmark, unit, value, g.boundText(), verdict, g.meaning)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d goals met, %d missed, %d not measured\n", met, missed, none)
	return err
}

// units returns the units of a goal that the results have, sorted.
func (r results) units(g goal) (units []string) {
	for m := range r {
		if history.MatchGlob(g.unit, m.unit) && m.benchmark == g.benchmark {
			units = append(units, m.unit)
		}
	}
	slices.Sort(units)
	return units
}

// worseBy is the smallest relative change that printWorse lists. One measurement of a benchmark varies by
// some percent.
const worseBy = 0.1

// higherIsBetter are the units whose values should grow.
var higherIsBetter = []string{"scenarios/min", "scenarios/min/core", "MB/s", "library/parse"}

// printWorse prints a line for each value that became worse by more than worseBy since the earlier
// results.
func printWorse(w io.Writer, earlier, now results) error {
	var worse []string
	compared := 0
	for m, before := range earlier {
		after, ok := now[m]
		if !ok || before == 0 || after == 0 {
			continue
		}
		compared++
		change := after / before
		if slices.Contains(higherIsBetter, m.unit) {
			change = before / after
		}
		if change > 1+worseBy {
			worse = append(worse, fmt.Sprintf("worse by %.0f %%: %s %s: %.4g, earlier %.4g\n", 100*(change-1), m.benchmark, m.unit, after, before))
		}
	}
	slices.Sort(worse)
	_, err := fmt.Fprintf(w, "%s%d of %d values that both results have are worse by more than %.0f %%\n", strings.Join(worse, ""), len(worse), compared, 100*worseBy)
	return err
}
