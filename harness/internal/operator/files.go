package operator

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
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

// unusedFiles returns a text about the files of the subject file that the program does not find. Only {{.Files}} in an
// argument or variable, or a mount of the Deployment, leads to these files.
func (d *subjectFile) unusedFiles(arguments []string, environment map[string]string, volumes []subject.Volume) []string {
	usesFiles := func(text string) bool { return strings.Contains(text, ".Files") }
	if slices.ContainsFunc(arguments, usesFiles) || slices.ContainsFunc(slices.Collect(maps.Values(environment)), usesFiles) {
		return nil
	}
	var unused []string
	for _, name := range slices.Sorted(maps.Keys(d.Subject.Files)) {
		mounted := func(v subject.Volume) bool { _, ok := v.Files[name]; return ok }
		if !slices.ContainsFunc(volumes, mounted) {
			unused = append(unused, name)
		}
	}
	if len(unused) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("subject.files: found %s, which the program does not find; expected {{.Files}} in an argument or variable, or a mounted file of this name", nearest.List(unused, "and"))}
}
