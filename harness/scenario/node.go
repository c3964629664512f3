package scenario

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// node is one value of a YAML file, with the value's position in the file. The scenario format
// does not support anchors, aliases, tags or merge keys.
type node struct {
	position position
	// value is a string, int64, uint64, float64, bool, nil, mapping, sequence or notFinite.
	value any
	// leadingZero is the number as written if its decimal form begins with 0, such as 010. YAML 1.1
	// reads this number as octal, and YAML 1.2 as decimal.
	leadingZero string
	// exponent is true for a number such as 1e-3. The YAML library takes it for a text, which is in
	// the field value.
	exponent bool
}

// notFinite is a YAML value that is not a finite number: .inf, -.inf or .nan. No field accepts it.
type notFinite string

type (
	// mapping is a list of the fields of a YAML mapping, in the order of the file.
	mapping []entry
	// sequence is a list of the items of a YAML list.
	sequence []*node
)

// entry is one field of a mapping: its name, its value and its position in the file.
type entry struct {
	name     string
	position position
	value    *node
}

// position is a line and a column in a file, each counted from 1. The zero value means that the
// position is unknown.
type position struct{ line, column int }

// field returns the value of the field with the given name. It returns nil if the mapping has no
// such field.
func (m mapping) field(name string) *node {
	for _, e := range m {
		if e.name == name {
			return e.value
		}
	}
	return nil
}

// describe returns the value as text for error messages. For a mapping or a list, the text does
// not contain the contents.
func (n *node) describe() string {
	if n.leadingZero != "" {
		return n.leadingZero + ", which begins with 0"
	}
	switch v := n.value.(type) {
	case nil:
		return "nothing"
	case string:
		return fmt.Sprintf("%.60q", v)
	case mapping:
		return "a mapping"
	case sequence:
		return "a list"
	case float64:
		text := fmt.Sprint(v)
		if !strings.ContainsAny(text, ".e") {
			text += ".0" // 4.0 is no whole number in YAML
		}
		return text
	default:
		return fmt.Sprint(v)
	}
}

// depthLimit is the maximum nesting depth of values in a file. A scenario needs only five
// levels. The schema in the manifest of a CustomResourceDefinition needs many more.
const depthLimit = 60

// fieldLimit is the maximum number of fields of a block mapping in a file. For more fields, the YAML
// library needs seconds.
const fieldLimit = 2_000

// tooDeep is the format of the error about values that are nested deeper than depthLimit.
const tooDeep = "found values nested too deeply; expected at most %d levels of lists and mappings"

// yamlExpectations has, for a part of a message of the YAML library, what the library expects there.
var yamlExpectations = []struct{ message, expected string }{
	{"unknown YAML version", "expected %YAML 1.2, or no directive"},
	{"already defined", "give each key only once"},
	{"block sequence entries", "expected the items of a list in lines of their own, or quotes around a text that begins with -"},
	{"not allowed in this context", "expected the indentation of the fields or items beside it, a space after each colon, and quotes around a text with \": \" or with quotes inside"},
	{"unexpected key name", "expected the indentation of the fields beside it, and a space after each colon"},
	{"non-map value is specified", "expected a field such as name: web"},
	{"could not find map value", "expected a field such as name: web"},
	{"invalid key for this map", "expected a text as the key"},
	{"flow map", "expected a mapping such as {a: 1, b: 2}, or a text in quotes"},
	{"must be specified", "expected a mapping such as {a: 1}, a list such as [a, b], or a text in quotes"},
	{"sequence end token", "expected a list such as [a, b], or a text in quotes"},
	{"could not find end character", "expected a closing quote"},
	{"invalid header option", "expected a text in quotes, or lines of text after | or >"},
	{"reserved character", "expected a text in quotes"},
	{"cannot start any token", "expected a text in quotes, and spaces as indentation"},
	{"escape character", "expected a text in single quotes"},
}

// explained returns a message of the YAML library together with what was expected.
func explained(message string) string {
	for _, known := range yamlExpectations {
		if strings.Contains(message, known.message) {
			return message + "; " + known.expected
		}
	}
	return message
}

