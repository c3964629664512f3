package reports

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/compare"
)

// Annotations writes GitHub Actions workflow commands, which show the failures as annotations of
// the CI job.
//
// Failures with the same reason form a group, and each group becomes one command. The command is an
// error for the verdict fail, a warning for unknown, and a notice for known-upstream. GitHub
// documents the format in "Workflow commands for GitHub Actions".
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

// ComparedAnnotations writes GitHub Actions workflow commands for comparisons of two subjects. It
// writes an error for each undeclared difference, and for each guarantee that both subjects
// violate.
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

// annotate adds one workflow command to the text in b. The command is an error for the verdict
// fail, a notice for known-upstream, and a warning for any other verdict.
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

// writeAnnotations writes the collected workflow commands to w.
func writeAnnotations(w io.Writer, b *strings.Builder) error {
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing annotations: %w", err)
	}
	return nil
}

// These replacers escape the characters that have a special meaning in a workflow command. The
// variable message is for the command's text, and property is for its properties, such as the
// title.
var (
	message  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
