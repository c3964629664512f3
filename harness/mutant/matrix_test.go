package mutant

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// texts has the scenarios of the tests in this file, by name.
var texts = Texts{"first": "a", "second": "b", "third": "c"}

// matrixOf returns a matrix of the given mutants. The argument cells has the IDs of the failed
// checks, by mutant and scenario.
func matrixOf(all []Mutant, cells map[string]map[string][]string) *Matrix {
	x := NewMatrix()
	for _, m := range all {
		for name, failed := range cells[m.ID] {
			x.setCell(m.ID, name, Cell{m.cellFingerprint(texts[name]), check.Fail, failed})
		}
	}
	return x
}

func TestFind(t *testing.T) {
	all := []Mutant{{ID: "R1", Checks: []string{"sharp"}}, {ID: "R2", UnobservableReason: "nobody can"}}
	for _, test := range []struct {
		name      string
		cells     map[string][]string
		scenarios []string
		want      Finding
		rate      string
	}{
		{"caught", map[string][]string{"first": {"other", "sharp"}}, []string{"first"}, Caught, "1 of 1 (100 %)"},
		{"another check failed", map[string][]string{"first": {"other"}}, []string{"first"}, Missed, "0 of 1 (0 %)"},
		{"no run", nil, []string{"first"}, NotMeasured, "at least 0 of 1 (0 %), 1 not measured"},
		{"one of two runs is missing", map[string][]string{"first": {"other"}}, []string{"first", "second"}, NotMeasured, "at least 0 of 1 (0 %), 1 not measured"},
		{"an unknown run", map[string][]string{"first": {"other"}}, []string{"first", "third"}, NotMeasured, "at least 0 of 1 (0 %), 1 not measured"},
		{"a missing run does not matter", map[string][]string{"second": {"sharp"}}, []string{"first", "second"}, Caught, "1 of 1 (100 %)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := matrixOf(all, map[string]map[string][]string{"R1": test.cells})
			x.setCell("R1", "third", Cell{Verdict: check.Unknown})
			if got := x.Find(&all[0], test.scenarios); got != test.want {
				t.Errorf("found %q; expected %q", got, test.want)
			}
			if got := x.Rate(all, test.scenarios).String(); got != test.rate {
				t.Errorf("rate %q; expected %q", got, test.rate)
			}
		})
	}
}

// TestAddCurrent checks that AddCurrent ignores a result if its mutant or scenario has changed.
func TestAddCurrent(t *testing.T) {
	all := []Mutant{{ID: "R1", Base: Ours, Checks: []string{"sharp"}}}
	saved := matrixOf(all, map[string]map[string][]string{"R1": {"first": {"sharp"}, "second": {"sharp"}}})
	for _, name := range []string{"first", "second"} {
		saved.setBaseline(Ours, name, Baseline{Fingerprint: fingerprint(Ours, texts[name]), Verdict: check.Pass})
	}
	changed := maps.Clone(texts)
	changed["second"] = "another text"
	x := NewMatrix()
	x.AddCurrent(saved, all, changed)
	if _, has := x.Unmodified[Ours]["second"]; has || len(x.Unmodified[Ours]) != 1 || len(x.Cells["R1"]) != 1 {
		t.Errorf("found %v and %v; expected results of the scenario first only", x.Unmodified, x.Cells)
	}
	edited := []Mutant{all[0]}
	edited[0].Edits = []Edit{{"a.go", "x", "y"}}
	x = NewMatrix()
	x.AddCurrent(saved, edited, texts)
	if len(x.Cells) != 0 || len(x.Unmodified[Ours]) != 2 {
		t.Errorf("found %v; expected no result of a mutant that has changed", x.Cells)
	}
}

