package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
)

// TestRequireNested checks which replace directives with directories the go.mod for a build keeps.
func TestRequireNested(t *testing.T) {
	module := downloadedModule{Path: "example.com/operator", Version: "v1.2.3", Dir: t.TempDir()}
	for _, dir := range []string{"third_party/logs", "api"} { // api has no go.mod, because it is a module of its own
		if err := os.MkdirAll(filepath.Join(module.Dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(module.Dir, "third_party/logs/go.mod"), []byte("module example.com/logs\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	content, err := module.requireNested([]byte(`module example.com/operator

go 1.24

require (
	example.com/logs v0.1.0
	example.com/operator/api v0.0.0-00010101000000-000000000000
	example.com/other v1.0.0
	example.com/shared v1.1.0
)

replace example.com/operator/api => ./api

replace (
	example.com/logs => ./third_party/logs
	example.com/other => example.com/fork v1.0.1
	example.com/shared v1.1.0 => ../shared
)
`))
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse("go.mod", content, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range mod.Require {
		got = append(got, r.Mod.String())
	}
	for _, r := range mod.Replace {
		got = append(got, r.Old.String()+" => "+r.New.String())
	}
	want := []string{
		"example.com/logs@v0.1.0", "example.com/operator/api@v1.2.3", "example.com/other@v1.0.0", "example.com/shared@v1.2.3",
		"example.com/logs => ./third_party/logs", "example.com/other => example.com/fork@v1.0.1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requirements and replacements (-want +got):\n%s", diff)
	}
}

// TestRequireNestedRejectsInvalidFile checks that the error names the file go.mod.
func TestRequireNestedRejectsInvalidFile(t *testing.T) {
	_, err := downloadedModule{}.requireNested([]byte("replace\n"))
	if err == nil || !strings.Contains(err.Error(), "go.mod:1") {
		t.Errorf("got error %v, want one with go.mod:1", err)
	}
}

func TestDownloadReason(t *testing.T) {
	for text, want := range map[string]string{
		"module example.com/a: not found":   "not found",
		"example.com/a@v1: invalid version": "invalid version",
		"example.com/a@v1: reading https://proxy/example.com/a/@v/v1.info: 404 Not Found\n\tserver response: none": "https://proxy: 404 Not Found server response: none",
		"no space left on device": "no space left on device",
	} {
		if got := downloadReason("example.com/a", "v1", text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
