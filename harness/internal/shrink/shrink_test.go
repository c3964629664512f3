package shrink

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/internal/generate"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// need describes a failure by the parts of a scenario without which the failure does not occur.
// These are fault types, steps on some objects, and a number of replicas of one object.
type need struct {
	faults   []string
	targets  []scenario.Target
	replicas int
}

// met reports whether a scenario has all parts that the failure needs.
func (n need) met(s *scenario.Scenario) bool {
	for _, name := range n.faults {
		if !slices.ContainsFunc(s.Faults, func(f scenario.Fault) bool { return f.Name == name }) {
			return false
		}
	}
	for _, target := range n.targets {
		if !slices.Contains(objects(s), target) {
			return false
		}
	}
	return n.replicas == 0 || s.PodsMax() >= n.replicas
}

func drawScenario(t *rapid.T) *scenario.Scenario {
	s, err := generate.Scenario(generate.Options{
		Seed:     rapid.Uint64Range(1, 1<<32).Draw(t, "seed"),
		Profile:  rapid.SampledFrom(generate.Profiles[:4]).Draw(t, "profile"),
		Provider: providers.All[0],
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func drawNeed(t *rapid.T, s *scenario.Scenario) need {
	var n need
	for _, fault := range s.Faults {
		if rapid.IntRange(0, 3).Draw(t, "needs fault") == 0 && !slices.Contains(n.faults, fault.Name) {
			n.faults = append(n.faults, fault.Name)
		}
	}
	for _, target := range objects(s) {
		if rapid.IntRange(0, 3).Draw(t, "needs object") == 0 {
			n.targets = append(n.targets, target)
		}
	}
	n.replicas = rapid.IntRange(0, s.PodsMax()).Draw(t, "replicas")
	return n
}

// TestShrink checks that the result is as small as possible and still fails. Two searches for
// the same failure must give the same result.
func TestShrink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		n := drawNeed(t, s)
		asked := 0
		fails := func(candidate *scenario.Scenario) (bool, error) {
			asked++
			return n.met(candidate), nil
		}
		small, err := Shrink(s, fails)
		if err != nil || !n.met(small) {
			t.Fatalf("error %v; what is left fails: %t\n%s", err, n.met(small), text(t, small))
		}
		if len(small.Faults) != len(n.faults) {
			t.Errorf("%d faults are left of %d that are needed\n%s", len(small.Faults), len(n.faults), text(t, small))
		}
		for _, r := range reductions {
			for i := range r.parts(small) {
				if smaller := without(small, r, i, i+1); smaller != nil && n.met(smaller) {
					t.Errorf("%s: part %d of this can be reduced\n%s", r.name, i, text(t, small))
				}
			}
		}
		if most := 40 * (len(s.Workload) + len(s.Faults) + 20); asked > most {
			t.Errorf("asked %d times, at most %d expected", asked, most)
		}
		again, err := Shrink(s, fails)
		if err != nil || text(t, again) != text(t, small) {
			t.Errorf("error %v; a second time it comes to\n%s, not\n%s", err, text(t, again), text(t, small))
		}
	})
}

// TestShrinkError checks what Shrink returns if the function fails returns an error. The result
// must be the smallest failing scenario so far.
func TestShrinkError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		left := rapid.IntRange(0, 20).Draw(t, "answers")
		enough := errors.New("enough")
		small, err := Shrink(s, func(*scenario.Scenario) (bool, error) {
			if left--; left < 0 {
				return true, enough
			}
			return true, nil
		})
		if (left < 0) != errors.Is(err, enough) || small == nil {
			t.Fatalf("error %v with %d answers left", err, left)
		}
		if len(text(t, small)) > len(text(t, s)) {
			t.Errorf("it has grown:\n%s", text(t, small))
		}
	})
}

