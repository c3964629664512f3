package reports

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/compare"
)

// Annotations writes the commands by which a job of GitHub Actions gets
// annotations: an error for each distinct failure, a warning for each distinct
// verdict that is unknown, a notice for what upstream is known for. What the runner
// understands is written down in "Workflow commands for GitHub Actions".
func Annotations(w io.Writer, runs []Run) error {
	var b strings.Builder
	for _, f := range groupFailures(runs) {
		title := fmt.Sprintf("%s on %s", f.scenarioText(), f.subject)
		if f.check != "" {
			title = f.check + ": " + title
		}
		annotate(&b, f.verdict, title, fmt.Sprintf("%s (in %s)\nagain: %s", f.reason, countRuns(f.runs), f.smallest.Reproduce))
	}
	return writeAnnotations(w, &b)
}

// ComparedAnnotations does the same of comparisons: an error for each difference that
// nobody has declared, and for each guarantee that both subjects break.
func ComparedAnnotations(w io.Writer, comparisons []Comparison) error {
	var b strings.Builder
	for _, c := range comparisons {
		for _, f := range c.distinct() {
			if f.Classification != compare.Undeclared && f.Classification != compare.BothWrong {
				continue
			}
			annotate(&b, check.Fail, fmt.Sprintf("%s: %s", c.Scenario, f.Classification), fmt.Sprintf("%s, %s; %s: %s; %s: %s (in %d of %d pairs, first with seed %d)",
				f.Object, aspect(f.Difference), c.Subject, cmp.Or(f.Subject, "none"), c.Base, cmp.Or(f.Base, "none"), f.pairs, len(c.Pairs), c.Pairs[f.first].Subject.Seed))
		}
	}
	return writeAnnotations(w, &b)
}

// annotate writes one annotation.
func annotate(b *strings.Builder, verdict check.Verdict, title, text string) {
	command := "warning"
	switch verdict {
	case check.Fail:
		command = "error"
	case check.KnownUpstream:
		command = "notice"
	}
	fmt.Fprintf(b, "::%s title=%s::%s\n", command, property.Replace(title), message.Replace(text))
}

func writeAnnotations(w io.Writer, b *strings.Builder) error {
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing annotations: %w", err)
	}
	return nil
}

// How workflow commands take what would end them.
var (
	message  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
