package catalog

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the README's table of faults anew")

// TestReadme: the README's table of faults is the catalogue.
func TestReadme(t *testing.T) {
	const head = "| fault | what goes wrong |\n|---|---|\n"
	path := filepath.Join("..", "..", "README.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), head)
	table, after, ended := strings.Cut(rest, "\n\n")
	if !found || !ended {
		t.Fatalf("%s: found no table of faults; expected one that begins with %q", path, head)
	}
	var rows []string
	for _, kind := range All {
		rows = append(rows, fmt.Sprintf("| `%s` | %s |", kind.Name, kind.Description))
	}
	want := strings.Join(rows, "\n")
	if *update {
		if err := os.WriteFile(path, []byte(before+head+want+"\n\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("%s: the table of faults is not the catalogue; run make golden (-catalogue +README):\n%s", path, diff)
	}
}