// TestAddOutcomes checks that AddOutcomes adds results only for mutants that were detected.
func TestAddOutcomes(t *testing.T) {
	all := []Mutant{{ID: "R1", Checks: []string{"sharp"}}, {ID: "R2", Checks: []string{"sharp"}}}
	x := NewMatrix()
	x.AddOutcomes(all, map[string]Outcome{
		"R1": {Fingerprint: all[0].Fingerprint(), State: Detected, Scenario: "first", Checks: []string{"sharp"}},
		"R2": {Fingerprint: all[1].Fingerprint(), State: NotDetected},
	}, texts)
	want := map[string]map[string]Cell{"R1": {"first": {all[0].cellFingerprint("a"), check.Fail, []string{"sharp"}}}}
	if diff := cmp.Diff(want, x.Cells); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// fill makes the missing runs of a matrix with fake runs, but at most the given number of runs. It
// returns the removed executables.
func (l *fakeRuns) fill(t *testing.T, x *Matrix, runs int, mutants ...Mutant) (removed []string) {
	trial := Trial{
		Mutants: mutants, Parallel: 1,
		Unmodified: func(base Base) (string, error) { return string(base), nil },
		Build:      func(_ context.Context, m *Mutant) (string, error) { return m.ID, nil },
		Run:        l.run,
	}
	err := trial.Fill(t.Context(), &Gaps{
		Matrix: x, Scenarios: []string{"first", "second", "third"}, Texts: texts,
		More:   func() bool { return len(l.started) < runs },
		Save:   func() error { return nil },
		Remove: func(m *Mutant) error { removed = append(removed, m.ID); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return removed
}

func TestFill(t *testing.T) {
	passing := func(exercised string) reports.Run {
		return reports.Run{Verdict: check.Pass, Duration: time.Second, Results: []check.Result{{Check: exercised, Verdict: check.Pass}}}
	}
	l := &fakeRuns{results: map[[2]string]reports.Run{
		{"ours", "first"}:  passing("blunt"),
		{"ours", "second"}: passing("sharp"),
		{"ours", "third"}:  {Verdict: check.Unknown},
		{"R1", "second"}:   failing(time.Second, "sharp"),
		{"R2", "first"}:    failing(time.Second, "blunt"),
	}}
	mutants := []Mutant{
		{ID: "R1", Base: Ours, Checks: []string{"sharp"}},
		{ID: "R2", Base: Ours, Checks: []string{"sharp"}},
		{ID: "R3", Base: Ours, Checks: []string{"sharp"}}, // already caught
		{ID: "R4", Base: Ours, UnobservableReason: "nobody can"},
	}
	x := matrixOf(mutants, map[string]map[string][]string{"R3": {"third": {"sharp"}}})
	removed := l.fill(t, x, 5, mutants...)
	removed = append(removed, l.fill(t, x, 100, mutants...)...)
	want := []string{
		"unmodified ours in first", "unmodified ours in second", "unmodified ours in third",
		"R1 in second", // exercises the check, and catches it: no run in first
		"R2 in second", // the end of the time
		"R2 in first",
	}
	if diff := cmp.Diff(want, l.started); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"R1", "R2", "R2"}, removed); diff != "" {
		t.Errorf("removed executables (-want +got):\n%s", diff)
	}
	for id, want := range map[string]Finding{"R1": Caught, "R2": Missed, "R3": NotMeasured} {
		i := slices.IndexFunc(mutants, func(m Mutant) bool { return m.ID == id })
		if got := x.Find(&mutants[i], []string{"first", "second"}); got != want {
			t.Errorf("%s: found %q; expected %q", id, got, want)
		}
	}
	if got := x.Unmodified[Ours]["second"]; !slices.Equal(got.Exercised, []string{"sharp"}) || got.Duration != time.Second {
		t.Errorf("baseline %+v; expected that it exercises sharp in one second", got)
	}
}

func TestCandidates(t *testing.T) {
	all := []Mutant{{ID: "R1", Checks: []string{"sharp"}}, {ID: "R2", Checks: []string{"blunt"}}}
	x := matrixOf(all, map[string]map[string][]string{"R1": {"first": {"sharp"}, "second": {"sharp"}}, "R2": {"first": {"sharp"}}})
	x.setBaseline(Ours, "first", Baseline{Verdict: check.Pass, Duration: time.Second, Exercised: []string{"sharp"}})
	x.setBaseline(Ours, "second", Baseline{Verdict: check.Unknown})
	want := []Candidate{{"first", time.Second, []string{"check sharp", "fault crash", "mutant R1"}}}
	if diff := cmp.Diff(want, x.Candidates(all, map[string][]string{"first": {"crash", "crash"}})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChooseTiers(t *testing.T) {
	candidate := func(name string, duration time.Duration, covers ...string) Candidate {
		return Candidate{name, duration, covers}
	}
	many := func(from, to int) []string {
		var all []string
		for i := from; i < to; i++ {
			all = append(all, fmt.Sprintf("mutant %d", i))
		}
		return all
	}
	for _, test := range []struct {
		name         string
		candidates   []Candidate
		quick, deflt []string
	}{
		{name: "nothing"},
		{
			name:       "more for each second first",
			candidates: []Candidate{candidate("slow", 100*time.Second, many(0, 3)...), candidate("fast", time.Second, many(3, 5)...)},
			quick:      []string{"fast", "slow"}, deflt: []string{"fast", "slow"},
		},
		{
			name:       "quick ends before it is too long",
			candidates: []Candidate{candidate("fast", time.Second, many(0, 3)...), candidate("slow", QuickDuration, many(3, 5)...)},
			quick:      []string{"fast"}, deflt: []string{"fast", "slow"},
		},
		{
			name:       "one mutant of a hundred may be missed",
			candidates: []Candidate{candidate("most", time.Second, many(0, 99)...), candidate("last", time.Second, many(99, 100)...)},
			quick:      []string{"most"}, deflt: []string{"most"},
		},
		{
			name:       "every check and fault is covered",
			candidates: []Candidate{candidate("most", time.Second, many(0, 99)...), candidate("check", time.Second, "check sharp"), candidate("fault", 2*time.Second, "fault crash")},
			quick:      []string{"most", "check", "fault"}, deflt: []string{"most", "check", "fault"},
		},
		{
			name:       "nothing new",
			candidates: []Candidate{candidate("both", time.Second, "mutant 1", "mutant 2"), candidate("one", time.Second, "mutant 1")},
			quick:      []string{"both"}, deflt: []string{"both"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			tiers := ChooseTiers(test.candidates)
			names := func(choices []Choice) (all []string) {
				for _, c := range choices {
					all = append(all, c.Name)
				}
				return all
			}
			if diff := cmp.Diff([][]string{test.quick, test.deflt}, [][]string{names(tiers.Quick), names(tiers.Default)}); diff != "" {
				t.Errorf("quick and default (-want +got):\n%s", diff)
			}
		})
	}
}
