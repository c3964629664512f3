package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFindPackage checks which Go packages can be subjects. A wrong package must be found before the
// compiler names a generated file.
func TestFindPackage(t *testing.T) {
	const header = "package m\n"
	for _, test := range []struct{ name, module, code, want string }{
		{"valid", "module m\n", header + "func Run(a, b int) error { return nil }\n", ""},
		{"a variable", "module m\n", header + "var Run = f\n", ""},
		{"no function", "module m\n", header + "type T int\nfunc (T) Run(a, b int) error { return nil }\n", "found no function Run in package m; expected the function Run(ctx context.Context, config *rest.Config) error"},
		{"no parameters", "module m\n", header + "func Run() {}\n", "found the function Run of package m with 0 parameters and 0 results; expected the function Run("},
		{"package main", "module m\n", "package main\nfunc main() {}\n", "found package main, which no program can import"},
		{"no module", "", header, "found a package outside of a module; expected a directory with a go.mod file in it or above it"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			files := map[string]string{"m.go": test.code}
			if test.module != "" {
				files["go.mod"] = test.module + "go 1.24\n"
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := findPackage(t.Context(), dir)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v; want %q", err, test.want)
			}
		})
	}
}

// TestInvalidFile checks that checkRun leaves the errors of a file that cannot be parsed to the
// compiler.
func TestInvalidFile(t *testing.T) {
	g := &goPackage{Dir: t.TempDir(), GoFiles: []string{"m.go"}}
	if err := os.WriteFile(filepath.Join(g.Dir, "m.go"), []byte("package m\nfunc {\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := g.checkRun(); err != nil {
		t.Errorf("error %v; want none", err)
	}
}
