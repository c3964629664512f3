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

// examples contains an example for each fault type: one entry of the list of faults in a
// scenario.
var examples = map[string]string{
	"api-error": `- api-error: {verb: create, resource: pods, owner: ReplicaSet/web, code: 429, retryAfterSeconds: 1, every: 3}
  for: 5s`,
	"request-reset": `- request-reset: {verb: update, resource: deployments.apps, subresource: status, breaks: request, times: 5}`,
	"request-slow": `- request-slow: {verb: delete, resource: pods, delay: 200ms, jitter: 100ms}
  for: 5s`,
	"request-hang": `- request-hang: {verb: create, resource: pods, nth: 4, within: 3s, then: pass}`,
	"response-lost": `- response-lost: {verb: create, resource: pods, probability: 0.2, how: error, code: 504}
  for: 5s`,
	"watch-delay": `- watch-delay: {resource: pods, delay: 500ms}
  for: 5s`,
	"watch-stall": `- watch-stall: {resource: replicasets.apps}
  for: 5s`,
	"watch-end": `- watch-end: {resource: pods, how: expired, blind: 500ms, every: 2s}
  for: 10s`,
	"bookmark-loss": `- bookmark-loss: {resource: pods}`,
	"stale-list": `- stale-list: {resource: pods}
  for: 5s
- watch-end: {resource: pods, how: expired} # makes the subject list again
  from: 1s`,
	"pod-churn": `- pod-churn: {action: delete, selector: app=web, every: 100ms, gracePeriodSeconds: 0}
  for: 5s`,
	"pod-relabel": `- pod-relabel: {label: app, downtime: 1s, every: 500ms, times: 5}`,
	"pod-disown":  `- pod-disown: {how: give, every: 500ms, times: 3}`,
	"pod-pending": `- pod-pending: {prefix: web-}
  for: 5s`,
	"restart": `- restart: {how: terminate, downtime: 500ms, times: 3, every: 2s}`,
	"crash": `- crash: {downtime: 500ms}
  when: {request: {verb: create, resource: pods, owner: ReplicaSet/web, nth: 3, phase: committed}}`,
	"freeze": `- freeze: {replica: leader}
  for: 20s`,
	"node-cordon": `- node-cordon: {count: 2}
  for: 5s`,
	"node-drain":         `- node-drain: {count: 1, patience: 10s}`,
	"node-taint":         `- node-taint: {count: 1, effect: NoExecute}`,
	"node-not-ready":     `- node-not-ready: {count: 1}`,
	"node-stop":          `- node-stop: {count: 1}`,
	"node-cut-off":       `- node-cut-off: {count: 1}`,
	"node-delete":        `- node-delete: {count: 1}`,
	"api-server-restart": `- api-server-restart: {downtime: 2s}`,
	"etcd-restart":       `- etcd-restart: {downtime: 2s}`,
	"etcd-compact": `- etcd-compact: {every: 200ms}
- api-server-restart: {downtime: 1s} # the new API server cannot serve compacted versions
  from: 1s`,
	"clock-skew": `- clock-skew: {ahead: -30s}`,
	"name-taken": `- name-taken: {owner: Deployment/app, template: other, times: 2}`,
	"quota-exhausted": `- quota-exhausted: {left: 3}
  for: 5s`,
	"admission-denied": `- admission-denied: {resource: pods, reason: Forbidden}
  for: 5s`,
	"namespace-terminating": `- namespace-terminating: {}
  from: 5s
  for: 5s`,
	"user-edit": `- user-edit:
    steps:
      - scale: {kind: ReplicaSet, name: web, replicas: 3}
  when: {request: {verb: create, resource: pods, owner: ReplicaSet/web, nth: 5}}`,
}

// workload is the rest of a scenario that contains an example. It creates the objects that
// the examples name.
const workload = `name: example
description: An example of the reference; a broken controller does not converge after the fault.
exercises: [converged]
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 10}
  - create: {kind: Deployment, name: app, replicas: 6}
faults:
`

// TestReferenceExamples checks that every example is valid in a scenario, and that it
// contains its fault type.
func TestReferenceExamples(t *testing.T) {
	for _, faultType := range All {
		text := workload + indent(examples[faultType.Name])
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
	for name := range examples {
		if _, err := Find(name); err != nil {
			t.Error(err)
		}
	}
}

// TestReference checks that docs/reference/faults.md is what the catalog generates. With
// -update it writes the file.
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
[triggers.md](triggers.md). The fault is injected at the start of that time and healed at
its end. After all faults are healed, the controllers must converge.

The *subject* is the controllers under test. The *fault proxy* is between the subject and
the API server; all other clients bypass it. A *firing* is one effect of a fault on a
request or an object, and has a record in the history. A request *matches* if it has the
given verb, resource and so on. At most one of ` + "`nth`, `every` and `probability`" + ` selects the
matching requests at which the fault fires.

Durations are written as in ` + "`500ms`, `10s` or `5m`" + `. A glob contains ` + "`*`, `?` or `[a-z]`" + `.

| fault | effect |
|---|---|
`

// reference returns the content of docs/reference/faults.md.
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

// section returns the section about one fault type.
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
	fmt.Fprintf(&b, "```yaml\nfaults:\n%s```\n", indent(examples[faultType.Name]))
	return b.String()
}

// cell escapes text for use in a cell of a Markdown table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`).Replace(text)
}

// indent indents an example as an entry of the list faults.
func indent(example string) string {
	return "  " + strings.ReplaceAll(example, "\n", "\n  ") + "\n"
}
