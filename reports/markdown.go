package reports

import (
	"fmt"
	"io"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// maxEvidence bounds how many violations of one check the summary of a CI job
// shows: such summaries are cut off at a megabyte.
const maxEvidence = 3

// Markdown writes the runs as the summary of a CI job: a table of the runs, the
// worst first, each thing that is wrong once, however many runs show it, then every
// verdict folded away by run. Its links lead to the runs' pages as seen from the
// directory dir.
func Markdown(w io.Writer, runs []Run, dir string) error {
	var b strings.Builder
	verdict, reason := summarize(runs)
	fmt.Fprintf(&b, "## gauntlet: %s %s\n\n%s.\n\n", verdictSymbols[verdict], verdict, escape(reason))
	listed := withDirectory(sorted(runs))
	markdownRuns(&b, listed, dir)
	if gone := len(runs) - len(listed); gone > 0 {
		fmt.Fprintf(&b, "Not listed, because they passed and were not kept: %s.\n\n", countRuns(gone))
	}
	for _, f := range groupFailures(runs) {
		f.markdown(&b)
	}
	if len(listed) > 0 {
		b.WriteString("### Runs\n\n")
	}
	for _, run := range listed {
		run.markdownTable(&b)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the verdicts as Markdown: %w", err)
	}
	return nil
}

// markdownRuns writes a row a run, as many as a person reads.
func markdownRuns(b *strings.Builder, runs []Run, dir string) {
	if len(runs) == 0 {
		return
	}
	const rowsMax = 100
	b.WriteString("| verdict | scenario | subject | seed | broken | page |\n|-|-|-|-:|-|-|\n")
	for i, run := range runs {
		if i == rowsMax {
			fmt.Fprintf(b, "| | and %d more | | | | |\n", len(runs)-rowsMax)
			break
		}
		var broken []string
		for _, result := range run.notPassed() {
			if result.Verdict == run.Verdict {
				broken = append(broken, code(result.Check))
			}
		}
		fmt.Fprintf(b, "| %s %s | %s | %s | %d | %s | [page](<%s>) |\n", verdictSymbols[run.Verdict], run.Verdict,
			escape(run.Scenario), code(run.Subject), run.Seed, strings.Join(broken, " "), pageOf(&run, dir))
	}
	b.WriteString("\n")
}

// verdictSymbols make verdicts stand out where there is no colour.
var verdictSymbols = map[check.Verdict]string{check.Fail: "❌", check.Unknown: "❔", check.KnownUpstream: "📌", check.Pass: "✅", check.NotExercised: "💤"}

// markdown writes what went wrong, as the smallest run shows it.
func (f failureGroup) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "### %s %s on %s: %s\n\n", verdictSymbols[f.verdict], escape(f.scenarioText()), escape(f.subject), escape(f.title()))
	if f.runs > 1 {
		fmt.Fprintf(b, "In %s, the smallest of which has seed %d.\n\n", countRuns(f.runs), f.smallest.Seed)
	}
	b.WriteString(escape(f.reason) + "\n\n")
	if result, ok := f.smallest.result(f.check); ok {
		markdownEvidence(b, result)
	}
	fmt.Fprintf(b, "Again: %s\n\n", code(f.smallest.Reproduce))
}

// markdownEvidence writes what guarantee was broken, and what shows it.
func markdownEvidence(b *strings.Builder, result check.Result) {
	if known, ok := check.Find(result.Check); ok {
		fmt.Fprintf(b, "> %s (%s)\n\n", escape(known.Guarantee), escape(known.Contract))
	}
	shown := result
	shown.Evidence = result.Evidence[:min(len(result.Evidence), maxEvidence)]
	for _, e := range shown.Evidence {
		for i, line := range evidence(e) {
			indent := "  - "
			if i == 0 {
				indent = "- "
			}
			b.WriteString(indent + escape(line) + "\n")
		}
	}
	if rest := more(shown); rest != "" {
		fmt.Fprintf(b, "- %s\n", rest)
	}
	if len(shown.Evidence) > 0 {
		b.WriteString("\n")
	}
}

// markdownTable writes every verdict of a run, folded away.
func (r *Run) markdownTable(b *strings.Builder) {
	fmt.Fprintf(b, "<details><summary>%s %s: %s in %.1f s</summary>\n\n%s\n\n",
		verdictSymbols[r.Verdict], escape(r.Scenario), r.Verdict, r.Duration.Seconds(), escape(r.Description))
	fmt.Fprintf(b, "Subject %s on %s, seed %d: %s\n\nAgain: %s. See %s.\n\n",
		code(r.Subject), code(r.Provider), r.Seed, escape(r.Reason), code(r.Reproduce), code(r.Directory))
	if len(r.Results) > 0 {
		b.WriteString("| check | verdict | tested | why |\n|-|-|-:|-|\n")
		for _, result := range r.sortedResults() {
			fmt.Fprintf(b, "| %s | %s %s | %d | %s |\n",
				escape(result.Check), verdictSymbols[result.Verdict], result.Verdict, result.Exercised, escape(result.Reason))
		}
		b.WriteString("\n")
	}
	b.WriteString("</details>\n\n")
}

// markup is what Markdown would take for markup.
var markup = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "&", "&amp;",
	"|", `\|`, "~", `\~`, "\n", " ", "\r", " ")

// escape makes text of one line that shows as it is.
func escape(text string) string {
	text = markup.Replace(text)
	if strings.HasPrefix(text, "#") { // a heading; elsewhere it may be the number of an issue
		return `\` + text
	}
	return text
}

// code sets text as code, whatever backticks it has.
func code(text string) string {
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	text = strings.ReplaceAll(text, "\n", " ")
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") || text == "" {
		text = " " + text + " "
	}
	return fence + text + fence
}
