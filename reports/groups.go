package reports

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// Group is a failure group as data, for scripts that open issues.
type Group struct {
	// ID identifies the failure. It has only hexadecimal digits, and is the same in every campaign.
	ID string `json:"id"`
	// Title says in one line what failed, such as "fail: max-surge of pods (ours)".
	Title string `json:"title"`
	// Text has more than the title: the reason, and how to repeat the smallest run. It is Markdown.
	Text    string        `json:"text"`
	Verdict check.Verdict `json:"verdict"`
	// Runs is the number of runs with this failure.
	Runs int `json:"runs"`
	// The smallest run has the fewest steps and faults. These fields say its scenario, seed and
	// directory. The directory is empty if it does not exist.
	Scenario  string `json:"scenario"`
	Seed      uint64 `json:"seed"`
	Directory string `json:"directory,omitempty"`
}

// idBytes is the length of the ID of a failure group, before it is written in hexadecimal.
const idBytes = 8

// Groups returns the failure groups of the runs that did not pass. The order is that of
// [FailureGroups].
func Groups(notPassed []Run) []Group {
	var all []Group
	for _, f := range groupFailures(notPassed) {
		all = append(all, Group{
			ID:       f.id(),
			Title:    fmt.Sprintf("%s: %s (%s)", f.verdict, f.title(), f.subject),
			Text:     fmt.Sprintf("%s\n\nReproduce: %s\n", f, code(f.smallest.Reproduce)),
			Verdict:  f.verdict,
			Runs:     f.runs,
			Scenario: f.smallest.Scenario, Seed: f.smallest.Seed, Directory: f.smallest.Directory,
		})
	}
	return all
}

// id returns a text that is the same for equal keys, in every campaign.
func (s failureKey) id() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(s.verdict), s.subject, s.check, s.resource, s.signature}, "\x00")))
	return hex.EncodeToString(sum[:idBytes])
}
