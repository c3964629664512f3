package scenario

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// findCostly returns the position of the first value that the YAML library would read slowly. It
// also says what is wrong there, or "" if there is no such value. The value is nested deeper than
// depthLimit, or a field above fieldLimit in its mapping.
//
// The library needs quadratic time and memory for such values. findCostly therefore reads the
// text before the library does. It knows only the parts of YAML that nest, and takes an invalid
// text for some valid one. It never counts more levels or fields than the library.
func findCostly(data []byte) (position, string) {
	n := nesting{data: data}
	for n.at < len(data) {
		n.token()
		switch {
		case n.depth() > depthLimit:
			return n.lastPosition(), fmt.Sprintf(tooDeep, depthLimit)
		case len(n.levels) > 0 && n.levels[len(n.levels)-1].fields > fieldLimit:
			return n.lastPosition(), fmt.Sprintf("found a mapping of more than %d fields; expected at most %[1]d fields", fieldLimit)
		}
	}
	return position{}, ""
}

// nesting is a scanner that counts how deep the values of a YAML text are nested.
type nesting struct {
	data []byte
	at   int // the index of the next byte
	last int // the index of the last token that began a level, or a field of a block mapping
	// levels has each block mapping and block list that has not ended.
	levels []level
	flow   int  // the number of open brackets and braces
	inLine bool // a token of the line has been read, so that the next spaces are no indentation
	line   int  // the index of the first byte of the line
}

// level is a block mapping or a block list.
type level struct {
	column int // the column in which its lines begin
	fields int // the number of its fields so far; 0 in a list
}

// depth returns the nesting depth of the innermost mapping or list. That of the root is 0.
func (n *nesting) depth() int { return len(n.levels) + n.flow - 1 }

// lastPosition returns the position of the last token that began a level or a field.
func (n *nesting) lastPosition() position {
	start := bytes.LastIndexByte(n.data[:n.last], '\n') + 1
	return position{1 + bytes.Count(n.data[:n.last], []byte("\n")), 1 + utf8.RuneCount(n.data[start:n.last])}
}

// token reads the next token: a text, a comment, or a single character such as a bracket.
func (n *nesting) token() {
	switch c := n.data[n.at]; {
	case c == '\n':
		n.at++
		n.line, n.inLine = n.at, false
		return
	case c == ' ' || c == '\t' || c == '\r':
		n.at++
		return
	case c == '#':
		n.skipLine()
		return
	case n.flow == 0:
		n.indent(n.at - n.line)
	}
	n.inLine = true
	switch c := n.data[n.at]; {
	case c == '[' || c == '{':
		n.flow++
		n.last = n.at
		n.at++
	case c == ']' || c == '}' || c == ',':
		if c != ',' {
			n.flow = max(0, n.flow-1)
		}
		n.at++
	case c == '"' || c == '\'':
		n.skipQuoted(c)
	case n.flow == 0 && (c == '|' || c == '>'):
		n.skipBlockText()
	case (c == '-' || c == '?' || c == ':') && n.blankAt(n.at+1):
		n.at++
		switch {
		case c != ':':
			n.inLine = false // the value after it is a level of its own
		case n.flow == 0:
			n.levels[len(n.levels)-1].fields++
		}
	case c == '&' || c == '!' || c == '*':
		n.skipWord()
	default:
		n.skipPlain()
	}
}

// indent notes that a value begins at a column, unless the value belongs to a key of the same line.
// It ends the mappings and lists that begin at greater columns.
func (n *nesting) indent(column int) {
	if n.inLine {
		return
	}
	here := level{column: column}
	for len(n.levels) > 0 && n.levels[len(n.levels)-1].column >= column {
		if last := n.levels[len(n.levels)-1]; last.column == column {
			here = last
		}
		n.levels = n.levels[:len(n.levels)-1]
	}
	n.levels = append(n.levels, here)
	n.last = n.at
}

// blankAt reports whether a space or the end of a line is at an index.
func (n *nesting) blankAt(i int) bool {
	return i >= len(n.data) || bytes.IndexByte([]byte(" \t\r\n"), n.data[i]) >= 0
}

// skipLine skips the rest of the line, but not the line break.
func (n *nesting) skipLine() {
	end := bytes.IndexByte(n.data[n.at:], '\n')
	if end < 0 {
		end = len(n.data) - n.at
	}
	n.at += end
}

// skipWord skips an anchor, a tag or an alias.
func (n *nesting) skipWord() {
	for !n.blankAt(n.at) {
		n.at++
	}
}

// skipQuoted skips a text in quotes, which may have several lines.
func (n *nesting) skipQuoted(quote byte) {
	for n.at++; n.at < len(n.data) && n.data[n.at] != quote; n.at++ {
		switch {
		case n.data[n.at] == '\n':
			n.line = n.at + 1
		case n.data[n.at] == '\\' && quote == '"':
			n.at++
		}
	}
	n.at = min(n.at+1, len(n.data))
}

// skipBlockText skips the lines of a block text, which begins with | or >. They are empty, or their
// indentation is greater than that of the mapping or list.
func (n *nesting) skipBlockText() {
	column := n.levels[len(n.levels)-1].column
	for n.skipLine(); n.at < len(n.data); n.skipLine() {
		text := n.data[n.at+1:]
		spaces := len(text) - len(bytes.TrimLeft(text, " "))
		if spaces < len(text) && spaces <= column && text[spaces] != '\n' && text[spaces] != '\r' {
			return
		}
		n.at++ // the line break
	}
}

// skipPlain skips a text without quotes, up to a colon, a comment or the end of the line. In
// brackets, also a bracket or a comma ends it.
func (n *nesting) skipPlain() {
	for ; n.at < len(n.data) && n.data[n.at] != '\n'; n.at++ {
		switch c := n.data[n.at]; {
		case c == ':' && n.blankAt(n.at+1), c == '#' && n.blankAt(n.at-1):
			return
		case n.flow > 0 && bytes.IndexByte([]byte("[]{},"), c) >= 0:
			return
		}
	}
}
