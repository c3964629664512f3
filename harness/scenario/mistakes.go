package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// mistake is one error about a scenario file. Its position is the line and the column, by which
// errors are sorted.
type mistake struct {
	at   position
	path string // the path of the field, such as "faults[0].from"
	err  error  // the complete error message
	// text is the value of the field if it has several lines. The message has it in one line.
	text string
}

func (m *mistake) Error() string {
	message := m.err.Error()
	if m.text == "" {
		return message
	}
	for _, text := range []string{m.text, path.Clean(m.text)} { // the message may contain a path
		message = strings.ReplaceAll(message, text, strings.ReplaceAll(text, "\n", `\n`))
	}
	return message
}

func (m *mistake) Unwrap() error { return m.err }

// mistakes is a list of errors about a scenario file. The error message has one line for each
// item, but at most linesMax such lines.
type mistakes []error

// linesMax is the maximum number of mistakes that an error message lists.
const linesMax = 50

func (m mistakes) Error() string {
	var lines []string
	for _, err := range m[:min(len(m), linesMax)] {
		lines = append(lines, err.Error())
	}
	if more := len(m) - linesMax; more > 0 {
		least := ""
		if len(m) >= mistakesMax {
			least = "at least "
		}
		lines = append(lines, fmt.Sprintf("and %d more; the file has %s%d mistakes", more, least, len(m)))
	}
	return strings.Join(lines, "\n")
}

func (m mistakes) Unwrap() []error { return m }

// JoinErrors combines errors about a scenario into one error, in the order of the file. The
// error message has one line for each error. JoinErrors returns nil if all errors are nil.
func JoinErrors(errs ...error) error {
	all := flatten(errs)
	slices.SortStableFunc(all, func(a, b error) int {
		at, other := positionOf(a), positionOf(b)
		return cmp.Or(cmp.Compare(at.line, other.line), cmp.Compare(at.column, other.column))
	})
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return mistakes(all)
}

// flatten returns the errors that are not nil. If an error is of type mistakes, flatten returns
// the items of this list instead.
func flatten(errs []error) []error {
	var all []error
	for _, err := range errs {
		var several mistakes
		switch {
		case err == nil:
		case errors.As(err, &several):
			all = append(all, several...)
		default:
			all = append(all, err)
		}
	}
	return all
}

// positionOf returns the position of an error in the file, by which errors are sorted. It
// returns the zero value for an error without a position.
func positionOf(err error) position {
	if m := new(mistake); errors.As(err, &m) {
		return m.at
	}
	return position{}
}

// contains reports whether the field at path contains the field at inner. For example, the field
// cluster contains the field cluster.nodes.
func contains(path, inner string) bool {
	rest, ok := strings.CutPrefix(inner, path)
	return ok && path != "" && rest != "" && (rest[0] == '.' || rest[0] == '[')
}

// similar returns a suggestion for a message about an unknown word, such as "; did you mean
// create?". It returns "" if no known word is similar.
func similar[T ~string](found string, known []T) string {
	names := make([]string, 0, len(known))
	for _, name := range known {
		names = append(names, string(name))
	}
	return nearest.Suggestion(found, names)
}
