package mutant

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/reports"
)

func TestApply(t *testing.T) {
	const source = "package a\n\nvar x, y = 1, 1\n"
	read := func(file string) ([]byte, error) {
		if file != "a.go" {
			return nil, errors.New("no file " + file)
		}
		return []byte(source), nil
	}
	for _, tc := range []struct {
		name      string
		edits     []Edit
		want, err string
	}{
		{name: "one", edits: []Edit{{"a.go", "x, y", "x, z"}}, want: "package a\n\nvar x, z = 1, 1\n"},
		{name: "two edits of one place", edits: []Edit{{"a.go", "x, y", "x, z"}, {"a.go", "z =", "w ="}}, want: "package a\n\nvar x, w = 1, 1\n"},
		{name: "absent", edits: []Edit{{"a.go", "v, w", "x"}}, err: `a.go has the text "v, w" 0 times; expected the text exactly once`},
		{name: "twice", edits: []Edit{{"a.go", "1", "2"}}, err: `a.go has the text "1" 2 times; expected the text exactly once`},
		{name: "nothing", edits: []Edit{{"a.go", "", "2"}}, err: "expected the text exactly once"},
		{name: "no Go", edits: []Edit{{"a.go", "var", "vary"}}, err: "expected declaration"},
		{name: "no file", edits: []Edit{{"b.go", "var", "const"}}, err: "mutant M: no file b.go"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			edited, err := (&Mutant{ID: "M", Edits: tc.edits}).Apply(read)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v; expected one with %q", err, tc.err)
				}
				return
			}
			if err != nil || edited["a.go"] != tc.want {
				t.Errorf("%q, %v; expected %q", edited, err, tc.want)
			}
		})
	}
}

// fakeRuns makes the runs of a trial without a control plane. The keys of results consist of
// executable and scenario. A run without a result passes.
type fakeRuns struct {
	mu      sync.Mutex
	results map[[2]string]reports.Run
	started []string
	// failedStarts says how many times a run fails to start. The key is the run's name, as in
	// started.
	failedStarts map[string]int
}

func (l *fakeRuns) run(_ context.Context, subject Subject, scenario string) (*reports.Run, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := subject.String() + " in " + scenario
	l.started = append(l.started, name)
	if l.failedStarts[name] > 0 {
		l.failedStarts[name]--
		return nil, errors.New("no control plane")
	}
	result, has := l.results[[2]string{subject.Executable, scenario}]
	if !has {
		result = reports.Run{Verdict: check.Pass}
	}
	return &result, nil
}

func failing(at time.Duration, ids ...string) reports.Run {
	result := reports.Run{Verdict: check.Fail, Seed: 7, Reason: "it is broken", Results: []check.Result{{Check: "sound", Verdict: check.Pass}}}
	for _, id := range ids {
		result.Results = append(result.Results, check.Result{Check: id, Verdict: check.Fail, Evidence: []check.Evidence{{At: at + time.Second}, {At: at}}})
		at /= 2
	}
	return result
}

// try runs a trial with fake runs and returns the outcome of each mutant, by the mutant's ID.
func (l *fakeRuns) try(t *testing.T, mutants ...Mutant) (map[string]Outcome, error) {
	outcomes := map[string]Outcome{}
	trial := Trial{
		Mutants: mutants, Parallel: 2,
		Unmodified: func(base Base) (string, error) { return string(base), nil },
		Build:      func(_ context.Context, m *Mutant) (string, error) { return m.ID, nil },
		Run:        l.run,
		Done:       func(o Outcome) error { outcomes[o.Mutant] = o; return nil },
	}
	err := trial.Do(t.Context())
	return outcomes, err
}

