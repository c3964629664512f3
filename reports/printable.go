package reports

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// Printable replaces control characters and invalid UTF-8 in a text by escapes such as \x1b. A
// program under test that writes them to its log cannot change the terminal or its title. Printable
// keeps newlines and tabs.
func Printable(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, isControl) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case isControl(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
		text = text[size:]
	}
	return b.String()
}

// isControl reports whether r is a control character, but not a newline or a tab.
func isControl(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }

// printableRuns returns copies of runs whose texts are [Printable], apart from their evidence.
func printableRuns(runs []Run) []Run {
	runs = slices.Clone(runs)
	for i := range runs {
		r := &runs[i]
		for _, text := range []*string{&r.Scenario, &r.Subject, &r.Directory, &r.Reason, &r.Reproduce} {
			*text = Printable(*text)
		}
		results := make([]check.Result, 0, len(r.Results))
		for _, result := range r.Results {
			result.Check, result.Reason = Printable(result.Check), Printable(result.Reason)
			results = append(results, result)
		}
		r.Results = results
	}
	return runs
}
