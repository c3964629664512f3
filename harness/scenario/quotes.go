package scenario

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"
)

// These are the errors about parts of YAML that files must not have. A text without quotes may look like one.
var (
	errAlias = errors.New("YAML anchors and aliases are not supported; repeat the value")
	errTag   = errors.New("YAML tags are not supported; remove the tag")
)

// unquotedPattern matches a value that needs quotes, after a key or the hyphen of an item. The group is the value. It begins
// with a character that has a meaning in YAML, or with a complete text, list or mapping that more text follows.
var unquotedPattern = regexp.MustCompile(`(?:[\w./"'-]:|(?:^|\s)-|[\[,])[ \t]+(` +
	"[*&!@%`][^\\s,}\\]]*" + // such as *web
	`|[|>][^\s,}\]\d+-][^,}\]]*` + // such as >web
	`|\?` +
	`|'[^']*'[^\s,}\]:]+` + // such as 'web'-*
	`|"[^"]*"[^\s,}\]:]+` +
	`|\[[^\]]*\][^\s,}\]]+` + // such as [a-c]*
	`|\{[^}]*\}[^\s,}\]]+` +
	`)[ \t]*(?:[,}\]#]|$)`)

// unquoted returns an error about the first value in a line that needs quotes. It returns nil if the line has no such value.
// Lines are counted from 1.
func (src *source) unquoted(data []byte, line int) error {
	lines := bytes.Split(data, []byte("\n"))
	if line < 1 || line > len(lines) {
		return nil
	}
	text := bytes.TrimRight(lines[line-1], "\r")
	match := unquotedPattern.FindSubmatchIndex(text)
	if match == nil {
		return nil
	}
	value := string(text[match[2]:match[3]])
	if name, alias := strings.CutPrefix(value, "*"); alias && name != "" && bytes.Contains(data, []byte("&"+name)) {
		return nil // the alias of an anchor
	}
	at := position{line, 1 + utf8.RuneCount(text[:match[2]])}
	whole := strings.NewReplacer(`'`, "", `"`, "").Replace(value)
	return src.errorAt(at, "", "the file is not valid YAML: found %.60s, which begins with %.1s; expected quotes around the whole value, such as \"%.60s\"", value, value, whole)
}

// unclosed returns an error about the last bracket that has no closing bracket. It returns nil if there is none up to the
// line of another error.
func (src *source) unclosed(data []byte, line int) error {
	var open []position // the positions of brackets without a closing one
	for i, text := range strings.Split(string(data), "\n") {
		quote := ' '
		for j, c := range text {
			first := j == 0 || strings.ContainsAny(text[j-1:j], " \t[{,") // c begins a token
			switch {
			case quote != ' ':
				if c == quote {
					quote = ' '
				}
			case strings.ContainsRune(`"'#`, c) && first:
				quote = c // a comment ends with the line
			case strings.ContainsRune("[{", c) && (first || len(open) > 0):
				open = append(open, position{i + 1, j + 1})
			case strings.ContainsRune("]}", c) && len(open) > 0:
				open = open[:len(open)-1]
			}
		}
	}
	if len(open) == 0 || open[len(open)-1].line > line {
		return nil
	}
	at := open[len(open)-1]
	text := strings.Split(string(data), "\n")[at.line-1]
	bracket, closing := "[", "]"
	if text[at.column-1] == '{' {
		bracket, closing = "{", "}"
	}
	at.column = 1 + utf8.RuneCountInString(text[:at.column-1])
	return src.errorAt(at, "", "the file is not valid YAML: found %s without a closing %s; expected %s, or quotes around a text with %s", bracket, closing, closing, bracket)
}
