package reports

import (
	"fmt"
	"io"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// maxEvidence is the maximum number of violations of one check that the Markdown summary
// describes. The limit keeps the summary short, because CI systems truncate a summary of more than
// a megabyte.
const maxEvidence = 3

// Markdown writes runs as Markdown, for the summary page of a CI job.
//
// The summary has a table of the runs, worst first, and a section for each failure group. A
// collapsed table of checks follows for each run. Links to the pages of runs are relative to the
// directory dir.
func Markdown(w io.Writer, runs []Run, dir string) error { return series{runs: runs}.markdown(w, dir) }

// markdown writes the runs of the series as Markdown; see [Markdown].
func (s series) markdown(w io.Writer, dir string) error {
	var b strings.Builder
	verdict, reason := s.summarize()
	fmt.Fprintf(&b, "## gauntlet: %s %s\n\n%s.\n\n", verdictSymbols[verdict], verdict, escape(reason))
	listed := withDirectory(sorted(s.runs))
	markdownRuns(&b, listed, dir)
	if deleted := len(s.runs) - len(listed); deleted > 0 {
		fmt.Fprintf(&b, "Not listed, because they passed and their directories were deleted: %s.\n\n", countRuns(deleted))
	}
	for _, f := range groupFailures(s.runs) {
		f.markdown(&b, dir)
	}
	if len(listed) > 0 {
		b.WriteString("### Runs\n\n")
	}
	for _, run := range listed {
		run.markdownTable(&b, dir)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the verdicts as Markdown: %w", err)
	}
	return nil
}

// markdownRuns writes a table with one row for each of the first 100 runs. If there are more runs,
// a last row says how many are omitted.
func markdownRuns(b *strings.Builder, runs []Run, dir string) {
	if len(runs) == 0 {
		return
	}
	const rowsMax = 100
	b.WriteString("| verdict | scenario | subject | seed | checks | page |\n|-|-|-|-:|-|-|\n")
	for i, run := range runs {
		if i == rowsMax {
			fmt.Fprintf(b, "| | and %d more | | | | |\n", len(runs)-rowsMax)
			break
		}
		var checks []string
		for _, result := range run.notPassed() {
			if result.Verdict == run.Verdict {
				checks = append(checks, link(code(result.Check), checkPageOf(&run, result.Check, dir)))
			}
		}
		fmt.Fprintf(b, "| %s %s | %s | %s | %d | %s | %s |\n", verdictSymbols[run.Verdict], run.Verdict,
			escape(run.Scenario), code(run.Subject), run.Seed, strings.Join(checks, " "), link("page", pageOf(&run, dir)))
	}
	b.WriteString("\n")
}

// verdictSymbols has an emoji for each verdict. Markdown has no colors to distinguish verdicts.
var verdictSymbols = map[check.Verdict]string{check.Fail: "❌", check.Unknown: "❔", check.KnownUpstream: "📌", check.Pass: "✅", check.NotExercised: "💤"}

// markdown writes a section about a failure group. The evidence is from the run of the group with
// the fewest steps and faults.
func (f failureGroup) markdown(b *strings.Builder, dir string) {
	fmt.Fprintf(b, "### %s %s on %s: %s\n\n", verdictSymbols[f.verdict], escape(f.scenarioText()), escape(f.subject), escape(f.title()))
	if f.runs > 1 {
		fmt.Fprintf(b, "In %s. The evidence is from the run with the fewest steps and faults (seed %d).\n\n", countRuns(f.runs), f.smallest.Seed)
	}
	b.WriteString(escape(f.reason) + "\n\n")
	if result, ok := f.smallest.result(f.check); ok {
		markdownEvidence(b, result)
		fmt.Fprintf(b, "All evidence: %s\n\n", link("report page", checkPageOf(f.smallest, f.check, dir)))
	}
	fmt.Fprintf(b, "Reproduce: %s\n\n", code(f.smallest.Reproduce))
}

// markdownEvidence writes the guarantee of a check and the first maxEvidence pieces of evidence.
func markdownEvidence(b *strings.Builder, result check.Result) {
	if definition, ok := check.Find(result.Check); ok {
		fmt.Fprintf(b, "> %s (%s)\n\n", escape(definition.Guarantee), escape(definition.Contract))
	}
	shown := result
	shown.Evidence = result.Evidence[:min(len(result.Evidence), maxEvidence)]
	for _, e := range shown.Evidence {
		for i, line := range EvidenceLines(e) {
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

// markdownTable writes a collapsed section about a run, which contains the table of checks.
func (r *Run) markdownTable(b *strings.Builder, dir string) {
	fmt.Fprintf(b, "<details><summary>%s %s: %s in %s</summary>\n\n%s\n\n",
		verdictSymbols[r.Verdict], escape(r.Scenario), r.Verdict, r.durationText(), escape(r.Description))
	fmt.Fprintf(b, "Subject %s on %s, seed %d: %s\n\nReproduce: %s. Directory: %s.\n\n",
		code(r.Subject), code(r.Provider), r.Seed, escape(r.Reason), code(r.Reproduce), code(r.Directory))
	if text := r.faultsText(); text != "" {
		fmt.Fprintf(b, "Faults: %s.\n\n", escape(text))
	}
	r.markdownResults(b, dir)
	b.WriteString("</details>\n\n")
}

// markdownResults writes the table of checks of a run. It omits the column scope if this version
// of gauntlet knows none of the checks.
func (r *Run) markdownResults(b *strings.Builder, dir string) {
	listed, inapplicable := r.listedResults()
	if len(listed) > 0 {
		header, line := "| check | verdict | exercised | reason |\n", "|-|-|-:|-|\n"
		scopes := showsScopes(listed)
		if scopes {
			header, line = "| check | scope | verdict | exercised | reason |\n", "|-|-|-|-:|-|\n"
		}
		b.WriteString(header + line)
		for _, result := range listed {
			scope := ""
			if scopes {
				scope = scopeOf(result.Check) + " | "
			}
			fmt.Fprintf(b, "| %s | %s%s %s | %d | %s |\n", link(escape(result.Check), checkPageOf(r, result.Check, dir)), scope,
				verdictSymbols[result.Verdict], result.Verdict, result.Exercised, escape(result.Reason))
		}
		b.WriteString("\n")
	}
	if len(inapplicable) > 0 {
		var names []string
		for _, id := range idsOf(inapplicable) {
			names = append(names, code(id))
		}
		fmt.Fprintf(b, "%s: %s.\n\n", countInapplicable(inapplicable), strings.Join(names, ", "))
	}
}

// markup escapes characters that have a special meaning in Markdown, such as * and |.
var markup = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "&", "&amp;",
	"|", `\|`, "~", `\~`, "\n", " ", "\r", " ")

// escape returns text as one line of Markdown that a viewer displays as the original text.
func escape(text string) string {
	text = Printable(markup.Replace(text))
	if strings.HasPrefix(text, "#") { // at the start of a line, # begins a heading; elsewhere it may be an issue number
		return `\` + text
	}
	return text
}

// link returns a Markdown link. The argument text may contain Markdown, so the caller must escape
// other text.
func link(text, target string) string { return fmt.Sprintf("[%s](<%s>)", text, Printable(target)) }

// code formats text as a Markdown code span. The text may contain backticks.
func code(text string) string {
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	text = Printable(strings.ReplaceAll(text, "\n", " "))
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") || text == "" {
		text = " " + text + " "
	}
	return fence + text + fence
}
