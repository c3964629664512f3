package reference

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kube-gauntlet/gauntlet/harness/scenario/schema"
)

// website is the URL of the source tree, to which paths of pages are appended.
const website = "https://github.com/kube-gauntlet/gauntlet/blob/main/"

// Text describes the entry for a terminal, in lines of at most the given width. Examples and URLs
// may be wider. `gauntlet explain` prints the text.
func (e *Entry) Text(width int) string {
	p := &printer{width: width}
	p.facts(e)
	if e.Description != "" {
		p.block("description", e.Description)
	}
	for _, f := range e.Facts {
		if items, ok := f.Value.([]Item); ok && len(items) > 0 {
			p.items(f.Name, items)
		}
	}
	p.fields(e.Fields)
	if e.Example != "" {
		p.heading("example")
		for line := range strings.Lines(strings.TrimSpace(e.Example)) {
			p.WriteString(strings.TrimRight(indent+line, " \n") + "\n")
		}
	}
	if e.Page != "" {
		p.heading("documentation")
		p.WriteString(indent + website + e.Page + "\n")
	}
	return p.String()
}

// indent precedes each line of text below a heading.
const indent = "    "

// printer builds the text that describes an entry, which is one thing with a name, such as a check.
type printer struct {
	strings.Builder
	width int
}

// facts writes one line for each property whose value is not a list of items. Names and values are
// in two aligned columns. The first line has the name of the entry.
func (p *printer) facts(e *Entry) {
	short := []Fact{{e.Kind, e.Name}}
	for _, f := range e.Facts {
		if _, isItems := f.Value.([]Item); !isItems && !isEmpty(f.Value) {
			short = append(short, f)
		}
	}
	longest := 0
	for _, f := range short {
		longest = max(longest, len(Label(f.Name)))
	}
	margin := strings.Repeat(" ", longest+3)
	for _, f := range short {
		p.WriteString(wrapped(fmt.Sprintf("%-*s", len(margin), Label(f.Name)+":"), margin, Words(f.Value), p.width))
	}
}

// heading writes an empty line and a heading.
func (p *printer) heading(name string) { p.WriteString("\n" + Label(name) + ":\n") }

// block writes a heading, and a text below it.
func (p *printer) block(name, words string) {
	p.heading(name)
	p.WriteString(wrapped(indent, indent, words, p.width))
}

// items writes a heading, and named texts below it.
func (p *printer) items(name string, items []Item) {
	p.heading(name)
	for _, item := range items {
		p.WriteString(indent + item.Name + "\n" + wrapped(indent+indent, indent+indent, item.Text, p.width))
	}
}

// fields writes the fields that the entry can have. One line has the name and the type of a field,
// and the description follows below that line.
func (p *printer) fields(fields []schema.Field) {
	if len(fields) == 0 {
		return
	}
	p.heading("fields")
	for _, f := range fields {
		required := ""
		if f.Required {
			required = " -required-"
		}
		fmt.Fprintf(p, "%s%s <%s>%s\n", indent, f.Name, f.Type, required)
		words := f.Description
		if f.Values != "" {
			words += " Values: " + f.Values + "."
		}
		if f.Default != "" {
			words += " Default: " + f.Default + "."
		}
		p.WriteString(wrapped(indent+indent, indent+indent, strings.TrimSpace(words), p.width))
	}
}

// wrapped wraps words to lines of at most width characters. The argument first is the text before
// the first line. The argument rest is the text before each further line. Both texts must have the
// same length.
func wrapped(first, rest, words string, width int) string {
	if words == "" {
		return ""
	}
	var out strings.Builder
	margin := first
	for line := range strings.Lines(text.WrapSoft(words, max(width-len(rest), 20))) {
		out.WriteString(margin + strings.TrimSpace(line) + "\n")
		margin = rest
	}
	return out.String()
}

// Label converts the name of a property to a heading in capital letters. For example, apiVersion
// becomes "API VERSION".
func Label(name string) string {
	var label strings.Builder
	for _, letter := range name {
		if unicode.IsUpper(letter) {
			label.WriteByte(' ')
		}
		if letter == '-' {
			letter = ' '
		}
		label.WriteRune(unicode.ToUpper(letter))
	}
	return label.String()
}

// Words formats the value of a property on one line. Commas separate the elements of a list.
func Words(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case []string:
		return strings.Join(value, ", ")
	}
	return fmt.Sprint(value)
}
