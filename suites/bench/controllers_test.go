// Package bench measures the time, CPU and memory that our controllers and kube-controller-manager
// need for one scenario. The values depend on the machine, so only the ratios between the two are
// meaningful. The benchmark has no limits: it only prints the ratios.
package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/compare"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// loadScenario is the scenario for the measurement. It has no faults. Its client rate limits are
// so high that they have no effect.
const loadScenario = `
name: load
description: scale thousands of pods up, roll them out, publish their Endpoints, and scale them down
seed: 1
cluster: {nodes: 50}
subject: {qps: 10000, burst: 20000}
workload:
  - create: {kind: Deployment, name: web, replicas: 0}
    await: {until: scaled}
  - scale: {kind: Deployment, name: web, replicas: 1000}
    await: {until: available, within: 10m}
  - rollout: {name: web, version: v2}
    await: {until: complete, within: 10m}
  - create: {kind: Service, name: web, selector: {app: web}}
    await: {until: served, within: 10m}
  - delete: {kind: Service, name: web}
    await: {until: gone}
  - scale: {kind: Deployment, name: web, replicas: 0}
    await: {until: scaled, within: 10m}
  - scale: {kind: Deployment, name: web, replicas: 5000}
    await: {until: available, within: 10m}
  - scale: {kind: Deployment, name: web, replicas: 0}
    await: {until: scaled, within: 10m}
settle: {within: 2m, quiet: 1s}
`

// measuredSteps maps the index of a workload step to its name in the output. The benchmark
// measures only these steps.
var measuredSteps = map[int]string{
	1: "scale up to 1000 pods",
	2: "rolling update of 1000 pods",
	3: "Endpoints of 1000 pods",
	5: "scale down from 1000 pods",
	6: "scale up to 5000 pods",
	7: "scale down from 5000 pods",
}

// BenchmarkControllers runs loadScenario on our controllers and on kube-controller-manager. It
// prints the ratios of their costs.
//
// It makes PAIRS pairs of runs without the fault proxy, by default 5. In every second pair, our
// controllers run first. One more pair runs with the fault proxy, which counts requests.
func BenchmarkControllers(b *testing.B) {
	pairs := 5
	if value := os.Getenv("PAIRS"); value != "" {
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			b.Fatalf("PAIRS=%s: expected a number of at least 1", value)
		}
		pairs = n
	}
	for b.Loop() {
		var measured []compare.Pair
		for i := range pairs {
			measured = append(measured, measurePair(b, i%2 == 1, true))
			b.Logf("pair %d of %d is done", i+1, pairs)
		}
		ratios := compare.Ratios(measured)
		printRatios(b, ratios)
		for _, r := range ratios {
			b.ReportMetric(r.Median(), strings.ReplaceAll(r.Metric, " ", "-")+"-ratio")
		}
		printRatios(b, compare.Ratios([]compare.Pair{measurePair(b, false, false)}))
	}
}

// measurePair runs loadScenario on our controllers and on kube-controller-manager, and returns the
// costs. If direct is true, they connect to the API server without the fault proxy.
func measurePair(b *testing.B, oursFirst, direct bool) (pair compare.Pair) {
	b.Helper()
	if oursFirst {
		pair.Subject = measureRun(b, subject.Ours, direct)
	}
	pair.Base = measureRun(b, subject.Upstream, direct)
	if !oursFirst {
		pair.Subject = measureRun(b, subject.Ours, direct)
	}
	return pair
}

// measureRun runs loadScenario on one program under test, and returns the costs of the measured
// steps. It removes the run directory afterwards.
func measureRun(b *testing.B, target subject.Target, direct bool) compare.Cost {
	b.Helper()
	s, err := scenario.Parse("load", []byte(loadScenario))
	if err != nil {
		b.Fatal(err)
	}
	root := filepath.Join("..", "..")
	result, err := run.Run(b.Context(), run.Options{
		Scenario: s,
		Target:   target,
		Provider: providers.Default(),
		Out:      b.TempDir(),
		Ours:     filepath.Join(root, "bin", "workload-controller-manager"),
		Progress: func(message string) { b.Logf("%s: %s", target, message) },
		Direct:   direct,
		Clock:    clock.RealClock{},
		Revision: "bench",
	})
	if err != nil {
		b.Fatal(err)
	}
	c, err := compare.CostOf(history.ReadFile(filepath.Join(result.Directory, "history.jsonl")))
	if err != nil {
		b.Fatal(err)
	}
	if err := os.RemoveAll(result.Directory); err != nil {
		b.Fatal(err)
	}
	return keepMeasuredSteps(b, c)
}

// keepMeasuredSteps returns c with only the steps in measuredSteps, and sets their names.
func keepMeasuredSteps(b *testing.B, c compare.Cost) compare.Cost {
	b.Helper()
	var kept []compare.Step
	for _, step := range c.Steps {
		if name, ok := measuredSteps[step.Index]; ok {
			step.Name = name
			kept = append(kept, step)
		}
	}
	if len(kept) != len(measuredSteps) {
		b.Fatalf("found %d of %d measured steps", len(kept), len(measuredSteps))
	}
	c.Steps = kept
	return c
}

// printRatios prints the ratios of the costs as a table.
func printRatios(b *testing.B, ratios []compare.Ratio) {
	b.Helper()
	var table strings.Builder
	if err := reports.Ratios(&table, "ours", "upstream", ratios); err != nil {
		b.Fatal(err)
	}
	fmt.Println(table.String())
}