// parseNode parses data as YAML and returns its root value. The data must contain exactly one
// YAML document.
func parseNode(src *source, data []byte) (*node, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // the byte order mark, which some editors write
	if at, ok := binary(data); ok {
		return nil, src.errorAt(at, "", "found binary data; expected text in UTF-8")
	}
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")) // the YAML library counts some CRLF as two lines
	if at, wrong := findCostly(data); wrong != "" {
		return nil, src.errorAt(at, "", "%s", wrong)
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		var bad yaml.Error
		if !errors.As(err, &bad) || bad.GetToken() == nil {
			return nil, src.errorAt(position{}, "", "the file is not valid YAML: %w", err)
		}
		if line := inputfile.ConflictLine(data); line > 0 {
			return nil, src.errorAt(position{line, 1}, "", "%s", inputfile.Conflict)
		}
		if at := hardSpacePattern.FindIndex(data); at != nil {
			line := bytes.Count(data[:at[1]], []byte("\n")) + 1
			return nil, src.errorAt(position{line, 1}, "", hardSpace)
		}
		at := position{bad.GetToken().Position.Line, bad.GetToken().Position.Column}
		if err := cmp.Or(src.unrenderedTemplate(data, at.line), src.unusualColon(data, at.line), src.misread(data, at.line), src.unquoted(data, at.line), src.unclosed(data, at.line, bad.GetMessage())); err != nil {
			return nil, err
		}
		return nil, src.errorAt(at, "", "the file is not valid YAML: %s", explained(bad.GetMessage()))
	}
	var root ast.Node
	for _, doc := range file.Docs {
		if directive, ok := doc.Body.(*ast.DirectiveNode); ok {
			if directive.Name.String() != "YAML" {
				return nil, src.errorAt(astPosition(directive), "", "YAML directives other than %%YAML are not supported; remove the line")
			}
			continue
		}
		if doc.Body == nil {
			continue
		}
		if root != nil {
			return nil, src.errorAt(astPosition(doc.Body), "", "found a second YAML document; expected one document per file")
		}
		root = doc.Body
	}
	if at := textPattern.FindIndex(data); root == nil && at != nil {
		line := bytes.Count(data[:at[1]], []byte("\n")) + 1
		return nil, src.errorAt(position{line, 1}, "", "found a YAML document after an empty one; expected one document per file")
	}
	if root == nil {
		return nil, src.errorAt(position{}, "", "found an empty file; expected a mapping")
	}
	converted, err := src.convert(root, 0)
	if errors.Is(err, errAlias) || errors.Is(err, errTag) {
		err = cmp.Or(src.unquoted(data, positionOf(err).line), err)
	}
	return converted, err
}

// hardSpace is the error about a non-breaking space in the indentation of a line.
const hardSpace = "found a non-breaking space (U+00A0) as indentation, as in text from a web page; expected normal spaces"

// hardSpacePattern matches a non-breaking space in the indentation of a line.
var hardSpacePattern = regexp.MustCompile(`(?m)^[ \t]*\x{a0}`)

// textPattern matches the beginning of a document, which is no comment, directive or marker.
var textPattern = regexp.MustCompile(`(?m)^[ \t]*(?:[^#%\s.-]|-[^-\n])`)

// leadingZeroPattern matches a whole number whose first digit is a superfluous 0, such as 010.
var leadingZeroPattern = regexp.MustCompile(`^[-+]?0[0-9_]+$`)

// exponentPattern matches a number with an exponent but without a decimal point, such as 1e-3.
var exponentPattern = regexp.MustCompile(`^[-+]?[0-9]+[eE][-+]?[0-9]+$`)

// binary returns the position of the first line with bytes that are not text in UTF-8. It returns
// false if there is no such line.
func binary(data []byte) (position, bool) {
	line := 0
	for text := range bytes.Lines(data) {
		line++
		if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
			return position{line, 1}, true
		}
	}
	return position{}, false
}

// convert converts a value of the YAML library to a node. The argument depth is the nesting
// depth of the value, 0 for the root. A depth above depthLimit is an error.
func (src *source) convert(from ast.Node, depth int) (*node, error) {
	to := &node{position: astPosition(from)}
	if depth > depthLimit {
		return nil, src.errorAt(to.position, "", tooDeep, depthLimit)
	}
	var err error
	switch from := from.(type) {
	case *ast.NullNode:
	case *ast.BoolNode:
		to.value = from.Value
	case *ast.StringNode:
		to.value = from.Value
		to.exponent = from.GetToken().Type == token.StringType && exponentPattern.MatchString(from.Value)
	case *ast.LiteralNode:
		to.value = from.Value.Value
	case *ast.IntegerNode:
		to.value = from.Value
		if text := from.GetToken().Value; leadingZeroPattern.MatchString(text) {
			to.leadingZero = text
		}
	case *ast.FloatNode:
		to.value = from.Value
	case *ast.InfinityNode, *ast.NanNode:
		to.value = notFinite(from.GetToken().Value)
	case *ast.SequenceNode:
		to.value, err = src.convertItems(from.Values, depth)
	case *ast.MappingNode:
		to.value, err = src.convertFields(from.Values, depth)
	case *ast.MappingValueNode:
		to.value, err = src.convertFields([]*ast.MappingValueNode{from}, depth)
	case *ast.AnchorNode, *ast.AliasNode:
		err = src.errorAt(to.position, "", "%w", errAlias)
	case *ast.TagNode:
		err = src.errorAt(to.position, "", "%w", errTag)
	default:
		err = src.errorAt(to.position, "", "found a YAML value of an unsupported type; expected text, a number, true, false, null, a list or a mapping")
	}
	return to, err
}

