package library

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/internal/setup"
	"github.com/kube-gauntlet/gauntlet/harness/mutant"
	scenarios "github.com/kube-gauntlet/gauntlet/harness/scenario/library"
)

var update = flag.Bool("update", false, "write TABLE.md")

// tree is the root directory of gauntlet's source tree.
var tree = filepath.Join("..", "..", "..")

func TestAllAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range All() {
		for _, problem := range problemsOf(m) {
			t.Errorf("%s: %s", m.ID, problem)
		}
		if seen[m.ID] {
			t.Errorf("%s: listed twice", m.ID)
		}
		seen[m.ID] = true
	}
}

// problemsOf returns a message for each mistake in a mutant's fields, such as a missing
// description.
func problemsOf(m mutant.Mutant) []string {
	var problems []string
	tried := len(m.Edits) > 0 && len(m.Scenarios) > 0 && (len(m.Checks) > 0) == (m.OpenReason == "")
	none := len(m.Edits) == 0 && len(m.Scenarios) == 0 && len(m.Checks) == 0
	switch {
	case m.UnobservableReason == "" && !tried:
		problems = append(problems, "expected edits, scenarios, and checks or OpenReason")
	case m.UnobservableReason != "" && !(none && m.OpenReason == ""):
		problems = append(problems, "expected only UnobservableReason for an unobservable mutant")
	}
	if !strings.HasSuffix(m.Description, ".") || strings.ContainsAny(m.Description+m.OpenReason+m.UnobservableReason, "|\n") {
		problems = append(problems, "expected a sentence that fits a table")
	}
	for _, name := range m.Scenarios {
		if _, ok := scenarios.Find(name); !ok {
			problems = append(problems, "there is no scenario "+name)
		}
	}
	for _, id := range m.Checks {
		if _, ok := check.Find(id); !ok {
			problems = append(problems, "there is no check "+id)
		}
	}
	return problems
}

func TestProblems(t *testing.T) {
	whole := mutant.Mutant{ID: "x", Description: "It is.", Edits: []mutant.Edit{edit("a", "b", "c")}, Scenarios: []string{"burst"}, Checks: []string{"no-writes-when-settled"}}
	for name, change := range map[string]func(*mutant.Mutant){
		"no edits":         func(m *mutant.Mutant) { m.Edits = nil },
		"no sentence":      func(m *mutant.Mutant) { m.Description = "It is" },
		"edits and unseen": func(m *mutant.Mutant) { m.UnobservableReason = "nobody looks" },
		"checks, and none": func(m *mutant.Mutant) { m.OpenReason = "nobody looks" },
		"no such check":    func(m *mutant.Mutant) { m.Checks = []string{"quite"} },
		"no such scenario": func(m *mutant.Mutant) { m.Scenarios = []string{"brust"} },
	} {
		m := whole
		if change(&m); len(problemsOf(m)) != 1 {
			t.Errorf("%s: found %q; expected one problem", name, problemsOf(m))
		}
	}
	if problems := problemsOf(whole); len(problems) > 0 {
		t.Errorf("found %q; expected no problem", problems)
	}
}

// saved reads the outcomes and the matrix that the source tree contains.
func saved(t *testing.T) (map[string]mutant.Outcome, *mutant.Matrix) {
	outcomes, read, texts := map[string]mutant.Outcome{}, mutant.NewMatrix(), Texts()
	for file, into := range map[string]any{"outcomes.json": &outcomes, "matrix.json": read} {
		content, err := os.ReadFile(filepath.Join("..", file))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(content, into); err != nil {
			t.Fatal(err)
		}
	}
	matrix := mutant.NewMatrix()
	matrix.AddOutcomes(All(), outcomes, texts)
	matrix.AddCurrent(read, All(), texts)
	return outcomes, matrix
}