func text(t *rapid.T, s *scenario.Scenario) string {
	data, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// flaky is a scenario that fails once in `every` runs. The field runs counts the runs so far.
type flaky struct{ every, runs int }

func (f *flaky) run(context.Context, *scenario.Scenario) (bool, error) {
	f.runs++
	return f.runs%f.every == 0, nil
}

func TestProber(t *testing.T) {
	for _, test := range []struct {
		name           string
		every          int
		wantErr        string
		wantRuns       int // expected number of passing runs after which a scenario counts as passing
		wantConfidence float64
	}{
		{name: "always", every: 1, wantRuns: 2, wantConfidence: 0.96},
		{name: "one of three", every: 3, wantRuns: 6, wantConfidence: 0.95},
		{name: "never", every: 1000, wantErr: "the original scenario failed in 0 of 3 runs; expected at least 1 failure, because shrink needs a scenario that fails"},
	} {
		t.Run(test.name, func(t *testing.T) {
			original := small(t, "original")
			var journal strings.Builder
			p := Prober{Run: (&flaky{every: test.every}).run, Journal: &journal}
			err := p.Calibrate(t.Context(), original)
			if test.wantErr != "" {
				if err == nil || err.Error() != test.wantErr {
					t.Errorf("error %v, want %s", err, test.wantErr)
				}
				p.Run = (&flaky{every: 1}).run
				if err := p.Calibrate(t.Context(), original); err != nil || p.original != (counts{failed: 3, runs: 6}) {
					t.Errorf("after %v, the next call found %+v (error %v), want 3 failed runs of 6", test.wantErr, p.original, err)
				}
				return
			}
			if err != nil || p.Runs() != test.wantRuns || p.Confidence() < test.wantConfidence {
				t.Fatalf("error %v, %d runs, confidence %.3f; want %d, %.2f", err, p.Runs(), p.Confidence(), test.wantRuns, test.wantConfidence)
			}
			// A scenario that never fails must run p.Runs() times. A second call of Fails must
			// use these results.
			never := &flaky{every: 1000}
			p.Run = never.run
			for range 2 {
				if failing, err := p.Fails(t.Context(), small(t, "sound")); failing || err != nil || never.runs != test.wantRuns {
					t.Errorf("fails: %t, error %v after %d runs", failing, err, never.runs)
				}
			}
			// The journal ends in the middle of a line. It contains all runs except the last one.
			resumed := Prober{Run: never.run, Journal: &strings.Builder{}}
			if err := resumed.Resume(strings.NewReader(journal.String()[:journal.Len()-5])); err != nil {
				t.Fatal(err)
			}
			if err := resumed.Calibrate(t.Context(), original); err != nil || resumed.Runs() != p.Runs() {
				t.Errorf("error %v, %d runs; want %d", err, resumed.Runs(), p.Runs())
			}
			if _, err := resumed.Fails(t.Context(), small(t, "sound")); err != nil || never.runs != test.wantRuns+1 {
				t.Errorf("error %v, %d runs in all; want one more", err, never.runs)
			}
			// Another search does not use the results in the journal.
			resumed.Search = "another subject"
			if _, err := resumed.Fails(t.Context(), small(t, "sound")); err != nil || never.runs != 2*test.wantRuns+1 {
				t.Errorf("error %v, %d runs in all; want %d more", err, never.runs, test.wantRuns)
			}
		})
	}
}

func TestProberBadJournal(t *testing.T) {
	if err := new(Prober).Resume(strings.NewReader("{\"scenario\": \"x\"}\nnonsense\n")); err == nil || !strings.HasPrefix(err.Error(), "2: the line is not a valid result of a run: ") {
		t.Errorf("error %v", err)
	}
}

// TestProberCanceled checks that the journal does not contain a canceled run.
func TestProberCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var journal strings.Builder
	p := Prober{Journal: &journal, Run: func(context.Context, *scenario.Scenario) (bool, error) {
		cancel()
		return true, nil
	}}
	if _, err := p.Fails(ctx, small(t, "x")); !errors.Is(err, context.Canceled) || journal.Len() > 0 {
		t.Errorf("error %v, journal %q", err, journal.String())
	}
}

func small(t *testing.T, name string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("x.yaml", []byte("name: "+name+"\ndescription: x\nworkload:\n  - create: {kind: ReplicaSet, name: web, replicas: 1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