// convertItems converts the items of a list. The argument depth is the nesting depth of the
// list.
func (src *source) convertItems(from []ast.Node, depth int) (sequence, error) {
	to := make(sequence, 0, len(from))
	for _, item := range from {
		converted, err := src.convert(item, depth+1)
		if err != nil {
			return nil, err
		}
		to = append(to, converted)
	}
	return to, nil
}

// convertFields converts the fields of a mapping. The argument depth is the nesting depth of
// the mapping. A field that occurs twice is an error.
func (src *source) convertFields(from []*ast.MappingValueNode, depth int) (mapping, error) {
	to := make(mapping, 0, len(from))
	for _, field := range from {
		at := astPosition(field.Key)
		name, ok := fieldName(field.Key)
		if strings.HasPrefix(name, "\u00a0") {
			return nil, src.errorAt(at, "", hardSpace)
		}
		if _, merges := field.Key.(*ast.MergeKeyNode); merges {
			return nil, src.errorAt(at, "", "YAML merge keys (<<) are not supported; repeat the fields")
		}
		if !ok {
			return nil, src.errorAt(at, "", "found a key that is not a plain name; expected the name of a field, such as name or workload")
		}
		if missesSpace(field) {
			return nil, src.errorAt(at, "", "the file is not valid YAML: found no space after %q; expected a space after each colon", name+":")
		}
		if _, isNull := field.Value.(*ast.NullNode); isNull && withoutColon(field) && joinedPattern.MatchString(name) {
			return nil, src.errorAt(at, "", "the file is not valid YAML: found %q without a colon and a space; expected a field such as name: web", name)
		}
		if text, isText := field.Value.(*ast.StringNode); isText && text.GetToken().Type == token.StringType && uncommaPattern.MatchString(text.Value) {
			return nil, src.errorAt(astPosition(text), "", "the file is not valid YAML: found %q; expected a comma between fields in braces, or quotes around a text with \": \"", text.Value)
		}
		if to.field(name) != nil {
			return nil, src.errorAt(at, "", "found field %q twice; expected each field once", name)
		}
		converted, err := src.convert(field.Value, depth+1)
		if err != nil {
			return nil, err
		}
		to = append(to, entry{name: name, position: at, value: converted})
	}
	return to, nil
}

// joinedPattern matches a key of a mapping in braces that has the value of the field, too, such as kind=Pod. The colon is missing.
var joinedPattern = regexp.MustCompile(`^[A-Za-z]+[ =][A-Za-z0-9./-]+$`)

// withoutColon reports whether a field in braces has neither a colon nor quotes, so that its value is null.
func withoutColon(field *ast.MappingValueNode) bool {
	plain := field.Key.GetToken().Type == token.StringType
	return plain && (field.Start == nil || field.Start.Type != token.MappingValueType)
}

// uncommaPattern matches a text without quotes that contains another field, such as "Pod name: web".
var uncommaPattern = regexp.MustCompile(`^[^\s"']+ [A-Za-z]+: \S+$`)

// missesSpace reports whether the value of a field follows the colon without a space, as in {a:1}.
// The YAML library accepts this, but in YAML the colon is then part of the key. Before a list or a
// mapping, and after a key in quotes, YAML needs no space.
func missesSpace(field *ast.MappingValueNode) bool {
	colon, key := field.Start, field.Key.GetToken()
	if colon == nil || colon.Next == nil || key.Type == token.SingleQuoteType || key.Type == token.DoubleQuoteType {
		return false
	}
	switch colon.Next.Type {
	case token.MappingStartType, token.MappingEndType, token.SequenceStartType, token.SequenceEndType, token.CollectEntryType:
		return false
	}
	from, to := colon.Position, colon.Next.Position
	return from.Line == to.Line && from.Column+1 == to.Column
}

// fieldName returns a key of a mapping as text. It also accepts numbers and words such as true,
// because a label key may be a number or such a word. It returns false for any other key.
func fieldName(key ast.MapKeyNode) (string, bool) {
	switch key := key.(type) {
	case *ast.StringNode:
		return key.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return key.GetToken().Value, true
	}
	return "", false
}

// astPosition returns the position of a value in the file. For a block mapping, it returns the
// position of the first key. The YAML library would return the position of the first colon.
func astPosition(n ast.Node) position {
	switch m := n.(type) {
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			n = m.Values[0].Key
		}
	case *ast.MappingValueNode:
		n = m.Key
	}
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return position{}
	}
	at := n.GetToken().Position
	return position{at.Line, at.Column}
}
