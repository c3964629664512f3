// Package mutant measures how well the checks detect bugs, by mutation testing. It builds
// controllers with small edits of their source, and determines which checks fail for each of
// them. A check that detects no mutant has no proven value.
//
// A [Mutant] is data: edits, and the scenarios that should detect the mutant. The mutants are
// in package library. A [Trial] builds mutants, runs their scenarios, and returns an [Outcome]
// for each mutant:
//
//	unmodified  each scenario runs once with the unmodified controllers
//	build       each mutant is built from an overlay of the source
//	run         the scenarios of each mutant run in order, with the same seed, until one detects it
//
// Only scenarios that the unmodified controllers pass can detect a mutant.
package mutant

import (
	"fmt"
	"go/parser"
	"go/token"
	"strings"
)

// Mutant is an edit of the source of the controllers that makes their behavior wrong.
type Mutant struct {
	// ID identifies the bug, such as R1 (ReplicaSets), D5 (Deployments) or E3 (Endpoints). A
	// suffix distinguishes several mutants with the same bug, such as R2-replication. The ID
	// of an invented bug begins with "own-".
	ID string
	// Description is one sentence that says what the mutant does wrong.
	Description string
	Base        Base
	// Edits are the edits of the source. They are applied in order. An unobservable mutant has
	// no edits.
	Edits []Edit
	// Scenarios are the names of the scenarios that should detect the mutant. A trial runs
	// them in this order, so the scenario that most likely detects the mutant is first.
	Scenarios []string
	// Texts are the scenarios in YAML, in the order of Scenarios. They are a part of the
	// fingerprint.
	Texts []string
	// Checks are the IDs of the expected checks. The mutant counts as detected if at least one
	// of these checks fails.
	Checks []string
	// OpenReason says why no check detects the mutant yet. It is empty if a check detects the
	// mutant.
	OpenReason string
	// UnobservableReason says why no check can ever detect the mutant. An unobservable mutant
	// has no edits and no scenarios.
	UnobservableReason string
}

// Base identifies the source code that a mutant modifies.
type Base string

// These are the sources that mutants modify.
const (
	Ours     Base = "ours"     // controllers/ of this project
	Upstream Base = "upstream" // the module k8s.io/kubernetes
)

// Edit replaces a text that occurs exactly once in a source file.
type Edit struct {
	// File is the slash-separated path of the file, relative to the root of its module.
	File string
	// Old is the text to replace, and New its replacement.
	Old, New string
}

// Fingerprint returns a hash of the edits and scenarios of the mutant. An outcome with another
// fingerprint is out of date.
//
// The hash does not include the source code around the edits. If only that code changes, old
// outcomes still count.
func (m *Mutant) Fingerprint() string {
	return fingerprint(m.Base, m.Edits, m.Scenarios, m.Texts)
}

// Apply applies the edits of the mutant and returns the contents of the edited files by their
// paths.
//
// It returns an error if Old of an edit does not occur exactly once in its file, or if an
// edited file is not valid Go.
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
			return nil, fmt.Errorf("mutant %s: %s has the text %.60q %d times; expected it once", m.ID, e.File, e.Old, n)
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
