package scenario

import (
	"bytes"
	"unicode/utf8"
)

// findDeepNesting returns the position of the first value that is nested deeper than depthLimit. It
// returns false if there is no such value.
//
// The YAML library needs quadratic time and memory for deeply nested values. findDeepNesting
// therefore reads the text before the library does. It knows only the parts of YAML that nest, and
// takes an invalid text for some valid one. It never counts more levels than the library.
func findDeepNesting(data []byte) (position, bool) {
	n := nesting{data: data}
	for n.at < len(data) {
		n.token()
		if n.depth() > depthLimit {
			start := bytes.LastIndexByte(data[:n.last], '\n') + 1
			return position{1 + bytes.Count(data[:n.last], []byte("\n")), 1 + utf8.RuneCount(data[start:n.last])}, true
		}
	}
	return position{}, false
}

// nesting is a scanner that counts how deep the values of a YAML text are nested.
type nesting struct {
	data []byte
	at   int // the index of the next byte
	last int // the index of the last token that began a level
	// columns has the column of each block mapping and block list that has not ended.
	columns []int
	flow    int  // the number of open brackets and braces
	inLine  bool // a token of the line has been read, so that the next spaces are no indentation
	line    int  // the index of the first byte of the line
}

// depth returns the nesting depth of the innermost mapping or list. That of the root is 0.
func (n *nesting) depth() int { return len(n.columns) + n.flow - 1 }

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
		if c != ':' {
			n.inLine = false // the value after it is a level of its own
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
	for len(n.columns) > 0 && n.columns[len(n.columns)-1] >= column {
		n.columns = n.columns[:len(n.columns)-1]
	}
	n.columns = append(n.columns, column)
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
	column := n.columns[len(n.columns)-1]
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
