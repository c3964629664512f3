package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// source is the file from which Parse read a scenario. Error messages get the positions of fields
// from this file. A nil source means that the scenario does not come from a file.
type source struct {
	file string // the name of the scenario file
	root *node  // the whole contents of the scenario file
	// warnings are the lines that [Scenario.Warnings] returns, such as one for each old name.
	warnings []string
	// mistakes are the errors that Parse has found so far.
	mistakes []error
}

// Invalid reports whether [Parse] has found an error about the field at path, or inside that field. The
// functions that Parse calls then report no consequences of this error.
func (s *Scenario) Invalid(path string) bool {
	return s.source != nil && slices.ContainsFunc(s.source.mistakes, func(err error) bool { return s.source.hides(err, path) })
}

// hides reports whether an error makes an error about the field at path redundant. It does if one of
// the two fields contains the other. It also does if the file lacks the top-level field of path, and the
// error is about an unknown top-level field with a similar name.
func (src *source) hides(err error, path string) bool {
	m := new(mistake)
	if !errors.As(err, &m) {
		return false
	}
	top, _, _ := strings.Cut(path, ".")
	misspelled := m.path == "" && !src.has(top) && strings.Contains(m.err.Error(), "did you mean "+top)
	return m.path == path || contains(m.path, path) || contains(path, m.path) || misspelled
}

// File returns the name of the file from which the scenario was read. It returns "" if users do not
// have the file, because the scenario is built in or generated.
func (s *Scenario) File() string {
	if s.source == nil {
		return ""
	}
	return s.source.file
}

// HideFile removes the name of the file and all positions from later errors about the scenario. Users do not have the file of a built-in or generated scenario.
func (s *Scenario) HideFile() {
	if s.source != nil {
		s.source.file = ""
	}
}

// errorAt returns an error that begins with the name of the file, if users have the file. The line
// and the column follow if they are known. The path of the field follows if it is not "". The formatted message is at
// the end.
func (src *source) errorAt(at position, path, format string, args ...any) error {
	var prefix strings.Builder
	if src != nil && src.file != "" {
		prefix.WriteString(src.file + ":")
		if at != (position{}) {
			fmt.Fprintf(&prefix, "%d:%d:", at.line, at.column)
		}
		prefix.WriteString(" ")
	}
	if path != "" {
		prefix.WriteString(path + ": ")
	}
	return &mistake{at: at, path: path, err: fmt.Errorf("%s"+format, append([]any{prefix.String()}, args...)...), text: src.textOfLines(path)}
}

// textOfLines returns the value at path if it is a text of several lines. Otherwise it returns "".
func (src *source) textOfLines(path string) string {
	if src == nil || src.root == nil {
		return ""
	}
	value, _ := walk(src.root, path)
	if text, _ := value.value.(string); strings.Contains(text, "\n") {
		return text
	}
	return ""
}

// find returns the position of the value at path, such as "faults[0].from". If the file has no
// such value, find returns the position of the nearest enclosing value.
func (src *source) find(path string) position {
	if src == nil || src.root == nil {
		return position{}
	}
	nearest, _ := walk(src.root, path)
	return nearest.position
}

// has reports whether the file has a value at path, such as "faults[0].for", even if that value is
// 0.
func (src *source) has(path string) bool {
	if src == nil || src.root == nil {
		return false
	}
	_, ok := walk(src.root, path)
	return ok
}

// walk returns the value at path inside of n, and true. If there is no such value, it returns
// the nearest enclosing value and false.
func walk(n *node, path string) (*node, bool) {
	steps := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	for _, step := range steps {
		var next *node
		switch v := n.value.(type) {
		case mapping:
			next = v.field(step)
		case sequence:
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(v) {
				next = v[i]
			}
		}
		if next == nil {
			return n, false
		}
		n = next
	}
	return n, true
}
