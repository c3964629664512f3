package operator

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// execHint returns the end of an error about the field exec of a subject file, or "". It says what the user probably
// meant.
func execHint(dir, name string) string {
	for _, prefix := range []string{"exec:", "image:", "go:"} {
		if strings.HasPrefix(name, prefix) {
			return "; the field has only the path, without " + prefix
		}
	}
	if strings.ContainsAny(name, " ~$") {
		return "; the field has only the path, without arguments, ~ and variables"
	}
	path := within(dir, name)
	if sources, _ := filepath.Glob(filepath.Join(path, "*.go")); len(sources) > 0 {
		return "; build the program in this directory with go build, and name the result"
	}
	return pathHint(dir, name)
}

// pathHint returns a suggestion for a relative path that does not exist in a directory, or "". The user may have
// misspelled the path, or have meant the working directory.
func pathHint(dir, name string) string {
	if filepath.IsAbs(name) || strings.ContainsAny(name, "*?[~$") { // the error says already that it is no path
		return ""
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if target := inputfile.MissingTarget(path); target != "" {
		return "; the symbolic link leads to a file that does not exist" + target
	}
	if absolute, err := filepath.Abs(name); err == nil {
		if _, err := os.Stat(absolute); err == nil {
			if relative, err := filepath.Rel(dir, absolute); err == nil {
				return "; did you mean " + relative + "? A relative path begins at the directory of the subject file"
			}
		}
	}
	if similar := inputfile.SimilarFile(path); similar != "" {
		return "; did you mean " + filepath.Join(filepath.Dir(name), similar) + "?"
	}
	return ""
}
