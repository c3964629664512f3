package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// root is the root directory of the project.
var root = filepath.Join("..", "..")

// document is a Markdown file that parseDocument has parsed.
type document struct {
	path   string // path of the file, relative to the root of the repository, with slashes
	blocks []block
	// prose contains the lines of the file. The lines of code blocks are empty, so that the line
	// numbers stay the same.
	prose []string
	// anchors contains the IDs to which links can point: those of headings and of HTML anchors.
	anchors map[string]bool
}

// block is a fenced code block of a Markdown file.
type block struct {
	line     int // line number of the opening fence, counted from 1
	language string
	info     string // words after the language, such as "run exit=1"
	lines    []string
}

var (
	fence    = regexp.MustCompile("^( *)(```+) *([a-z]*) *(.*)$")
	heading  = regexp.MustCompile(`^#{1,6} +(.+?) *#*$`)
	codeSpan = regexp.MustCompile("`[^`]*`")
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	htmlID   = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
)

// readDocuments parses every Markdown file of the project. It skips hidden directories, bin,
// out and testdata.
func readDocuments(t *testing.T) []*document {
	t.Helper()
	var all []*document
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"bin", "out", "testdata"}, name)) {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		all = append(all, parseDocument(filepath.ToSlash(relative), string(text)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// parseDocument splits the text of a Markdown file into code blocks and prose.
func parseDocument(path, text string) *document {
	d := &document{path: path, anchors: map[string]bool{}}
	var open *block
	var indent, closing string // indentation and closing fence of the open block
	for i, line := range strings.Split(text, "\n") {
		match := fence.FindStringSubmatch(line)
		switch {
		case open != nil && match != nil && match[2] == closing && match[3]+match[4] == "":
			d.blocks = append(d.blocks, *open)
			open = nil
		case open != nil:
			open.lines = append(open.lines, strings.TrimPrefix(line, indent))
		case match != nil:
			open, indent, closing = &block{line: i + 1, language: match[3], info: match[4]}, match[1], match[2]
		default:
			d.addProse(line)
			continue
		}
		d.prose = append(d.prose, "")
	}
	return d
}

// addProse adds a line outside of code blocks to the document. It also adds the anchors in this
// line.
func (d *document) addProse(line string) {
	if match := heading.FindStringSubmatch(line); match != nil {
		slug := slugOf(match[1])
		for n, base := 1, slug; d.anchors[slug]; n++ {
			slug = base + "-" + strconv.Itoa(n)
		}
		d.anchors[slug] = true
	}
	for _, match := range htmlID.FindAllStringSubmatch(line, -1) {
		d.anchors[match[1]] = true
	}
	d.prose = append(d.prose, codeSpan.ReplaceAllString(line, "``"))
}

// slugOf returns the anchor that a Markdown renderer generates for a heading.
func slugOf(title string) string {
	title = linkText.ReplaceAllString(title, "$1")
	var slug strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case r == ' ':
			slug.WriteRune('-')
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			slug.WriteRune(r)
		}
	}
	return slug.String()
}
