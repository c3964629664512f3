package compare_test

import (
	"encoding/json"
	"errors"
	"iter"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/compare"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func records(all ...history.Record) iter.Seq2[*history.Record, error] {
	return func(yield func(*history.Record, error) bool) {
		for i := range all {
			if !yield(&all[i], nil) {
				return
			}
		}
	}
}

func request(verb, resource, subresource string) history.Record {
	return history.Record{Request: &history.Request{Verb: verb, Resource: resource, Subresource: subresource}}
}

func long(id uint64, verb, resource string, bytes int) history.Record {
	return history.Record{Request: &history.Request{ID: id, Verb: verb, Resource: resource, Bytes: bytes}}
}

func answered(id uint64, bytes int) history.Record {
	return history.Record{Response: &history.Response{ID: id, Bytes: bytes}}
}

func delivered(id uint64, bytes int) history.Record {
	return history.Record{Delivery: &history.Delivery{ID: id, Bytes: bytes}}
}

func service(at time.Duration) history.Record {
	return history.Record{At: at, Commit: &history.Commit{Type: history.Added, Object: history.Object{
		Ref: history.Ref{Resource: "services", Name: "web", UID: "u"}, Body: json.RawMessage(`{"spec":{"selector":{"app":"web"}}}`),
	}}}
}

func step(at time.Duration, index int, event history.StepEvent) history.Record {
	return history.Record{At: at, Step: &history.Step{Index: index, Event: event, Detail: "step"}}
}

func stepDifference(cpu time.Duration, memory int64) history.Record {
	return history.Record{Process: &history.Process{
		Name: "subject-0", Event: history.ProcessStopped, Usage: &history.Usage{CPU: cpu, PeakMemory: memory},
	}}
}

func TestCostOf(t *testing.T) {
	got, err := compare.CostOf(records(
		request("get", "leases.coordination.k8s.io", ""),
		request("get", "", ""), // /healthz
		step(1*time.Second, 0, history.StepBegun),
		request("create", "pods", ""),
		request("create", "pods", ""),
		request("update", "replicasets.apps", "status"),
		long(1, "create", "events", 100), answered(1, 110),
		long(2, "watch", "pods", 0), answered(2, 0), delivered(2, 200), delivered(2, 30),
		long(3, "update", "leases.coordination.k8s.io", 1000), answered(3, 1000),
		step(3*time.Second, 0, history.StepDone),
		service(3*time.Second), // the Service has no Endpoints
		step(4*time.Second, 1, history.StepBegun),
		step(5*time.Second, 1, history.StepFailed),
		history.Record{At: 5 * time.Second, Phase: &history.Phase{Name: history.PhaseEnd}},
		stepDifference(2*time.Second, 100), // the subject was killed during the run
		stepDifference(time.Second, 300),   // and restarted
	))
	if err != nil {
		t.Fatal(err)
	}
	want := compare.Cost{
		Steps: []compare.Step{{Index: 0, Name: "step", Duration: 2 * time.Second}},
		Sent:  100, Received: 340, EndpointsWrong: 2 * time.Second,
		Requests: map[compare.Call]int{
			{Verb: "create", Resource: "events"}:                  1,
			{Verb: "watch", Resource: "pods"}:                     1,
			{Verb: "create", Resource: "pods"}:                    2,
			{Verb: "update", Resource: "replicasets.apps/status"}: 1,
		},
		CPU:        3 * time.Second,
		PeakMemory: 300,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cost (-want +got):\n%s", diff)
	}
}

func TestCostOfBrokenHistory(t *testing.T) {
	broken := func(yield func(*history.Record, error) bool) { yield(nil, history.ErrTruncated) }
	if _, err := compare.CostOf(broken); !errors.Is(err, history.ErrTruncated) {
		t.Errorf("error %v, want %v", err, history.ErrTruncated)
	}
}

// pairsOf returns pairs of runs that differ only in the CPU time. The arguments are seconds.
func pairsOf(subject, base []float64) []compare.Pair {
	cost := func(seconds float64) compare.Cost {
		return compare.Cost{CPU: time.Duration(seconds * float64(time.Second)), PeakMemory: 1 << 20}
	}
	var pairs []compare.Pair
	for i := range subject {
		pairs = append(pairs, compare.Pair{Subject: cost(subject[i]), Base: cost(base[i])})
	}
	return pairs
}

func TestRatio(t *testing.T) {
	for _, test := range []struct {
		name          string
		subject, base []float64
		want          string
	}{
		{
			"less", []float64{1, 1.1, 0.9, 1, 1}, []float64{2, 2.1, 2, 2, 1.9},
			"CPU time: median 1 s, base 2 s; ratio 0.50 (pairs 0.45 to 0.53); subject: less (p=0.008, 5 pairs)",
		},
		{
			"more", []float64{4, 4.1, 4.2, 4.3}, []float64{2, 2, 2, 2},
			"CPU time: median 4.15 s, base 2 s; ratio 2.07 (pairs 2.00 to 2.15); subject: more (p=0.029, 4 pairs)",
		},
		{
			"noise", []float64{1, 3, 2, 4, 2}, []float64{2, 2, 3, 1, 3},
			"CPU time: median 2 s, base 2 s; ratio 0.67 (pairs 0.50 to 4.00); subject: same (p=0.992, 5 pairs)",
		},
		{
			"too few to say", []float64{1, 1, 1}, []float64{2, 2, 2},
			"CPU time: median 1 s, base 2 s; ratio 0.50 (pairs 0.50 to 0.50); subject: same (p=0.100, 3 pairs)",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			ratios := compare.Ratios(pairsOf(test.subject, test.base))
			if got := ratios[0].String(); got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestRatiosOfCommonMetrics checks that Ratios omits a metric that a run lacks or that is 0 in
// every run. Requests that only one of the two subjects sent have a ratio.
func TestRatiosOfCommonMetrics(t *testing.T) {
	create := compare.Call{Verb: "create", Resource: "pods"}
	whole := compare.Cost{
		Steps:    []compare.Step{{Name: "up", Duration: 2 * time.Second}, {Name: "down", Duration: time.Second}},
		Requests: map[compare.Call]int{create: 3},
		CPU:      time.Second, Received: 1 << 10, // no requests, no time without Endpoints, no memory
	}
	brokenOff := compare.Cost{Steps: whole.Steps[:1]}
	shorter := whole
	shorter.Steps = brokenOff.Steps
	ratios := compare.Ratios([]compare.Pair{{Subject: whole, Base: whole}, {Subject: shorter, Base: brokenOff}})

	var names []string
	for _, r := range ratios {
		names = append(names, r.Metric)
	}
	if diff := cmp.Diff([]string{"up", "CPU time", "bytes received", "create pods"}, names); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if last := ratios[len(ratios)-1]; !math.IsInf(last.Median(), 1) {
		t.Errorf("ratio %v, want the median of 1 and infinity to be infinite", last.Median())
	}
	unlike := compare.Pair{Subject: whole, Base: brokenOff}
	for _, r := range compare.Ratios([]compare.Pair{{Subject: whole, Base: whole}, unlike}) {
		if len(r.Subject) != 1 || len(r.Base) != 1 {
			t.Errorf("%s; want it of the pair alone of which both runs did all steps", r)
		}
	}
	if compare.Ratios([]compare.Pair{unlike}) != nil {
		t.Error("ratios of a complete and an aborted run")
	}
	if compare.Ratios(nil) != nil {
		t.Error("ratios of no pairs")
	}
}