func TestTrial(t *testing.T) {
	l := &fakeRuns{results: map[[2]string]reports.Run{
		{"detected", "second"}: failing(4*time.Second, "late", "early"),
		{"detected", "third"}:  failing(time.Second, "never asked"),
		{"unclear", "first"}:   {Verdict: check.Unknown, Reason: "too little happened"},
		{"upstream", "shaky"}:  failing(time.Second, "wolf"),
		{"lucky", "shaky"}:     failing(time.Second, "wolf"),
		{"half", "first"}:      failing(2*time.Second, "sharp"),
		{"upstream", "second"}: failing(time.Second, "wolf"),
		{"chance", "first"}:    failing(time.Second, "blunt"),
		{"chance", "second"}:   failing(time.Second, "blunt", "sharp"),
		{"upstream", "known"}:  {Verdict: check.KnownUpstream},
		{"excused", "known"}:   failing(time.Second, "sharp"),
		{"likewise", "known"}:  {Verdict: check.KnownUpstream, Reason: "a known issue"},
	}}
	outcomes, err := l.try(t,
		Mutant{ID: "detected", Base: Ours, Scenarios: []string{"first", "second", "third"}},
		Mutant{ID: "unclear", Base: Ours, Scenarios: []string{"first"}},
		Mutant{ID: "lucky", Base: Upstream, Scenarios: []string{"shaky"}},
		Mutant{ID: "half", Base: Upstream, Scenarios: []string{"shaky", "first"}},
		Mutant{ID: "excused", Base: Upstream, Scenarios: []string{"known"}},
		Mutant{ID: "likewise", Base: Upstream, Scenarios: []string{"known"}},
		Mutant{ID: "unseen", Base: Ours, UnobservableReason: "nobody looks"},
		Mutant{ID: "chance", Base: Ours, Scenarios: []string{"first", "second"}, Checks: []string{"sharp"}},
	)
	if err == nil || !strings.Contains(err.Error(), "running the unmodified controllers (upstream) in scenario shaky: fail: it is broken") {
		t.Errorf("error %v; expected it to name the unmodified controllers", err)
	}
	detected := outcomes["detected"]
	if detected.State != Detected || detected.Scenario != "second" || detected.Seed != 7 || detected.After != 2*time.Second || !slices.Equal(detected.Checks, []string{"early", "late"}) {
		t.Errorf("detected: %+v", detected)
	}
	for id, want := range map[string]State{"unclear": NotDetected, "lucky": Void, "half": Detected, "excused": Detected, "likewise": NotDetected} {
		if outcomes[id].State != want {
			t.Errorf("%s: %+v; expected it to be %s", id, outcomes[id], want)
		}
	}
	if why := outcomes["unclear"].Reason; why != "first: unknown: too little happened" {
		t.Errorf("unclear: reason %q", why)
	}
	if o := outcomes["chance"]; o.State != Detected || o.Scenario != "second" {
		t.Errorf("chance: %+v; expected detection in the scenario in which its expected check failed", o)
	}
	if _, tried := outcomes["unseen"]; tried || len(outcomes) != 7 {
		t.Errorf("outcomes %v; expected one for each mutant but the unobservable one", outcomes)
	}
	for _, place := range []string{"unmodified ours in first", "unmodified upstream in shaky"} {
		if n := len(slices.DeleteFunc(slices.Clone(l.started), func(s string) bool { return s != place })); n != 1 {
			t.Errorf("%s: run %d times; expected once", place, n)
		}
	}
	if n := len(slices.DeleteFunc(slices.Clone(l.started), func(s string) bool { return s != "unclear in first" })); n != 1 {
		t.Errorf("the run \"unclear in first\" was made %d times; expected once", n)
	}
	if slices.Contains(l.started, "detected in third") {
		t.Error("a detected mutant ran in another scenario")
	}
}

