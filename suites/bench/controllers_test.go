// Package bench measures our controllers against upstream's, side by side on
// the embedded control plane. Times, CPU and memory depend on the machine, so
// that only ratios of runs made in turn mean anything; nothing here passes or
// fails.
package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/compare"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// loadScenario is what both subjects are put through. Nothing goes wrong, and their own
// rate limits are out of the way.
const loadScenario = `
name: load
description: thousands of pods go up, are rolled over, are served and go down again
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

// measuredSteps names the steps of load that are measured, by their position.
var measuredSteps = map[int]string{
	1: "scale up to 1000 pods",
	2: "rolling update of 1000 pods",
	3: "Endpoints of 1000 pods",
	5: "scale down from 1000 pods",
	6: "scale up to 5000 pods",
	7: "scale down from 5000 pods",
}

// BenchmarkControllers prints what load costs our controllers and upstream's:
// PAIRS pairs of runs (5 unless set) whose subjects reach the API server
// directly, alternating in who goes first, and a pair through the fault proxy,
// which counts the requests.
func BenchmarkControllers(b *testing.B) {
	pairs := 5
	if asked := os.Getenv("PAIRS"); asked != "" {
		n, err := strconv.Atoi(asked)
		if err != nil || n < 1 {
			b.Fatalf("PAIRS=%s: expected a number of pairs, from 1", asked)
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

// measurePair makes a run on either subject, one after the other.
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

// measureRun makes a run and measures it. The run directory goes.
func measureRun(b *testing.B, target subject.Target, direct bool) compare.Cost {
	b.Helper()
	asked, err := scenario.Parse("load", []byte(loadScenario))
	if err != nil {
		b.Fatal(err)
	}
	root := filepath.Join("..", "..")
	judged, err := run.Run(b.Context(), run.Options{
		Scenario: asked,
		Target:   target,
		Provider: "embedded",
		Out:      b.TempDir(),
		Ours:     filepath.Join(root, "bin", "workload-controller-manager"),
		Progress: func(message string) { b.Logf("%s: %s", target, message) },
		Direct:   direct,
		Clock:    clock.RealClock{},
		Revision: "bench",
		Versions: embedded.Versions(""),
	})
	if err != nil {
		b.Fatal(err)
	}
	c, err := compare.CostOf(history.ReadFile(filepath.Join(judged.Directory, "history.jsonl")))
	if err != nil {
		b.Fatal(err)
	}
	if err := os.RemoveAll(judged.Directory); err != nil {
		b.Fatal(err)
	}
	return keepMeasuredSteps(b, c)
}

// keepMeasuredSteps keeps the steps that are measured, under their names.
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
		b.Fatalf("%d of %d measured steps were done", len(kept), len(measuredSteps))
	}
	c.Steps = kept
	return c
}

func printRatios(b *testing.B, ratios []compare.Ratio) {
	b.Helper()
	var table strings.Builder
	if err := reports.Ratios(&table, "ours", "upstream", ratios); err != nil {
		b.Fatal(err)
	}
	fmt.Println(table.String())
}
