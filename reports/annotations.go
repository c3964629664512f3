package reports

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/compare"
)

// Annotations writes GitHub Actions workflow commands that annotate a job. A failure group
// becomes an error, an unknown verdict a warning, and a known upstream issue a notice.
// GitHub documents the format in "Workflow commands for GitHub Actions".
func Annotations(w io.Writer, runs []Run) error {
	var b strings.Builder
	for _, f := range groupFailures(runs) {
		title := fmt.Sprintf("%s on %s", f.scenarioText(), f.subject)
		if f.check != "" {
			title = f.check + ": " + title
		}
		annotate(&b, f.verdict, title, fmt.Sprintf("%s (in %s)\nreproduce: %s", f.reason, countRuns(f.runs), f.smallest.Reproduce))
	}
	return writeAnnotations(w, &b)
}

// ComparedAnnotations writes workflow commands for comparisons. Each undeclared difference,
// and each guarantee that both subjects violate, becomes an error.
func ComparedAnnotations(w io.Writer, comparisons []Comparison) error {
	var b strings.Builder
	for i := range comparisons {
		c := comparisons[i].summarize()
		for _, d := range c.Differences {
			if d.Classification != compare.Undeclared && d.Classification != compare.BothWrong {
				continue
			}
			annotate(&b, check.Fail, fmt.Sprintf("%s: %s", c.Scenario, d.Classification), fmt.Sprintf("%s, %s; %s: %s; %s: %s (in %s pairs, first with seed %d)",
				d.Object, aspect(d.Difference), c.Subject, cmp.Or(d.Subject, "none"), c.Base, cmp.Or(d.Base, "none"), d.In(), d.first.Subject.Seed))
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

// message escapes the characters that workflow commands reserve in messages, and property
// those that they reserve in properties.
var (
	message  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
