package schema

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// comments has the doc comments of the types and fields of a package. It also has the comments at
// the end of the lines of typed string constants. The key of a type is its name, such as "Step".
// The key of a field has the form "Type.Field", and that of a constant the form "Type=value".
type comments map[string]string

// formatComments returns the doc comments in the source code of package scenario. They become
// the descriptions in the JSON Schema and in the reference documentation.
var formatComments = sync.OnceValue(func() comments {
	all, err := parseComments(scenario.Source)
	if err != nil {
		panic(err) // impossible: the compiler has parsed the same files
	}
	return all
})

// parseComments returns the doc comments in the Go files of a package. It ignores test files.
func parseComments(source fs.FS) (comments, error) {
	files, err := fs.Glob(source, "*.go")
	if err != nil {
		return nil, err
	}
	all := comments{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		content, err := fs.ReadFile(source, name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("reading the comments of %s: %w", name, err)
		}
		for _, decl := range file.Decls {
			if decl, ok := decl.(*ast.GenDecl); ok {
				all.add(decl)
			}
		}
	}
	return all, nil
}

// add adds the comments in one Go declaration to the map. A declaration may contain several types
// or constants.
func (c comments) add(decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			c[spec.Name.Name] = sentence(spec.Name.Name, decl.Doc.Text())
			if of, ok := spec.Type.(*ast.StructType); ok {
				c.addFields(spec.Name.Name, of)
			}
		case *ast.ValueSpec:
			kind, ok := spec.Type.(*ast.Ident)
			if !ok || len(spec.Values) != 1 {
				continue
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				value, _ := strconv.Unquote(literal.Value)
				c[kind.Name+"="+value] = sentence("", spec.Comment.Text())
			}
		}
	}
}

// addFields adds the doc comments of the fields of a struct to the map. The argument named of is
// the name of the struct type.
func (c comments) addFields(of string, fields *ast.StructType) {
	for _, field := range fields.Fields.List {
		for _, name := range field.Names {
			c[of+"."+name.Name] = sentence(name.Name, field.Doc.Text())
		}
	}
}

// sentence returns a comment as one line of text. It removes the identifier and the verb "is" at
// the beginning. For example, "Nodes is the number of nodes." becomes "The number of nodes."
func sentence(identifier, comment string) string {
	text := strings.Join(strings.Fields(comment), " ")
	if rest, ok := strings.CutPrefix(text, identifier+" "); ok && identifier != "" {
		text = strings.TrimPrefix(rest, "is ")
	}
	if text == "" {
		return ""
	}
	first := []rune(text)
	first[0] = unicode.ToUpper(first[0])
	return string(first)
}

// field returns the doc comment of a field as one line of text. The text becomes the description of
// the field in the reference documentation.
func (c comments) field(field scenario.FieldFormat) string {
	return c[field.Struct+"."+field.GoName]
}

// meanings returns the allowed values of a field, each with its comment. Values without a
// comment are not included.
func (c comments) meanings(field scenario.FieldFormat) []Meaning {
	var all []Meaning
	for _, value := range field.Enum {
		if text := c[field.Type.Name()+"="+value]; text != "" {
			all = append(all, Meaning{value, text})
		}
	}
	return all
}
