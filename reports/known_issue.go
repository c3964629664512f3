package reports

import (
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// knownIssueOf returns the slug of the known upstream issue that the evidence matches;
// empty if it matches none.
func knownIssueOf(e check.Evidence) string {
	i := slices.IndexFunc(check.KnownIssues, func(issue *check.KnownIssue) bool { return issue.Trap == e.KnownIssue })
	if i < 0 {
		return ""
	}
	return check.KnownIssues[i].Name
}

// setKnownIssue stores the known upstream issue that verdicts.json names: by its slug, or in
// schema 1 by its number.
func setKnownIssue(e *check.Evidence, slug string, number int) {
	i := slices.IndexFunc(check.KnownIssues, func(issue *check.KnownIssue) bool { return issue.Name == slug || issue.Trap == number })
	if i >= 0 {
		e.KnownIssue = check.KnownIssues[i].Trap
	}
}
