package mutant

import (
	"fmt"
	"io"
	"strings"
)

// Count is how many mutants are in a state.
type Count map[State]int

// StateOf is where a mutant stands, given its last outcome, which may be of the
// mutant as it was before. One of which nobody has said which checks are to catch it
// is not caught, whatever failed.
func (m *Mutant) StateOf(last Outcome) State {
	switch {
	case m.UnobservableReason != "":
		return Unobservable
	case last.Of != m.Fingerprint():
		return NotRun
	case last.State == Detected && (len(m.Checks) == 0 || !m.detectedBy(last.Checks)):
		return NotDetected
	default:
		return last.State
	}
}

// CountStates counts mutants by where they stand, given their last outcomes by ID.
func CountStates(all []Mutant, outcomes map[string]Outcome) Count {
	count := Count{}
	for _, m := range all {
		count[m.StateOf(outcomes[m.ID])]++
	}
	return count
}

// String says how many were caught of those that could be.
func (c Count) String() string {
	tried := c[Detected] + c[NotDetected]
	share := 0.0
	if tried > 0 {
		share = 100 * float64(c[Detected]) / float64(tried)
	}
	text := fmt.Sprintf("%d of %d mutants caught (%.0f %%)", c[Detected], tried, share)
	for _, other := range []State{Void, NotRun, Unobservable} {
		if c[other] > 0 {
			text += fmt.Sprintf(", %d %s", c[other], other)
		}
	}
	return text
}

// Table writes where all mutants stand, as Markdown.
func Table(w io.Writer, all []Mutant, outcomes map[string]Outcome) error {
	var b strings.Builder
	b.WriteString("# Mutants\n\n")
	b.WriteString("Controllers that were broken on purpose, and the check that told each from the unbroken. Written by `make mutants-table`. A mutant counts as caught in a scenario that the unbroken controllers pass with the same seed; the time is that of the first violation, since the run began. IDs are those of bugs that these controllers have had; what begins with `own-` is made up.\n\n")
	fmt.Fprintf(&b, "%s.\n\n", CountStates(all, outcomes))
	b.WriteString("| mutant | of | what is broken | | caught by | in | after |\n|-|-|-|-|-|-|-:|\n")
	for _, m := range all {
		last := outcomes[m.ID]
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
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", m.ID, m.Base, m.Description, state, by, in, after)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func codes(ids []string) string {
	return "`" + strings.Join(ids, "`, `") + "`"
}
