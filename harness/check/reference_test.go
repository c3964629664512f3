package check

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

var update = flag.Bool("update", false, "write the generated pages in docs")

// generated is a note on each generated page, which says how to update the page.
const generated = "`make golden` generates this page from the tables in `harness/check`.\n"

// TestReference requires that the generated pages in docs are up to date with the tables of
// this package. With -update, it writes the pages.
func TestReference(t *testing.T) {
	for file, write := range map[string]func(page *bytes.Buffer){
		"reference/checks.md":      writeChecks,
		"allowed-behaviors.md":     writeAllowedBehaviors,
		"known-upstream-issues.md": writeKnownIssues,
	} {
		var page bytes.Buffer
		write(&page)
		path := filepath.Join("..", "..", "docs", filepath.FromSlash(file))
		if *update {
			if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if content, err := os.ReadFile(path); err != nil || !bytes.Equal(content, page.Bytes()) {
			t.Errorf("docs/%s is stale (%v): run `make golden`", file, err)
		}
	}
}

// writeChecks writes docs/reference/checks.md.
func writeChecks(page *bytes.Buffer) {
	page.WriteString(`# Checks

Each check defends one guarantee of the controllers under test. A check reads the
history of a run and nothing else. A safety check applies throughout the run. A
liveness check applies after all faults are healed.

A general check applies to every controller. A check of a contract applies to the
controllers with the named [trait](#traits). If no controller under test has the trait, the
verdict is ` + "`not-exercised`" + `.

The contract column refers to a statement in
[CONTRACT.md](../../controllers/CONTRACT.md), or to the documentation of Kubernetes. Verdicts are explained in
[verdicts.md](verdicts.md). The field ` + "`exercises`" + ` of a scenario lists the checks that every
run of it must exercise. The line "exercised when" of a check says which event counts. Without
such an event, the verdict is ` + "`not-exercised`" + `.

` + generated + "\n| check | scope | class | guarantee | contract |\n|---|---|---|---|---|\n")
	for _, c := range All {
		fmt.Fprintf(page, "| [`%s`](#%s) | %s | %s | %s | %s |\n", c.ID, c.ID, c.Scope, c.Property, c.Guarantee, c.Contract)
	}
	page.WriteString("\n## Traits\n\nA trait says how a controller works. `gauntlet list controllers` prints the traits of each controller.\n\n| trait | meaning |\n|---|---|\n")
	for _, row := range kube.Traits {
		fmt.Fprintf(page, "| `%s` | %s |\n", row.Trait, row.Meaning)
	}
	for _, c := range All {
		fmt.Fprintf(page, "\n## %s\n\n%s\n\n- scope: %s\n- class: %s\n- contract: %s\n- exercised when: %s\n- source: [check_%s.go](../../harness/check/check_%s.go)\n",
			c.ID, c.Guarantee, c.Scope, c.Property, c.Contract, c.ExercisedWhen, fileSlug(c.ID), fileSlug(c.ID))
		if c.Ignores != "" {
			fmt.Fprintf(page, "- ignores: %s\n", c.Ignores)
		}
		if len(c.AllowedBehaviors) > 0 {
			fmt.Fprintf(page, "- allowed behaviors: %s\n", links(c.AllowedBehaviors, "../allowed-behaviors.md"))
		}
		var issues []string
		for _, issue := range KnownIssues {
			if issue.Check == c.ID {
				issues = append(issues, issue.Slug)
			}
		}
		if len(issues) > 0 {
			fmt.Fprintf(page, "- known upstream issues: %s\n", links(issues, "../known-upstream-issues.md"))
		}
	}
}

// writeAllowedBehaviors writes docs/allowed-behaviors.md.
func writeAllowedBehaviors(page *bytes.Buffer) {
	page.WriteString(`# Allowed behaviors

A correct controller may do what this page lists, although it looks like a violation. A
check that reports such a behavior has raised a false alarm. Code and scenarios refer to
a behavior by its slug.

Known bugs of upstream's controllers are in
[known-upstream-issues.md](known-upstream-issues.md).

` + generated)
	topic := ""
	for _, behavior := range AllowedBehaviors {
		if behavior.Topic != topic {
			topic = behavior.Topic
			fmt.Fprintf(page, "\n## %s\n", topic)
		}
		fmt.Fprintf(page, "\n### %s\n\n%s\n", behavior.Slug, behavior.Behavior)
		if len(behavior.Handling) > 0 {
			page.WriteString("\nHow checks account for it:\n\n")
		}
		for _, handling := range behavior.Handling {
			checks, text, _ := strings.Cut(handling, ": ")
			fmt.Fprintf(page, "- %s: %s\n", codes(checks), text)
		}
	}
	page.WriteString(`
## How far back a decision may date

A controller acts on its caches, which lag behind the committed state. A cached version
justifies a write only if it is not older than any of the following:

- the version of the object that the write is based on,
- the version of the Deployment that the process used in an earlier write,
- the version behind the status update before the last one,
- the version in the cache when the process last had no request in flight for the object
  and sent none for a while.
`)
}

// writeKnownIssues writes docs/known-upstream-issues.md.
func writeKnownIssues(page *bytes.Buffer) {
	page.WriteString(`# Known upstream issues

Kubernetes v1.36 has the following bugs. If upstream's controllers violate a guarantee
because of one, the verdict is ` + "`known-upstream`" + `. The same holds for mutants of them; any other
subject fails. Our controllers do not have these bugs: ` + "`suites/regression`" + ` has a scenario for each, which must be
` + "`known-upstream`" + ` on upstream and ` + "`pass`" + ` on ours.

` + generated)
	for _, issue := range KnownIssues {
		fmt.Fprintf(page, "\n## %s\n\n%s\n\n%s\n\n", issue.Slug, issue.Description, issue.Reproduce)
		if issue.Issue != "" {
			fmt.Fprintf(page, "- issue: %s\n", issue.Issue)
		}
		fmt.Fprintf(page, "- check: [`%s`](reference/checks.md#%s)\n- scenario: [suites/regression/%s.yaml](../suites/regression/%s.yaml)", issue.Check, issue.Check, issue.Slug, issue.Slug)
		if issue.Slow {
			page.WriteString(" (takes minutes)")
		}
		page.WriteByte('\n')
	}
	page.WriteString("\n## Issues that no check recognizes\n\ngauntlet has no scenario for these issues, because no check could distinguish them from a failure. Do not write scenarios that cause those that occur on the version under test.\n")
	for _, issue := range UnrecognizedIssues {
		fmt.Fprintf(page, "\n### %s\n\n%s %s\n", issue.Slug, issue.Description, issue.Reproduce)
		if issue.Issue != "" {
			fmt.Fprintf(page, "\n- issue: %s\n", issue.Issue)
		}
	}
}

// TestAllowedBehaviors requires that the table of allowed behaviors names only checks that
// exist. It also requires that checks name only allowed behaviors that exist.
func TestAllowedBehaviors(t *testing.T) {
	slugs := map[string]bool{}
	for _, behavior := range AllowedBehaviors {
		if slugs[behavior.Slug] {
			t.Errorf("allowed behavior %s occurs twice", behavior.Slug)
		}
		slugs[behavior.Slug] = true
		for _, handling := range behavior.Handling {
			checks, _, found := strings.Cut(handling, ": ")
			for id := range strings.SplitSeq(checks, ", ") {
				if _, ok := Find(id); !found || !ok && id != "all" {
					t.Errorf("allowed behavior %s: %q is no check ID", behavior.Slug, id)
				}
			}
		}
	}
	for _, c := range All {
		for _, slug := range c.AllowedBehaviors {
			if !slugs[slug] {
				t.Errorf("check %s: %q is no allowed behavior", c.ID, slug)
			}
		}
	}
	if !slices.IsSortedFunc(AllowedBehaviors, func(a, b AllowedBehavior) int {
		topics := []string{topicCounting, topicStatus, topicEndpoints, topicTime}
		return slices.Index(topics, a.Topic) - slices.Index(topics, b.Topic)
	}) {
		t.Error("AllowedBehaviors is not grouped by topic")
	}
}

// fileSlug converts a check ID to its form in file names, with underscores.
func fileSlug(id string) string { return strings.ReplaceAll(id, "-", "_") }

// links returns one Markdown link for each slug, to the section with that slug on the given
// page.
func links(slugs []string, page string) string {
	var all []string
	for _, slug := range slugs {
		all = append(all, fmt.Sprintf("[%s](%s#%s)", slug, page, slug))
	}
	return strings.Join(all, ", ")
}

// codes formats a comma-separated list of check IDs as Markdown code.
func codes(checks string) string {
	if checks == "all" {
		return "all checks"
	}
	return "`" + strings.ReplaceAll(checks, ", ", "`, `") + "`"
}
