package operator

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// document is a YAML or JSON document in a file of manifests.
type document struct {
	path string // of the file
	text []byte
	line int // number of lines in the file before the text

	parsed bool       // whether root is set
	root   *yaml.Node // nil if the text is no YAML; see the method node
}

// node returns the top value of the document, or nil.
func (d *document) node() *yaml.Node {
	var root yaml.Node
	if !d.parsed && yaml.Unmarshal(d.text, &root) == nil && len(root.Content) > 0 {
		d.root = root.Content[0]
	}
	d.parsed = true
	return d.root
}

// place returns the file and the line where the text of the document begins, without blank lines and comments.
func (d *document) place() string {
	line := d.line
	for text := range bytes.Lines(d.text) {
		line++
		if text = bytes.TrimSpace(text); len(text) > 0 && text[0] != '#' {
			return fmt.Sprintf("%s:%d", d.path, line)
		}
	}
	return d.path
}

// at returns the file, line and column of the field at a path, such as spec.rules[0].verbs. For a field that the
// document lacks, the position is that of the nearest field that contains it.
func (d *document) at(path string) string {
	root := d.node()
	if root == nil {
		return d.place()
	}
	nearest, _, _ := walk(root, path)
	return fmt.Sprintf("%s:%d:%d", d.path, d.line+nearest.Line, nearest.Column)
}

// asWritten returns the value at a path as the document has it, such as yes for true. It is empty for other values
// than texts and numbers.
func (d *document) asWritten(path string) string {
	root := d.node()
	if root == nil {
		return ""
	}
	_, value, rest := walk(root, path)
	if rest != "" {
		return ""
	}
	return value.Value
}

// walk returns the node with the position of the value at a path, and the value. If the value is missing, it returns
// the nearest value that contains it, and the rest of the path.
func walk(root *yaml.Node, path string) (nearest, value *yaml.Node, rest string) {
	nearest, value = root, root
	for path != "" {
		named, inside, rest := stepInto(value, path)
		if named == nil {
			break
		}
		nearest, value, path = named, inside, rest
	}
	return nearest, value, path
}

// stepInto returns the value that the first step of a path names, and the rest of the path. It also returns the node
// whose position is that of the value: its key in a mapping, or an item of a list. Without such a value, all results
// are empty.
func stepInto(value *yaml.Node, path string) (named, inside *yaml.Node, rest string) {
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	path = strings.TrimPrefix(path, ".")
	step, rest, inBrackets := strings.Cut(strings.TrimPrefix(path, "["), "]")
	inBrackets = inBrackets && strings.HasPrefix(path, "[")
	switch i, err := strconv.Atoi(step); {
	case value.Kind == yaml.SequenceNode && inBrackets && err == nil && 0 <= i && i < len(value.Content):
		return value.Content[i], value.Content[i], rest
	case value.Kind != yaml.MappingNode:
		return nil, nil, ""
	}
	longest := 0
	for i := 0; i+1 < len(value.Content); i += 2 {
		key := value.Content[i].Value
		switch after, ok := strings.CutPrefix(path, key); {
		case inBrackets && strings.Trim(step, `"`) == key:
			return value.Content[i], value.Content[i+1], rest
		case !inBrackets && ok && len(key) > longest && (after == "" || strings.ContainsAny(after[:1], ".[")):
			longest, named, inside, rest = len(key), value.Content[i], value.Content[i+1], after // a key may contain dots
		}
	}
	return named, inside, rest
}

var (
	// errorObject matches an item of a list or the name of an object, with which an error begins.
	errorObject = regexp.MustCompile(`^(?:(items\[\d+\])|[A-Z]\w*(?: \S+)?): `)
	// errorField matches the path of a field at the beginning of an error, and an unknown field inside.
	errorField = regexp.MustCompile(`^(?:unknown field )?([A-Za-z_][^\s:;]*)(?:: unknown field ([^\s:;]+))?`)
)

// fieldOf returns the path of the field with which an error begins. The result is no field if the error has none.
func fieldOf(err error) string {
	var steps []string
	text := err.Error()
	for match := errorObject.FindStringSubmatch(text); match != nil; match = errorObject.FindStringSubmatch(text) {
		text = text[len(match[0]):]
		steps = append(steps, match[1])
	}
	if match := errorField.FindStringSubmatch(text); match != nil {
		steps = append(steps, match[1:]...)
	}
	return strings.Join(slices.DeleteFunc(steps, func(step string) bool { return step == "" }), ".")
}

// mistake returns an error about a field of the object, which begins with the position of the field.
func (m manifest) mistake(err error) error {
	if m.document == nil {
		place := m.place
		if m.resource != nil {
			if from := m.resource(); from != nil { // a patch may have changed the field
				place += ", from " + from.at(fieldOf(err))
			}
		}
		return fmt.Errorf("%s: %w", place, err)
	}
	path := m.inside + "." + fieldOf(err)
	place := m.document.at(path)
	if match := foundBool.FindStringSubmatch(err.Error()); match != nil {
		if written := m.document.asWritten(path); strings.ToLower(written) != match[1] && written != "" {
			return fmt.Errorf("%s: %s", place, foundBool.ReplaceAllString(err.Error(), "found "+written+", which YAML 1.1 reads as $1; expected"))
		}
	}
	return fmt.Errorf("%s: %w", place, err)
}

// foundBool matches the part of an error about a boolean that is not expected. The group is the boolean.
var foundBool = regexp.MustCompile(`\bfound (true|false); expected`)

// named returns an error as mistake does. The kind and the name of the object follow the position.
func (m manifest) named(err error) error {
	return m.mistake(fmt.Errorf("%s %s: %w", m.GetKind(), m.GetName(), err))
}
