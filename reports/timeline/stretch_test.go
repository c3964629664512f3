package timeline

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// longTale is one of 40 records: a step, a fault, and a ReplicaSet of which each version
// asks for one replica more. It is scaled from record 5 to 36.
func longTale() *tale {
	x := newTale()
	x.add(history.Record{Phase: &history.Phase{Name: history.PhaseChaos}})
	x.add(history.Record{Step: &history.Step{Event: history.StepBegun, Detail: "scale"}})
	x.add(history.Record{Fault: &history.Fault{Name: "api-errors", Event: history.FaultInjected}})
	for version := 1; version <= 8; version++ {
		web := object(replicaSets, "web", version, nil, `{"spec":{"replicas":`+string(rune('0'+version))+`}}`)
		x.truth(history.Modified, web)
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

// TestStretch: of a history that is longer than what is drawn of one, the first violation
// is drawn with what is around it; of the rest, what tells a reader where he is.
func TestStretch(t *testing.T) {
	always := []int64{3, 4, 37, 39}
	for _, test := range []struct {
		name   string
		most   int64
		seen   [][]int64 // the records of each piece of evidence
		want   []int64   // the marks besides those, by Seq
		first  float64   // what the ReplicaSet was drawn to ask for first
		lines  int       // points of that line
		redone bool      // the draft does not serve
	}{
		{"all is drawn of what is not long", 40, [][]int64{{31}}, drawn(5, 36), 1, 8, false},
		{"nothing was violated", 8, nil, drawn(5, 8), 1, 1, false},
		{"the violation is at the beginning", 8, [][]int64{{6}, {33}}, drawn(5, 8), 1, 1, false},
		{"it is far behind", 8, [][]int64{{33}, {5, 26}}, drawn(21, 28), 4, 3, true},
		{"it is at the end", 8, [][]int64{{36}}, drawn(31, 36), 7, 2, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := longTale()
			var results []check.Result
			for _, records := range test.seen {
				results = append(results, check.Result{Check: "c", Evidence: []check.Evidence{{Records: records}}})
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
				t.Errorf("drawn to ask for %v; want %d values from %v", desired.Values, test.lines, test.first)
			}
			fault := got.Bands[slices.IndexFunc(got.Bands, func(b Band) bool { return b.Kind == Fault })]
			if fault.From != 3*time.Second || fault.To != 38*time.Second || len(got.Phases) != 2 || got.End != 39*time.Second {
				t.Errorf("fault %+v, phases %+v, end %v; want the whole run's", fault, got.Phases, got.End)
			}
			if long := test.most < 40; long != strings.Contains(got.Cut, "of 40 records") {
				t.Errorf("said to leave out: %q", got.Cut)
			}
			draft := newDraft(x.all(), test.most)
			if draft.Serves(results) == test.redone {
				t.Errorf("the draft serves: %t", !test.redone)
			}
		})
	}
}

// drawn are the Seqs of the marks of some of longTale's records, answers being their
// requests' ends.
func drawn(from, to int64) []int64 {
	var all []int64
	for seq := from; seq <= to; seq++ {
		if (seq-5)%4 != 2 {
			all = append(all, seq)
		}
	}
	return all
}

// TestAnswersBehindTheStretch: a request is drawn as long as it took.
func TestAnswersBehindTheStretch(t *testing.T) {
	x := newTale()
	x.request(1, "get", pods, "web", nil)
	x.request(2, "get", pods, "db", nil)
	x.answer(1, 404)
	x.answer(2, 200)
	got, err := build(x.all(), nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Marks) != 1 || got.Marks[0].Answer != 4 || got.Marks[0].Kind != Refused {
		t.Errorf("marks %+v; want the first request, with its answer", got.Marks)
	}
}
