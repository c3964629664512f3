package operator

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// namedFile matches the name of a file in the directory of the field files. The group is the name.
var namedFile = regexp.MustCompile(`\{\{-?\s*\.Files\s*-?\}\}/([\w.-]+)(?:[\s"',:;=]|$)`)

// checkFiles returns an error about an argument or a variable that names a file with a misspelled name. The notes are
// about other files that the field files does not have, because the program may create them.
func (d *subjectFile) checkFiles() (notes []string, err error) {
	known := slices.Sorted(maps.Keys(d.Subject.Files))
	check := func(path, text string) error {
		for _, match := range namedFile.FindAllStringSubmatch(text, -1) {
			name := match[1]
			if slices.Contains(known, name) {
				continue
			}
			similar := nearest.Suggestion(name, known)
			if similar != "" {
				return d.document.Errorf(path, "found the file %q; expected a name in subject.files%s", name, similar)
			}
			notes = append(notes, fmt.Sprintf("%s: found the file %q, which is not in subject.files; expected one of its names, unless the program creates the file", path, name))
		}
		return nil
	}
	for i, arg := range d.Subject.Args {
		if err := check(fmt.Sprintf("subject.args[%d]", i), arg); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Subject.Env)) {
		if err := check("subject.env."+name, d.Subject.Env[name]); err != nil {
			return nil, err
		}
	}
	return notes, nil
}
