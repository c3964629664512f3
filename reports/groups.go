package reports

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// Group describes a failure group, the runs of a campaign that failed for the same reason. Scripts
// that open issues read it as JSON.
type Group struct {
	// ID identifies the failure. It has only hexadecimal digits, and is the same in every campaign.
	ID string `json:"id"`
	// Title says in one line what failed, such as "fail: max-surge of pods (ours)".
	Title string `json:"title"`
	// Text is Markdown. It has the reason of the failure, and the command that reproduces the run
	// with the fewest steps and faults.
	Text    string        `json:"text"`
	Verdict check.Verdict `json:"verdict"`
	// Runs is the number of runs with this failure.
	Runs int `json:"runs"`
	// Scenario, Seed and Directory belong to the run of the group with the fewest steps and faults.
	// Directory is empty if this run has no directory.
	Scenario  string `json:"scenario"`
	Seed      uint64 `json:"seed"`
	Directory string `json:"directory,omitempty"`
}

// idBytes is the length in bytes of a failure group's ID, before the ID is written in hexadecimal.
const idBytes = 8

// Groups returns the failure groups of the runs that did not pass, as data for scripts. The order
// is that of [FailureGroups].
func Groups(notPassed []Run) []Group {
	var all []Group
	for _, f := range groupFailures(notPassed) {
		all = append(all, Group{
			ID:       f.id(),
			Title:    fmt.Sprintf("%s: %s (%s)", f.verdict, f.title(), f.subject),
			Text:     fmt.Sprintf("%s\n\nReproduce: %s\n", f.line(markdownStyle), code(f.smallest.Reproduce)),
			Verdict:  f.verdict,
			Runs:     f.runs,
			Scenario: f.smallest.Scenario, Seed: f.smallest.Seed, Directory: f.smallest.Directory,
		})
	}
	return all
}

// id returns the ID of the failure group. Equal keys have the same ID in every campaign. Scripts
// can thus recognize a failure for which they have already opened an issue.
func (s failureKey) id() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(s.verdict), s.subject, s.check, s.resource, s.signature}, "\x00")))
	return hex.EncodeToString(sum[:idBytes])
}