// TestTableIsOfAll checks that TABLE.md is up to date with the mutants, the outcomes and the
// scenarios of the tiers.
func TestTableIsOfAll(t *testing.T) {
	outcomes, matrix := saved(t)
	var want bytes.Buffer
	if err := mutant.Table(&want, All(), outcomes, Rates(matrix)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("..", "TABLE.md")
	if *update {
		if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := os.ReadFile(file); err != nil || string(found) != want.String() {
		t.Errorf("TABLE.md is out of date (error %v); run make golden", err)
	}
}

// TestReadmeHasRates checks that README.md has the current share of mutants that the scenarios of
// each tier detect.
func TestReadmeHasRates(t *testing.T) {
	_, matrix := saved(t)
	readme, err := os.ReadFile(filepath.Join(tree, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tier := range Rates(matrix) {
		if want := fmt.Sprintf("`%s` catches %s", tier.Name, tier.Rate); !strings.Contains(string(readme), want) {
			t.Errorf("README.md does not say %q", want)
		}
	}
}

// TestTiersReachTheirGoal checks that the scenarios of the tier default detect most of the mutants
// that any scenario detects.
func TestTiersReachTheirGoal(t *testing.T) {
	_, matrix := saved(t)
	caught := map[string]int{}
	for _, tier := range Rates(matrix) {
		caught[tier.Name] = tier.Rate[mutant.Caught]
	}
	if float64(caught["default"]) < mutant.DefaultShare*float64(caught["full"]) {
		t.Errorf("default catches %d mutants, and full %d; run gauntlet mutants tiers", caught["default"], caught["full"])
	}
}

func TestTiersFile(t *testing.T) {
	choice := func(name string) mutant.Choice { return mutant.Choice{Candidate: mutant.Candidate{Name: name}} }
	tiers := mutant.Tiers{Quick: []mutant.Choice{choice("burst")}, Default: []mutant.Choice{choice("burst"), choice("crash")}}
	if got, want := TiersFile(tiers), "quick burst\ndefault crash\n"; got != want {
		t.Errorf("found %q; expected %q", got, want)
	}
}

// TestEditsOfOurs applies the edits of each mutant of our controllers. The edited files must be
// formatted as gofmt does, and must compile.
func TestEditsOfOurs(t *testing.T) {
	compiler := newCompiler(t)
	for _, m := range All() {
		if m.Base != mutant.Ours || m.UnobservableReason != "" {
			continue
		}
		t.Run(m.ID, func(t *testing.T) {
			edited, err := m.Apply(func(file string) ([]byte, error) { return os.ReadFile(filepath.Join(tree, file)) })
			if err != nil {
				t.Fatal(err)
			}
			packages := map[string]bool{}
			for file, content := range edited {
				packages[path.Dir(file)] = true
				clean, err := format.Source([]byte(content))
				if err != nil || string(clean) != content {
					t.Errorf("%s is not gofmt-clean with the edit (%v)", file, err)
				}
			}
			for dir := range packages {
				if err := compiler.check(dir, edited); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestEditsOfUpstream applies the edits of each mutant of upstream's controllers. The source is
// the Kubernetes module that package setup pins. The test is skipped if the module is not in the
// module cache.
func TestEditsOfUpstream(t *testing.T) {
	source, err := setup.KubernetesSource(t.Context())
	if err != nil {
		t.Skip(err)
	}
	for _, m := range All() {
		if m.Base != mutant.Upstream {
			continue
		}
		if _, err := m.Apply(func(file string) ([]byte, error) { return os.ReadFile(filepath.Join(source, file)) }); err != nil {
			t.Error(err)
		}
	}
}

// compiler type-checks packages of controllers/ with some of their files replaced. It reads the
// imported packages from export data that the go command has written.
type compiler struct {
	files   *token.FileSet
	imports types.Importer
}

// newCompiler returns a compiler for the packages of the source tree.
func newCompiler(t *testing.T) *compiler {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", "-json=ImportPath,Export", "./controllers/...")
	list.Dir = tree
	var complaints bytes.Buffer
	list.Stderr = &complaints
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, complaints.String())
	}
	exports := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var listed struct{ ImportPath, Export string }
		if err := decoder.Decode(&listed); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[listed.ImportPath] = listed.Export
	}
	files := token.NewFileSet()
	return &compiler{files, importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
}

// check type-checks the package in a directory of the tree, with the edited files instead of the
// originals. The edits must not change the package's API.
func (c *compiler) check(dir string, edited map[string]string) error {
	names, err := filepath.Glob(filepath.Join(tree, dir, "*.go"))
	if err != nil {
		return err
	}
	var parsed []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		var content any
		if text, has := edited[path.Join(dir, filepath.Base(name))]; has {
			content = text
		}
		file, err := parser.ParseFile(c.files, name, content, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, file)
	}
	config := types.Config{Importer: c.imports}
	if _, err := config.Check(dir, c.files, parsed, nil); err != nil {
		return fmt.Errorf("%s does not compile with the edit: %w", dir, err)
	}
	return nil
}
