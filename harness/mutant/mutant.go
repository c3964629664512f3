// Package mutant measures how well the checks detect bugs, by mutation testing. It builds
// controllers with small edits of their source, called mutants. It reports which checks fail in
// runs of each mutant. A check that detects no mutant has no proven value.
//
// A [Mutant] is a value with the edits, and with the scenarios that should detect the mutant.
// Package library has all mutants. A [Trial] builds mutants, runs their scenarios, and returns an
// [Outcome] for each mutant:
//
//	unmodified  each scenario runs once with the unmodified controllers
//	build       each mutant is built from an overlay of the source
//	run         the scenarios of each mutant run in order, with the same seed, until one detects it
//
// A scenario can detect a mutant only if the unmodified controllers pass the scenario.
package mutant

import (
	"fmt"
	"go/parser"
	"go/token"
	"strings"
)

// Mutant describes a controller that is broken on purpose: edits of the source that make the
// controller behave wrongly.
type Mutant struct {
	// ID identifies the mutant by its bug, such as R1 (ReplicaSets), D5 (Deployments) or E3
	// (Endpoints). A suffix distinguishes several mutants with the same bug, such as
	// R2-replication. If the bug is invented, and not from a real controller, the ID begins with
	// "own-".
	ID string
	// Description is one sentence that says what the mutant does wrong.
	Description string
	Base        Base
	// Edits has the changes of the source, in the order in which they are applied. An unobservable
	// mutant has no edits.
	Edits []Edit
	// Scenarios has the names of the scenarios that should detect the mutant. A trial runs the
	// scenarios in this order, so the one that most likely detects the mutant is first.
	Scenarios []string
	// Texts has the scenarios as YAML, in the order of Scenarios. If a scenario changes, the
	// mutant's fingerprint changes, and its result is out of date.
	Texts []string
	// Checks has the IDs of the checks that should fail. The mutant counts as detected if at least
	// one of these checks fails.
	Checks []string
	// OpenReason says why no check detects the mutant yet. It is empty if a check detects the
	// mutant.
	OpenReason string
	// UnobservableReason says why no check can ever detect the mutant. An unobservable mutant
	// has no edits and no scenarios.
	UnobservableReason string
}

// Base says which source code a mutant modifies: our controllers or those of
// kube-controller-manager.
type Base string

// These are the programs whose source code mutants can modify.
const (
	Ours     Base = "ours"     // the source in the directory controllers/ of this project
	Upstream Base = "upstream" // the source in the Go module k8s.io/kubernetes
)

// Edit replaces one text in a source file. The text must occur exactly once in the file.
type Edit struct {
	// File is the path of the file, relative to the root directory of the Go module, and separated
	// by slashes.
	File string
	// Old is the text that Apply replaces, and New is its replacement.
	Old, New string
}

// Fingerprint returns a hash of the mutant's edits and scenarios. An earlier outcome that was
// stored with another fingerprint is out of date.
//
// The hash does not depend on the source code around the edits. If only that code changes, an old
// outcome remains valid.
func (m *Mutant) Fingerprint() string {
	return fingerprint(m.Base, m.Edits, m.Scenarios, m.Texts)
}

// Apply applies the mutant's edits and returns the new contents of the edited files, by the
// files' paths. The argument read returns the original content of a file.
//
// Apply returns an error if an edit's old text does not occur exactly once in its file. It also
// returns an error if an edited file is not valid Go.
func (m *Mutant) Apply(read func(file string) ([]byte, error)) (map[string]string, error) {
	edited := map[string]string{}
	for _, e := range m.Edits {
		before, has := edited[e.File]
		if !has {
			content, err := read(e.File)
			if err != nil {
				return nil, fmt.Errorf("mutant %s: %w", m.ID, err)
			}
			before = string(content)
		}
		if n := strings.Count(before, e.Old); n != 1 || e.Old == "" {
			return nil, fmt.Errorf("mutant %s: %s has the text %.60q %d times; expected the text exactly once", m.ID, e.File, e.Old, n)
		}
		edited[e.File] = strings.Replace(before, e.Old, e.New, 1)
	}
	for file, content := range edited {
		if _, err := parser.ParseFile(token.NewFileSet(), file, content, parser.SkipObjectResolution); err != nil {
			return nil, fmt.Errorf("mutant %s: %w", m.ID, err)
		}
	}
	return edited, nil
}
