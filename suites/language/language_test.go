package language

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the root directory of the project.
const root = "../.."

// TestComments limits the length of sentences in the comments of Go files, and rejects the words
// in replaced. A doc comment is a comment directly before a package clause or a declaration.
func TestComments(t *testing.T) {
	goFiles(t, func(path string, _ []string, set *token.FileSet, file *ast.File) {
		docs := docComments(file)
		for _, group := range file.Comments {
			at := func(message string, args ...any) {
				t.Errorf("%s:%d: %s", path, set.Position(group.Pos()).Line, fmt.Sprintf(message, args...))
			}
			if word, replacement := replacedIn(group.Text(), replaced); word != "" && !documentsOldName(group.Text()) {
				at("the comment has the word %q; use %s", word, replacement)
			}
			for i, sentence := range docSentences(group) {
				limit := sentenceWordsMax
				if i == 0 && docs[group] {
					limit = firstSentenceWordsMax
				}
				if n := words(sentence); n > limit {
					at("a sentence has %d words; expected at most %d: %.100q", n, limit, sentence)
				}
			}
		}
	})
}

// TestIdentifiers rejects the words in replaced and replacedIdentifiers. It checks the
// identifiers that Go files declare, and the names of Go files.
func TestIdentifiers(t *testing.T) {
	goFiles(t, func(path string, lines []string, set *token.FileSet, file *ast.File) {
		if word, replacement := replacedIn(identifierWords(strings.TrimSuffix(filepath.Base(path), ".go")), replaced, replacedIdentifiers); word != "" {
			t.Errorf("%s: the file name has the word %q; use %s", path, word, replacement)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok || id.Obj == nil || id.Pos() != id.Obj.Pos() {
				return true
			}
			line := set.Position(id.Pos()).Line
			if word, replacement := replacedIn(identifierWords(id.Name), replaced, replacedIdentifiers); word != "" && !documentsOldName(lines[line-1]) {
				t.Errorf("%s:%d: the identifier %s has the word %q; use %s", path, line, id.Name, word, replacement)
			}
			return true
		})
	})
}

// TestText rejects the words in replaced and British spelling. It checks the string literals of
// Go files, and Markdown, YAML and template files. CHANGELOG.md and lines that document an old
// name may contain such words.
func TestText(t *testing.T) {
	goFiles(t, func(path string, lines []string, set *token.FileSet, file *ast.File) {
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "suites/language") || strings.HasSuffix(path, "renamed.go") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			line := set.Position(literal.Pos()).Line
			if word, replacement := replacedIn(literal.Value, replaced, american); word != "" && !documentsOldName(lines[line-1]) {
				t.Errorf("%s:%d: the string has the word %q; use %s", path, line, word, replacement)
			}
			return true
		})
	})
	walk(t, func(path string) {
		switch filepath.Ext(path) {
		case ".md", ".yaml", ".yml", ".tmpl":
		default:
			return
		}
		if filepath.Base(path) == "CHANGELOG.md" {
			return
		}
		scanLines(t, path, func(n int, line string) {
			if documentsOldName(line) {
				return
			}
			if word, replacement := replacedIn(line, replaced, american); word != "" {
				t.Errorf("%s:%d: the line has the word %q; use %s", path, n, word, replacement)
			}
		})
	})
}

// TestSentences tests sentences, identifierWords and replacedIn.
func TestSentences(t *testing.T) {
	got := sentences("Run runs it, e.g. twice. It returns an error: the first one. See a.b.c for more")
	want := []string{"Run runs it, e.g. twice.", "It returns an error: the first one.", "See a.b.c for more"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("sentences %q, want %q", got, want)
	}
	for name, want := range map[string]string{"podTally": "pod Tally", "late_pods": "late pods", "HTTPTruth": "HTTPTruth", "rolloutJudge": "rollout Judge"} {
		if got := identifierWords(name); got != want {
			t.Errorf("identifierWords(%s) = %q, want %q", name, got, want)
		}
	}
	if word, _ := replacedIn("two Ledgers of it", replaced); word != "Ledgers" {
		t.Errorf("found %q in a text with a replaced word, want Ledgers", word)
	}
}

// documentsOldName reports whether a text says that it documents an old name or an old format.
// Such a text may contain replaced words.
func documentsOldName(text string) bool {
	for _, reason := range []string{"old name", "format 1", "schema 1"} {
		if strings.Contains(text, reason) {
			return true
		}
	}
	return false
}

// docComments returns the doc comments of a file: those of its package clause and of its
// declarations.
func docComments(file *ast.File) map[*ast.CommentGroup]bool {
	docs := map[*ast.CommentGroup]bool{file.Doc: true}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			docs[d.Doc] = true
		case *ast.GenDecl:
			docs[d.Doc] = true
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					docs[s.Doc] = true
				case *ast.ValueSpec:
					docs[s.Doc] = true
				}
			}
		}
	}
	return docs
}

// goFiles calls visit for each Go file of the project, except generated files. The arguments of
// visit are the path, the lines and the syntax tree of the file.
func goFiles(t *testing.T, visit func(path string, lines []string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	walk(t, func(path string) {
		if filepath.Ext(path) != ".go" {
			return
		}
		source, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if !ast.IsGenerated(file) {
			visit(path, strings.Split(string(source), "\n"), set, file)
		}
	})
}

// walk calls visit with the path of each file of the project, relative to root. It skips the
// directories .git, bin, out and testdata.
func walk(t *testing.T, visit func(path string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path == ".git" || path == "bin" || path == "out" || entry.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		visit(path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// scanLines calls visit with each line of a file. The first line has the number 1.
func scanLines(t *testing.T, path string, visit func(n int, line string)) {
	t.Helper()
	file, err := os.Open(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		visit(n, lines.Text())
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}
