package timeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// longHistory returns a history of 40 records with a step, a fault and a ReplicaSet. From
// record 5 to 36, each version of the ReplicaSet has one replica more.
func longHistory() *historyBuilder {
	x := newHistory()
	x.add(history.Record{Phase: &history.Phase{Name: history.PhaseChaos}})
	x.add(history.Record{Step: &history.Step{Event: history.StepBegun, Detail: "scale"}})
	x.add(history.Record{Fault: &history.Fault{Name: "api-errors", Event: history.FaultInjected}})
	for version := 1; version <= 8; version++ {
		web := object(replicaSets, "web", version, nil, `{"spec":{"replicas":`+string(rune('0'+version))+`}}`)
		x.commit(history.Modified, web)
		x.request(uint64(version), "update", replicaSets, "web", &web)
		x.answer(uint64(version), 200)
		x.add(history.Record{Fault: &history.Fault{Name: "api-errors", Event: history.FaultFired}})
	}
	x.add(history.Record{Process: &history.Process{Name: "s", Event: history.ProcessStarted}})
	x.add(history.Record{Step: &history.Step{Event: history.StepDone}})
	x.add(history.Record{Fault: &history.Fault{Name: "api-errors", Event: history.FaultHealed}})
	x.add(history.Record{Phase: &history.Phase{Name: history.PhaseEnd}})
	return x
}

// TestDisplayedWindow checks that the timeline of a long history shows the records around the
// first violation in full. Of the other records, the timeline must show only the main events.
func TestDisplayedWindow(t *testing.T) {
	always := []int64{3, 4, 37, 39}
	for _, test := range []struct {
		name   string
		most   int64
		seen   [][]int64 // the records of each piece of evidence
		want   []int64   // the marks besides the marks of the evidence, by Seq
		first  float64   // the first value of the ReplicaSet's line
		lines  int       // the number of values of that line
		redone bool      // the draft does not cover the results
	}{
		{"a short history is complete", 40, [][]int64{{31}}, sequence(5, 36), 1, 8, false},
		{"no violation", 8, nil, sequence(5, 8), 1, 1, false},
		{"the violation is at the start", 8, [][]int64{{6}}, sequence(5, 8), 1, 1, false},
		{"the violation is at the end of the first records", 8, [][]int64{{8}}, sequence(5, 10), 1, 2, true},
		{"a later record is cited", 8, [][]int64{{6}, {33}}, append(sequence(5, 8), 33), 1, 1, true},
		{"the violation is late", 8, [][]int64{{26}}, sequence(21, 28), 4, 3, true},
		{"the violation is late, and other records are cited", 8, [][]int64{{33}, {5, 26}}, slices.Concat([]int64{5}, sequence(21, 28), []int64{33}), 4, 3, true},
		{"the violation is at the end", 8, [][]int64{{36}}, sequence(31, 36), 7, 2, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := longHistory()
			var results []check.Result
			for _, records := range test.seen {
				results = append(results, check.Result{Check: "c", Verdict: check.Fail, Evidence: []check.Evidence{{Records: records}}})
			}
			got, err := build(x.all(), results, test.most)
			if err != nil {
				t.Fatal(err)
			}
			var seqs []int64
			for _, m := range got.Marks {
				if !slices.Contains(always, m.Seq) {
					seqs = append(seqs, m.Seq)
				}
			}
			if diff := cmp.Diff(test.want, seqs); diff != "" {
				t.Errorf("marks (-want +got):\n%s", diff)
			}
			if len(got.Marks) != len(seqs)+len(always) {
				t.Errorf("%d marks; want %d, %v among them", len(got.Marks), len(seqs)+len(always), always)
			}
			desired := got.Charts[0].Lines[0]
			if desired.Values[0] != test.first || len(desired.Values) != test.lines {
				t.Errorf("the line has the values %v; want %d values from %v", desired.Values, test.lines, test.first)
			}
			fault := got.Bands[slices.IndexFunc(got.Bands, func(b Band) bool { return b.Kind == Fault })]
			if fault.From != 3*time.Second || fault.To != 38*time.Second || len(got.Phases) != 2 || got.End != 39*time.Second {
				t.Errorf("fault %+v, phases %+v, end %v; want the whole run's", fault, got.Phases, got.End)
			}
			if long := test.most < 40; long != strings.Contains(got.Omitted, "40 records") {
				t.Errorf("omitted: %q", got.Omitted)
			}
			draft := newDraft(x.all(), test.most)
			if draft.Covers(results) == test.redone {
				t.Errorf("the draft covers the results: %t", !test.redone)
			}
		})
	}
}

// sequence returns those numbers (Seq) in a range of records of longHistory whose records have
// marks. A response has no mark of its own.
func sequence(from, to int64) []int64 {
	var all []int64
	for seq := from; seq <= to; seq++ {
		if (seq-5)%4 != 2 {
			all = append(all, seq)
		}
	}
	return all
}

