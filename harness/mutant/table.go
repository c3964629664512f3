package mutant

import (
	"fmt"
	"io"
	"strings"
)

// Count has the number of mutants for each state, such as detected.
type Count map[State]int

// StateOf returns the state of a mutant, such as detected, given the outcome of its last trial. In
// a trial, the mutant runs in its scenarios.
//
// The state is NotRun if the mutant has changed since that trial. It is NotDetected if no check in
// m.Checks failed, even if other checks failed.
func (m *Mutant) StateOf(last Outcome) State {
	switch {
	case m.UnobservableReason != "":
		return Unobservable
	case last.Fingerprint != m.Fingerprint():
		return NotRun
	case last.State == Detected && (len(m.Checks) == 0 || !m.detectedBy(last.Checks)):
		return NotDetected
	default:
		return last.State
	}
}

// CountStates counts mutants by state, such as detected. The argument outcomes has the result of
// each mutant's last trial, by the mutant's ID.
func CountStates(all []Mutant, outcomes map[string]Outcome) Count {
	count := Count{}
	for _, m := range all {
		count[m.StateOf(outcomes[m.ID])]++
	}
	return count
}

// String returns the share of detected mutants, and the number of mutants in each other state. An
// example is "90 of 126 mutants detected (71 %), 5 not run".
func (c Count) String() string {
	tried := c[Detected] + c[NotDetected]
	share := 0.0
	if tried > 0 {
		share = 100 * float64(c[Detected]) / float64(tried)
	}
	text := fmt.Sprintf("%d of %d mutants detected (%.0f %%)", c[Detected], tried, share)
	for _, other := range []State{Void, NotRun, Unobservable} {
		if c[other] > 0 {
			text += fmt.Sprintf(", %d %s", c[other], other)
		}
	}
	return text
}

// Column is a column of the table of mutants. It shows which mutants the scenarios of one tier
// (such as quick) detect.
type Column struct {
	Name string // the name of the tier, such as quick
	Rate Rate
	Find func(m *Mutant) Finding
}

// tableIntroduction is the Markdown text before the table of mutants.
const tableIntroduction = `# Mutants

Each mutant is a controller with an injected bug, and the table has the check that detects it. ` + "`make mutants-table`" + ` writes this file. A mutant counts as detected only in a scenario that the unmodified controllers pass with the same seed. The time is that of the first violation, from the beginning of the run. An ID such as R1 refers to a bug of a real controller of ReplicaSets (R), Deployments (D) or Endpoints (E). IDs with the prefix ` + "`own-`" + ` refer to invented bugs.

The columns of the tiers say whether a scenario of the tier catches the mutant, with seed 1 on the embedded control plane. A mutant is missed only if it ran in all scenarios of the tier; otherwise the tier is not measured, and the cell is empty.

`

// Table writes the state of each mutant as a Markdown table, with a column for each tier. The
// argument outcomes has the result of each mutant's last trial, by the mutant's ID.
func Table(w io.Writer, all []Mutant, outcomes map[string]Outcome, tiers []Column) error {
	var b strings.Builder
	b.WriteString(tableIntroduction)
	fmt.Fprintf(&b, "%s.\n\n", CountStates(all, outcomes))
	header, line := "", ""
	for _, tier := range tiers {
		fmt.Fprintf(&b, "- `%s` catches %s.\n", tier.Name, tier.Rate)
		header += " `" + tier.Name + "` |"
		line += "-|"
	}
	fmt.Fprintf(&b, "\n| mutant | base | bug | state | detected by | scenario | after |%s\n|-|-|-|-|-|-|-:|%s\n", header, line)
	for _, m := range all {
		b.WriteString(row(&m, outcomes[m.ID]))
		for _, tier := range tiers {
			fmt.Fprintf(&b, " %s |", cellText(&m, tier))
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// row returns the first cells of a mutant's row in the table of mutants. The cells of the tiers
// follow these cells.
func row(m *Mutant, last Outcome) string {
	state := m.StateOf(last)
	by, in, after := "", "", ""
	switch state {
	case Detected:
		by, in, after = codes(last.Checks), last.Scenario, fmt.Sprintf("%.1f s", last.After.Seconds())
	case Unobservable:
		by = m.UnobservableReason
	case NotDetected:
		by, in = m.OpenReason, strings.Join(m.Scenarios, ", ")
	case Void:
		by = last.Reason
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s |", m.ID, m.Base, m.Description, state, by, in, after)
}

// cellText returns the text in the column of a tier, which is "caught" or "missed". It returns ""
// if no check can observe the mutant, or if the tier's results for the mutant are incomplete and
// show no detection.
func cellText(m *Mutant, tier Column) string {
	if finding := tier.Find(m); m.UnobservableReason == "" && finding != NotMeasured {
		return string(finding)
	}
	return ""
}

// codes formats IDs as Markdown code spans, separated by commas.
func codes(ids []string) string {
	return "`" + strings.Join(ids, "`, `") + "`"
}
