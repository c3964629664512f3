package scenario

import (
	"bytes"
	"errors"
	"regexp"
	"unicode/utf8"
)

// unrenderedPattern matches a line with a template outside of quotes and comments. Its group is the template, such as
// {{ .Values.name }} of Helm, or {% if %} of Jinja.
var unrenderedPattern = regexp.MustCompile(`^[^#"'\n]*?(\{[{%][^\n]*?[%}]\}|\{[{%])`)

// templatePattern matches a value that contains a template or a variable of a shell, such as $NAME.
var templatePattern = regexp.MustCompile(`\{\{.*?\}\}|\{%.*?%\}|\$\{\w+[^}]*\}|^\$[A-Za-z_]\w*$`)

// unrendered is the end of an error about a template.
const unrendered = "expected plain YAML, because scenarios support no templates and no variables; render the file first, such as with helm template or envsubst"

// unrenderedTemplate returns an error if a line that is not valid YAML has a template. Otherwise it returns nil.
func (src *source) unrenderedTemplate(data []byte, line int) error {
	lines := bytes.Split(data, []byte("\n"))
	if line < 1 || line > len(lines) {
		return nil
	}
	text := lines[line-1]
	match := unrenderedPattern.FindSubmatchIndex(text)
	if match == nil {
		return nil
	}
	at := position{line, 1 + utf8.RuneCount(text[:match[2]])}
	return src.errorAt(at, "", "found %.60s; %s", text[match[2]:match[3]], unrendered)
}

// withoutTemplates replaces all errors about values that contain templates by one error. It returns the other errors
// unchanged.
func (src *source) withoutTemplates(errs []error) []error {
	var others []error
	found := false
	for _, err := range errs {
		m := new(mistake)
		if !errors.As(err, &m) || m.path == "" {
			others = append(others, err)
			continue
		}
		value, exact := walk(src.root, m.path)
		text, _ := value.value.(string)
		template := templatePattern.FindString(text)
		switch {
		case !exact || template == "":
			others = append(others, err)
		case !found:
			found = true
			others = append(others, src.errorAt(value.position, m.path, "found %.60s; %s", template, unrendered))
		}
	}
	return others
}