// TestTrialOfRunsThatCannotBegin checks that a trial tries once more if a run cannot start. A run
// that never starts must not affect other runs.
func TestTrialOfRunsThatCannotBegin(t *testing.T) {
	l := &fakeRuns{failedStarts: map[string]int{"unmodified ours in first": 1, "slow in first": 1, "gone in first": 2}}
	outcomes, err := l.try(t,
		Mutant{ID: "slow", Base: Ours, Scenarios: []string{"first"}},
		Mutant{ID: "gone", Base: Ours, Scenarios: []string{"first"}},
	)
	if err == nil || err.Error() != "running mutant gone: no control plane" {
		t.Errorf("error %v; expected the error of the mutant whose run did not begin twice", err)
	}
	if _, tried := outcomes["gone"]; tried || outcomes["slow"].State != NotDetected {
		t.Errorf("outcomes %+v; expected only that of the other mutant", outcomes)
	}
}

func TestStateOf(t *testing.T) {
	m := Mutant{ID: "M", Base: Ours, Edits: []Edit{{"a.go", "x", "y"}}, Scenarios: []string{"first"}, Texts: []string{"one"}, Checks: []string{"no-writes-when-settled"}}
	last := Outcome{Mutant: "M", Fingerprint: m.Fingerprint(), State: Detected, Checks: []string{"process-alive", "no-writes-when-settled"}}
	if got := m.StateOf(last); got != Detected {
		t.Errorf("state %s; expected the state of the outcome", got)
	}
	for name, checks := range map[string][]string{"another check failed": {"sound"}, "it has no checks": nil} {
		other := m
		if other.Checks = checks; other.StateOf(last) != NotDetected {
			t.Errorf("%s: state %s; expected not detected", name, other.StateOf(last))
		}
	}
	played := m
	if played.Texts = []string{"two"}; played.StateOf(last) != NotRun {
		t.Error("an outcome counts after the text of the scenario has changed")
	}
	changed := m
	changed.Edits = []Edit{{"a.go", "x", "z"}}
	if got := changed.StateOf(last); got != NotRun {
		t.Errorf("state %s; expected not run, because the edits have changed", got)
	}
	m.UnobservableReason = "nobody looks"
	if got := m.StateOf(last); got != Unobservable {
		t.Errorf("state %s; expected unobservable", got)
	}
}