// TestOutsideTheWindow checks what records outside the displayed window contribute to the timeline.
// These are the main events of the run, and the state that records in the window need.
func TestOutsideTheWindow(t *testing.T) {
	web := &history.Owner{Kind: "ReplicaSet", Name: "web", UID: uid(replicaSets, "web")}
	set := object(replicaSets, "web", 2, &history.Owner{Kind: "Deployment", Name: "front", UID: "d"}, `{"spec":{"replicas":1}}`)
	pod := object(pods, "web-1", 4, web, readyPod)
	for _, test := range []struct {
		name  string
		build func(x *historyBuilder) (violations []int64)
		most  int64
		want  []string
		says  string // in Timeline.Omitted
	}{
		{"a request lasts until its response", func(x *historyBuilder) []int64 {
			x.request(1, "get", pods, "web", nil)
			x.request(2, "get", pods, "db", nil)
			x.answer(1, 404)
			x.answer(2, 200)
			return nil
		}, 2, []string{"s: reads and watches | refused get pods web | 404 | 1-3"}, "5 records; this timeline shows records 1 to 2 (0.0 s to 1.0 s)"},
		{"a watch and a commit are before the window", func(x *historyBuilder) []int64 {
			x.request(1, "watch", pods, "", nil)
			x.answer(1, 200)
			x.commit(history.Modified, pod)
			x.request(2, "get", pods, "db", nil)
			x.answer(2, 200)
			return []int64{x.delivery(1, pod)}
		}, 4, []string{"s: reads and watches | read get pods db | 200 | 4-5", "pods of replicasets.apps web | delivery MODIFIED pods web-1 | to s | 3-6"}, "records 5 to 7 (3.0 s to 6.0 s)"},
		{"a pod is deleted by name", func(x *historyBuilder) []int64 {
			x.commit(history.Added, set)
			x.commit(history.Added, pod)
			x.request(1, "get", pods, "db", nil)
			x.answer(1, 200)
			x.request(2, "delete", pods, "web-1", nil)
			return []int64{x.answer(2, 200)}
		}, 4, []string{"pods of replicasets.apps web | write delete pods web-1 | 200 | 5-6"}, "records 5 to 7"},
		{"cited records are after the window", func(x *historyBuilder) []int64 {
			x.request(1, "watch", pods, "", nil)
			x.answer(1, 200)
			x.commit(history.Added, set)
			at := x.commit(history.Added, pod)
			cited := x.delivery(1, pod)
			x.commit(history.Modified, object(pods, "web-1", 5, web, readyPod))
			x.request(2, "delete", pods, "web-1", nil)
			return []int64{2, cited, at, x.request(3, "delete", pods, "web-1", nil)}
		}, 2, []string{
			"s: reads and watches | read watch pods  | 200 | 1-2", "pods of replicasets.apps web | commit ADDED pods web-1 | Running, ready | 4-4",
			"pods of replicasets.apps web | delivery MODIFIED pods web-1 | to s | 4-5", "pods of replicasets.apps web | write delete pods web-1 | no response recorded | 8-8",
		}, "records 1 to 2"},
		{"a gap and a failed fault", func(x *historyBuilder) []int64 {
			x.commit(history.Added, set)
			x.add(history.Record{Gap: &history.Gap{Source: "commits", Detail: "cut"}})
			x.add(history.Record{Fault: &history.Fault{Name: "crash", Event: history.FaultFailed, Detail: "no"}})
			x.add(history.Record{Fault: &history.Fault{Name: "crash", Event: history.FaultFired}})
			return nil
		}, 1, []string{"gaps | gap gap commits | cut | 2-2", "fault 0: crash | fault failed  | no | 3-3"}, "5 records"},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := newHistory()
			results := []check.Result{{Verdict: check.Fail}}
			for _, at := range test.build(x) {
				results[0].Evidence = append(results[0].Evidence, check.Evidence{Records: []int64{at}})
			}
			got, err := build(x.all(), results, test.most)
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, m := range got.Marks {
				all = append(all, markText(got, m))
			}
			if diff := cmp.Diff(test.want, all); diff != "" {
				t.Errorf("marks (-want +got):\n%s", diff)
			}
			if !strings.Contains(got.Omitted, test.says) {
				t.Errorf("omitted: %q; want %q in it", got.Omitted, test.says)
			}
			for _, c := range got.Charts {
				for _, l := range c.Lines {
					if c.Unit == "" && slices.Max(l.At) > got.Displayed.To {
						t.Errorf("%s, %s: counted at %v, outside the window %+v", c.Title, l.Name, l.At, got.Displayed)
					}
				}
			}
		})
	}
}

// TestLongAndTruncated checks the timeline of a history that is long and truncated. It must have a
// note about each of these facts.
func TestLongAndTruncated(t *testing.T) {
	got, err := build(func(yield func(*history.Record, error) bool) {
		longHistory().all()(yield)
		yield(nil, history.ErrTruncated)
	}, nil, 8)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"truncated", "40 records"} {
		if !strings.Contains(got.Omitted, want) {
			t.Errorf("omitted: %q; want %q in it", got.Omitted, want)
		}
	}
}

// TestDeletedBeforeTheWindow checks that objects that were deleted before the window have
// neither track nor chart.
func TestDeletedBeforeTheWindow(t *testing.T) {
	x := newHistory()
	for version := range 20 {
		name := fmt.Sprintf("web-%d", version)
		x.commit(history.Added, object(replicaSets, name, version, nil, `{"spec":{"replicas":1}}`))
		x.commit(history.Deleted, object(replicaSets, name, version, nil, `{"spec":{"replicas":1}}`))
	}
	x.commit(history.Added, object(replicaSets, "db", 90, nil, `{"spec":{"replicas":3}}`))
	x.request(1, "get", pods, "web", nil)
	at := x.answer(1, 404)
	got, err := build(x.all(), []check.Result{{Verdict: check.Fail, Evidence: []check.Evidence{{Records: []int64{at}}}}}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Tracks) != 1 || len(got.Charts) != 2 || got.Charts[0].Title != "Pods of replicasets.apps db" {
		t.Errorf("tracks %v, charts %+v; want one track, the chart of db, and the requests'", got.Tracks, got.Charts)
	}
}
