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
	`[*&!][^\s,}\]]*` + // such as *web
	"|[@%`][^,}\\]#]*" +
	`|[|>][^\s,}\]\d+-][^,}\]]*` + // such as >web
	`|\?` +
	`|'[^']*'[^\s,}\]:]+` + // such as 'web'-*
	`|"[^"]*"[^\s,}\]:]+` +
	`|\[[^\]]*\][^\s,}\]]+` + // such as [a-c]*
	`|\{[^}:]*\}[^\s,}\]]+` +
	`|(?:no )?jsonpath='?\{[^}]*\}[^\s,}\]]*` + // in braces, the bracket begins a mapping
	`|\$\{[^}]*\}[^\s,}\]]*` +
	`)[ \t]*(?:[,}\]#]|$)`)

// unquoted returns an error about the first value in a line that needs quotes. It returns nil if the line has no such value.
// Lines are counted from 1.
func (src *source) unquoted(data []byte, line int) error {
	text := bytes.TrimRight(lineOf(bytes.Split(data, []byte("\n")), line-1), "\r")
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
	if strings.ContainsAny(value[:1], `'"`) && strings.HasSuffix(value, value[:1]) { // only the quotes around the value
		whole = value[1 : len(value)-1]
	}
	about := "begins with " + value[:1]
	if strings.ContainsAny(value[:1], "jn$") {
		about = "contains {"
	}
	return src.errorAt(at, "", "the file is not valid YAML: found %.60s, which %s; expected quotes around the whole value, such as \"%.60s\"", value, about, whole)
}

// lineOf returns the line with an index, or nil if there is none. The YAML library may count more lines than the data has.
func lineOf(lines [][]byte, index int) []byte {
	if index < 0 || index >= len(lines) {
		return nil
	}
	return lines[index]
}

// unusualColonPattern matches a key before a colon that YAML does not know. The groups are the non-breaking space after a colon,
// and the full-width colon.
var unusualColonPattern = regexp.MustCompile(`(?m)^[ \t-]*[\w.-]+(?::(\x{a0})|(\x{ff1a}))`)

// unusualColon returns an error about a colon that YAML does not know, in a line or beside it. It returns nil if
// there is none.
func (src *source) unusualColon(data []byte, line int) error {
	for _, match := range unusualColonPattern.FindAllSubmatchIndex(data, -1) {
		found, at := "found a non-breaking space (U+00A0) after the colon", match[2]
		if at < 0 {
			found, at = "found a full-width colon (U+FF1A)", match[4]
		}
		start := bytes.LastIndexByte(data[:at], '\n') + 1
		if number := 1 + bytes.Count(data[:at], []byte("\n")); line-1 <= number && number <= line+1 {
			return src.errorAt(position{number, 1 + utf8.RuneCount(data[start:at])}, "", "%s; expected a normal colon and a normal space", found)
		}
	}
	return nil
}

// wordPattern matches a line with only one word, which may be a key without a colon.
var wordPattern = regexp.MustCompile(`^\s*(?:- )?([a-z][A-Za-z-]*)\s*$`)

// misread returns an error about a tab as indentation, or about a key without a colon in the line before. The YAML library
// reports other mistakes then. It returns nil if there is no such mistake.
func (src *source) misread(data []byte, line int) error {
	lines := bytes.Split(data, []byte("\n"))
	for i := max(0, line-2); i < min(line, len(lines)); i++ {
		indentation := lines[i][:len(lines[i])-len(bytes.TrimLeft(lines[i], " \t"))]
		if at := bytes.IndexByte(indentation, '\t'); at >= 0 {
			return src.errorAt(position{i + 1, at + 1}, "", "the file is not valid YAML: found a tab as indentation; expected spaces")
		}
		next := lineOf(lines, i+1)
		if word := wordPattern.FindSubmatchIndex(lines[i]); word != nil && i == line-2 && word[2] < len(next)-len(bytes.TrimLeft(next, " -")) {
			name := lines[i][word[2]:word[3]]
			return src.errorAt(position{i + 1, word[2] + 1}, "", "the file is not valid YAML: found %s without a colon; expected %s:", name, name)
		}
	}
	return nil
}

// unclosed returns an error about the last bracket that has no closing bracket. It returns nil if there is none up to the
// line of another error, or if that error is about quotes.
func (src *source) unclosed(data []byte, line int, message string) error {
	if strings.Contains(message, "end character") {
		return nil // a text lacks its closing quote
	}
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
