package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// link matches a Markdown link or image. Its only group is the target of the link.
var link = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)`)

// TestLinks checks that the target of every relative link and image exists in the project. A
// fragment, such as #setup, must be an anchor in the target file.
func TestLinks(t *testing.T) {
	documents := readDocuments(t)
	byPath := map[string]*document{}
	for _, d := range documents {
		byPath[d.path] = d
	}
	checked := 0
	for _, d := range documents {
		for i, line := range d.prose {
			for _, match := range link.FindAllStringSubmatch(line, -1) {
				if problem := problemOfLink(d, match[1], byPath); problem != "" {
					t.Errorf("%s:%d: link %s: %s", d.path, i+1, match[1], problem)
				}
				checked++
			}
		}
	}
	if checked == 0 {
		t.Error("found no links; expected some")
	}
}

// problemOfLink returns the reason why a relative link is broken. It returns "" for a valid
// link. It does not check absolute URLs, and returns "" for them.
func problemOfLink(from *document, target string, byPath map[string]*document) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return ""
	}
	file, fragment, _ := strings.Cut(target, "#")
	path := from.path
	if file != "" {
		path = filepath.ToSlash(filepath.Join(filepath.Dir(from.path), file))
	}
	if _, err := os.Stat(filepath.Join(root, path)); err != nil {
		return "found no file " + path
	}
	if fragment == "" {
		return ""
	}
	d := byPath[path]
	if d == nil {
		return path + " is not a Markdown file of the project"
	}
	if !d.anchors[fragment] {
		return "found no heading with the anchor #" + fragment + " in " + path
	}
	return ""
}

func TestSlugs(t *testing.T) {
	for title, want := range map[string]string{
		"A run directory":           "a-run-directory",
		"`stuck-scaling`: the run":  "stuck-scaling-the-run",
		"Don't [link](x.md) twice!": "dont-link-twice",
		"rbac_audit (RBAC)":         "rbac_audit-rbac",
	} {
		if got := slugOf(title); got != want {
			t.Errorf("%q: found the anchor %q, expected %q", title, got, want)
		}
	}
}
