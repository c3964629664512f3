package catalog

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

var update = flag.Bool("update", false, "write docs/reference/faults.md")

// workload is a scenario in YAML that ends with an empty list faults. The tests append an
// example to this list. The workload creates the objects that the examples name.
const workload = `name: example
description: An example of the reference; a broken controller does not converge after the fault.
exercises: [converged]
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 10}
  - create: {kind: Deployment, name: app, replicas: 6}
faults:
`

// TestReferenceExamples checks that every example is valid in a scenario. The example of a fault
// type must contain a fault of this type.
func TestReferenceExamples(t *testing.T) {
	for _, faultType := range All {
		text := workload + indent(Examples[faultType.Name])
		s, err := scenario.Parse(faultType.Name+".yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", faultType.Name, err)
			continue
		}
		found := false
		for _, fault := range s.Faults {
			found = found || fault.Name == faultType.Name
			known, err := Find(fault.Name)
			if err == nil {
				_, err = known.New(fault.Params)
			}
			if err != nil {
				t.Errorf("%s: %v", faultType.Name, err)
			}
		}
		if !found {
			t.Errorf("the example of %s does not contain the fault", faultType.Name)
		}
	}
	for name := range Examples {
		if _, err := Find(name); err != nil {
			t.Error(err)
		}
	}
}

// TestReference checks that docs/reference/faults.md is what the catalog generates. With the
// flag -update, the test writes the file.
func TestReference(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "reference", "faults.md")
	want := reference()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
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
		t.Errorf("%s is stale; run make golden (-catalog +file):\n%s", path, diff)
	}
}

const referenceHead = `# Faults

<!-- Generated from faults/catalog by ` + "`make golden`" + `. Do not edit. -->

A scenario lists its faults under ` + "`faults`" + `. Each entry has the fault type, its
parameters, and optionally the fields ` + "`when`, `until`, `from`, `for` and `times`" + `, which
decide when the fault is in force; see [scenario.md](scenario.md) and
[triggers.md](triggers.md). The run injects the fault when the fault comes into force, and
heals it at the end of this time. After all faults are healed, the controllers must
converge. With ` + "`mustFire: true`" + `, the verdict of a run is unknown if the fault never
fires.

The *subject* is the controllers under test. The *fault proxy* is between the subject and
the API server; all other clients bypass it. A *firing* is one effect of a fault on a
request or an object, and has a record in the history. A request *matches* if it has the
given verb, resource and so on. At most one of ` + "`nth`, `every` and `probability`" + ` selects the
matching requests at which the fault fires.

For ` + "`nth`" + ` and ` + "`every`" + `, each entry counts its matching requests separately. The count
includes the requests of all replicas of the subject, for all objects, and starts again from
0 at each injection. For ` + "`watch-delay`" + ` and ` + "`watch-skip`" + `, ` + "`nth`" + ` counts matching events in
the same way. For other faults, ` + "`every`" + ` is an interval, such as ` + "`every: 5s`" + `.

The name ` + "`times`" + ` has two meanings. As a field of the entry, beside ` + "`when`" + `, it limits how often
the fault begins. As a parameter of the fault, it is the number or the maximum number of its
actions after each injection, such as firings, restarts or compactions.

Durations are written as in ` + "`500ms`, `10s` or `5m`" + `. A glob contains ` + "`*`, `?` or `[a-z]`" + `.

| fault | effect |
|---|---|
`

// reference generates the content of docs/reference/faults.md.
func reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	for _, faultType := range All {
		first, _, _ := strings.Cut(faultType.Description, ". ")
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s. |\n", faultType.Name, faultType.Name, cell(strings.TrimSuffix(first, ".")))
	}
	for _, faultType := range All {
		b.WriteString("\n" + section(faultType))
	}
	return b.String()
}

// section returns the section of docs/reference/faults.md about one fault type.
func section(faultType faults.Type) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n\n", faultType.Name, faultType.Description)
	fmt.Fprintf(&b, "- **Healing:** %s\n", faultType.Healing)
	fmt.Fprintf(&b, "- **Providers:** %s\n", strings.Join(providers.With(faultType.Needs...), ", "))
	if faultType.Outage {
		b.WriteString("- **Outage:** The control plane is unavailable while the fault is in force.\n")
	}
	if faultType.Sample != nil {
		b.WriteString("- **Generated scenarios:** yes\n\n")
	} else {
		fmt.Fprintf(&b, "- **Generated scenarios:** no: %s\n\n", faultType.NotGeneratedReason)
	}
	if len(faultType.Params) == 0 {
		b.WriteString("The fault has no parameters.\n\n")
	} else {
		b.WriteString("| parameter | description | values | default |\n|---|---|---|---|\n")
		for _, param := range faultType.Params {
			value := param.Default
			if value == "" {
				value = "required"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", param.Name, cell(param.Description), cell(param.Bounds), cell(value))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "```yaml\nfaults:\n%s```\n", indent(Examples[faultType.Name]))
	return b.String()
}

// cell escapes text for use in a cell of a Markdown table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`).Replace(text)
}

// indent indents an example so that it can follow the key faults of a scenario.
func indent(example string) string {
	return "  " + strings.ReplaceAll(example, "\n", "\n  ") + "\n"
}
