package providers

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

var update = flag.Bool("update", false, "write docs/providers/README.md")

const referenceHead = `# Providers

<!-- Generated from harness/cluster/providers by ` + "`make golden`" + `. Do not edit. -->

A provider gives a run its control plane. After reading this page, you know what each
provider can do. The flag ` + "`--provider`" + ` selects one by its name. Faults, scenarios and suites
never ask for a name. They ask for capabilities, and are refused on a provider that lacks
one of them.

`

// TestReference verifies that docs/providers/README.md matches the table [All]. With the flag
// -update, the test writes the file.
func TestReference(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "providers", "README.md")
	want := reference()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run make golden", err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is stale; run make golden (-table +file):\n%s", path, diff)
	}
}

// reference returns the expected content of docs/providers/README.md.
func reference() string {
	var b strings.Builder
	b.WriteString(referenceHead + "| capability |")
	for _, name := range Names() {
		fmt.Fprintf(&b, " [%s](%s.md) |", name, name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(All)) + "\n")
	var listed []cluster.Capability
	for _, p := range All {
		for _, c := range p.Capabilities {
			if slices.Contains(listed, c) {
				continue
			}
			listed = append(listed, c)
			fmt.Fprintf(&b, "| %s |", c)
			for _, p := range All {
				mark := "–"
				if p.Capabilities.Has(c) {
					mark = "yes"
				}
				fmt.Fprintf(&b, " %s |", mark)
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\nThe comments in `harness/cluster/capability.go` define the capabilities.\n")
	b.WriteString("\nSome flags have an effect on single providers only. The other providers refuse them:\n\n| flag | providers |\n|---|---|\n")
	var flags []string
	for _, p := range All {
		flags = append(flags, p.Flags...)
	}
	slices.Sort(flags)
	for _, flag := range slices.Compact(flags) {
		fmt.Fprintf(&b, "| `--%s` | %s |\n", flag, strings.Join(withFlag(flag), ", "))
	}
	return b.String()
}
