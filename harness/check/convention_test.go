package check

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFilesOfChecks requires that each check has a file check_<id>.go, which begins with the
// check's row in All. No other file may have a name that begins with check_.
func TestFilesOfChecks(t *testing.T) {
	src := parsePackage(t)
	expected := map[string]bool{}
	for _, c := range All {
		name := "check_" + strings.ReplaceAll(c.ID, "-", "_") + ".go"
		expected[name] = true
		file := src.files[name]
		if file == nil {
			t.Errorf("check %s has no file %s", c.ID, name)
			continue
		}
		variable, id := firstRow(file)
		if want := lowerCamel(c.ID) + "Check"; variable != want || id != c.ID {
			t.Errorf("%s begins with the variable %q of ID %q, expected %s of ID %s", name, variable, id, want, c.ID)
		}
	}
	for name := range src.files {
		if strings.HasPrefix(name, "check_") && !expected[name] {
			t.Errorf("%s is the file of no check in All", name)
		}
	}
}

// TestFilesOfKnownIssues requires that each file known_<slug>.go is named after a known upstream
// issue.
func TestFilesOfKnownIssues(t *testing.T) {
	expected := map[string]bool{}
	for _, issue := range KnownIssues {
		expected["known_"+strings.ReplaceAll(issue.Slug, "-", "_")+".go"] = true
	}
	for name := range parsePackage(t).files {
		if strings.HasPrefix(name, "known_") && !expected[name] {
			t.Errorf("%s is the file of no issue in KnownIssues", name)
		}
	}
}

// TestDependenciesOfFiles requires that files of the package use only those other files that
// they may use. For the rules, see forbidden.
func TestDependenciesOfFiles(t *testing.T) {
	src := parsePackage(t)
	uses := src.resolve()
	if len(uses) < 5000 {
		t.Fatalf("resolved %d uses of identifiers, expected thousands", len(uses))
	}
	for _, problem := range slices.Sorted(maps.Keys(forbidden(uses))) {
		t.Error(problem)
	}
}

func TestForbiddenDependencies(t *testing.T) {
	for _, test := range []struct {
		user, declaredIn string
		allowed          bool
	}{
		{"model_view.go", "model.go", true},
		{"check_status.go", "model_view.go", true},
		{"check_status.go", "known.go", true},
		{"check_status.go", "check_status.go", true},
		{"check.go", "check_status.go", true},
		{"check_status.go", "check_revisions.go", false},
		{"model.go", "known.go", false},
		{"model_view.go", "check_status.go", false},
		{"known_long_back_off.go", "check_back_off.go", false},
	} {
		problems := forbidden([]use{{file: test.user, name: "x", declaredIn: test.declaredIn}})
		if allowed := len(problems) == 0; allowed != test.allowed {
			t.Errorf("%s uses something of %s: allowed is %t, expected %t", test.user, test.declaredIn, allowed, test.allowed)
		}
	}
}

// sources contains the syntax of the package's files, without tests.
type sources struct {
	fset  *token.FileSet
	files map[string]*ast.File
}

// parsePackage parses the files of the package, except tests.
func parsePackage(t *testing.T) sources {
	t.Helper()
	src := sources{fset: token.NewFileSet(), files: map[string]*ast.File{}}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(src.fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		src.files[name] = file
	}
	return src
}

// use says that a file uses the identifier name, which the file declaredIn declares.
type use struct{ file, name, declaredIn string }

// resolve returns each use of an identifier that the package declares. It type-checks the
// package with empty packages in place of all imports, because identifiers of other packages do
// not matter.
func (s sources) resolve() []use {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: emptyPackages{}, Error: func(error) {}}
	pkg, _ := config.Check("check", s.fset, slices.Collect(maps.Values(s.files)), info)
	var uses []use
	for identifier, object := range info.Uses {
		if object.Pkg() == pkg && object.Pos().IsValid() {
			uses = append(uses, use{s.fset.File(identifier.Pos()).Name(), object.Name(), s.fset.File(object.Pos()).Name()})
		}
	}
	return uses
}

// emptyPackages is a types.Importer that returns packages without declarations.
type emptyPackages struct{}

func (emptyPackages) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, path[strings.LastIndex(path, "/")+1:])
	p.MarkComplete()
	return p, nil
}

// forbidden returns one sentence for each use that breaks a rule. The model must use neither
// checks nor known issues. Known issues must not use checks. A check must not use another check.
func forbidden(uses []use) map[string]bool {
	problems := map[string]bool{}
	for _, u := range uses {
		if u.file == u.declaredIn {
			continue
		}
		from, to := layer(u.file), layer(u.declaredIn)
		if from == "model" && (to == "check" || to == "known") || from == "known" && to == "check" || from == "check" && to == "check" {
			problems[fmt.Sprintf("%s uses %s, which %s declares", u.file, u.name, u.declaredIn)] = true
		}
	}
	return problems
}

// layer returns what a file contains, by its name: "check", "known" or "model". For any other
// file it returns "".
func layer(file string) string {
	for _, kind := range []string{"model", "known"} {
		if file == kind+".go" || strings.HasPrefix(file, kind+"_") {
			return kind
		}
	}
	if strings.HasPrefix(file, "check_") {
		return "check"
	}
	return ""
}

// firstRow returns the variable and the check ID of the row of All with which a file begins.
// Both results are "" if the file's first declaration after the imports is not a row of All.
func firstRow(file *ast.File) (variable, id string) {
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if ok && group.Tok == token.IMPORT {
			continue
		}
		if !ok || group.Tok != token.VAR || len(group.Specs) != 1 {
			return "", ""
		}
		spec, ok := group.Specs[0].(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return "", ""
		}
		row, ok := spec.Values[0].(*ast.CompositeLit)
		if !ok || len(row.Elts) == 0 {
			return "", ""
		}
		field, ok := row.Elts[0].(*ast.KeyValueExpr)
		if !ok {
			return "", ""
		}
		value, ok := field.Value.(*ast.BasicLit)
		if !ok {
			return "", ""
		}
		return spec.Names[0].Name, strings.Trim(value.Value, `"`)
	}
	return "", ""
}

// lowerCamel converts a check ID to the name of its variable without the suffix Check:
// a-check-id becomes aCheckId.
func lowerCamel(id string) string {
	words := strings.Split(id, "-")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}
