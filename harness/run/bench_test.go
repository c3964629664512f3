package run

import (
	"slices"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// thousandPods is the scenario of BenchmarkProxy. Its last step ends when 1000 pods are ready.
const thousandPods = `
name: thousand
description: 0 to 1000 pods, nothing goes wrong
seed: 1
subject: {qps: 5000, burst: 10000}
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 0}
    await: {until: scaled}
  - scale: {kind: ReplicaSet, name: web, replicas: 1000}
    await: {until: ready}
settle: {within: 60s, quiet: 500ms}
`

// BenchmarkProxy measures the time from the scale request until 1000 pods are ready, with and
// without the fault proxy. It reports the median ratio of the two times. The goal is a ratio
// below 1.05.
func BenchmarkProxy(b *testing.B) {
	const pairs = 5
	for b.Loop() {
		var ratios, proxied, direct []float64
		for i := range pairs {
			order := []bool{false, true}
			if i%2 == 1 { // alternate the order, because the second run of a pair is faster
				slices.Reverse(order)
			}
			took := map[bool]time.Duration{}
			for _, without := range order {
				took[without] = convergence(b, without)
			}
			proxied = append(proxied, took[false].Seconds())
			direct = append(direct, took[true].Seconds())
			ratios = append(ratios, took[false].Seconds()/took[true].Seconds())
			b.Logf("pair %d: proxied %v, direct %v", i+1, took[false], took[true])
		}
		slices.Sort(ratios)
		b.ReportMetric(median(ratios), "proxied/direct")
		b.ReportMetric(ratios[0], "min-ratio")
		b.ReportMetric(ratios[len(ratios)-1], "max-ratio")
		b.ReportMetric(median(proxied), "proxied-s")
		b.ReportMetric(median(direct), "direct-s")
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// convergence runs thousandPods and returns the duration of the last step. If direct is true, the
// run has no fault proxy.
func convergence(b *testing.B, direct bool) time.Duration {
	b.Helper()
	spec, err := scenario.Parse("thousand", []byte(thousandPods))
	if err != nil {
		b.Fatal(err)
	}
	o := options(spec, subject.Ours, b.TempDir(), func(m string) { b.Log(m) })
	o.Direct = direct
	result, err := Run(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	started := map[int]time.Duration{}
	for record, err := range history.ReadFile(directory(result.Directory).history()) {
		switch {
		case err != nil:
			b.Fatal(err)
		case record.Step == nil:
		case record.Step.Event == history.StepBegun:
			started[record.Step.Index] = record.At
		case record.Step.Event == history.StepDone && record.Step.Index == len(spec.Workload)-1:
			return record.At - started[record.Step.Index]
		}
	}
	b.Fatal("the last step has no end")
	return 0
}