func TestTable(t *testing.T) {
	all := []Mutant{
		{ID: "R1", Base: Ours, Description: "It is.", Scenarios: []string{"first"}, Checks: []string{"process-alive"}},
		{ID: "R2", Base: Upstream, Description: "It is, too.", Scenarios: []string{"first", "second"}, OpenReason: "no check looks"},
		{ID: "R3", Base: Ours, Description: "It is as well.", Scenarios: []string{"first"}},
		{ID: "R4", Base: Ours, Description: "It may be.", UnobservableReason: "nobody can"},
	}
	var b strings.Builder
	err := Table(&b, all, map[string]Outcome{
		"R1": {Fingerprint: all[0].Fingerprint(), State: Detected, Scenario: "first", Checks: []string{"no-writes-when-settled", "process-alive"}, After: 1250 * time.Millisecond},
		"R2": {Fingerprint: all[1].Fingerprint(), State: NotDetected},
	}, []Column{{Name: "quick", Rate: Rate{Caught: 1, NotMeasured: 2}, Find: func(m *Mutant) Finding {
		return map[string]Finding{"R1": Caught, "R2": Missed, "R3": NotMeasured, "R4": Missed}[m.ID]
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"1 of 2 mutants detected (50 %), 1 not run, 1 unobservable.",
		"- `quick` catches at least 1 of 3 (33 %), 2 not measured.",
		"| mutant | base | bug | state | detected by | scenario | after | `quick` |",
		"|-|-|-|-|-|-|-:|-|",
		"| R1 | ours | It is. | detected | `no-writes-when-settled`, `process-alive` | first | 1.2 s | caught |",
		"| R2 | upstream | It is, too. | not detected | no check looks | first, second |  | missed |",
		"| R3 | ours | It is as well. | not run |  |  |  |  |",
		"| R4 | ours | It may be. | unobservable | nobody can |  |  |  |",
	} {
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("expected the line %q in\n%s", want, b.String())
		}
	}
}

// TestBuild builds a mutant from the source tree, and checks that the source tree does not
// change.
func TestBuild(t *testing.T) {
	const file = "controllers/manager/manager.go"
	tree := filepath.Join("..", "..")
	before, err := os.ReadFile(filepath.Join(tree, file))
	if err != nil {
		t.Fatal(err)
	}
	w := &Builder{Tree: tree, Dir: t.TempDir()}
	const mark = "a mark that only a mutant has"
	executable, err := w.Build(t.Context(), &Mutant{ID: "M", Base: Ours, Edits: []Edit{{file, "Workers did not finish their syncs in time, canceling the syncs", mark}}})
	if err != nil {
		t.Fatal(err)
	}
	built, err := os.ReadFile(executable)
	if err != nil || !strings.Contains(string(built), mark) {
		t.Errorf("the executable does not have the edit (%v)", err)
	}
	if after, err := os.ReadFile(filepath.Join(tree, file)); err != nil || string(after) != string(before) {
		t.Errorf("the tree has changed (%v)", err)
	}
	left, err := os.ReadDir(w.Dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left in the directory: %v, %v; expected the executable alone", left, err)
	}
	_, err = w.Build(t.Context(), &Mutant{ID: "M", Base: Ours, Edits: []Edit{{file, "drainTimeout = 15", "drainTimeout = fifteen"}}})
	if err == nil || !strings.Contains(err.Error(), "undefined: fifteen") {
		t.Errorf("error %v; expected what the compiler says", err)
	}
}

// TestPreflight checks for which source trees Preflight returns an error.
func TestPreflight(t *testing.T) {
	tree := filepath.Join("..", "..")
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "go.mod"), []byte("module example.com/other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	old := []Mutant{{ID: "M", Base: Ours, Edits: []Edit{{"controllers/manager/manager.go", "a line that this version does not have", ""}}}}
	for _, test := range []struct {
		tree, path string
		mutants    []Mutant
		want       string
	}{
		{tree, os.Getenv("PATH"), nil, ""},
		{tree, t.TempDir(), nil, "found no go command in PATH"},
		{t.TempDir(), os.Getenv("PATH"), nil, "is not the source tree of gauntlet; run gauntlet in the source tree, or name the tree with --tree: "},
		{other, os.Getenv("PATH"), nil, `found no line "module github.com/kube-gauntlet/gauntlet"`},
		{tree, os.Getenv("PATH"), old, "is not the source tree of this version of gauntlet: "},
	} {
		t.Setenv("PATH", test.path)
		err := (&Builder{Tree: test.tree}).Preflight(test.mutants)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("tree %s: error %v, want one that contains %q", test.tree, err, test.want)
		}
	}
}

// TestTrialInterrupted checks that an interrupted trial returns a single error, which says how many
// mutants were complete.
func TestTrialInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	all := []Mutant{{ID: "one", Base: Ours, Scenarios: []string{"first"}}, {ID: "two", Base: Ours, Scenarios: []string{"first"}}, {ID: "unseen", UnobservableReason: "nobody looks"}}
	trial := Trial{
		Mutants: all, Parallel: 1,
		Unmodified: func(base Base) (string, error) { return string(base), nil },
		Build:      func(_ context.Context, m *Mutant) (string, error) { return m.ID, nil },
		Run: func(ctx context.Context, subject Subject, _ string) (*reports.Run, error) {
			if subject.Mutant == "two" {
				interrupt()
				return nil, ctx.Err()
			}
			return &reports.Run{Verdict: check.Pass}, nil
		},
		Done: func(Outcome) error { return nil },
	}
	const want = "interrupted after 1 of 2 mutants"
	if err := trial.Do(ctx); err == nil || err.Error() != want {
		t.Errorf("error %v; want %q", err, want)
	}
}
