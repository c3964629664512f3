// Package mutant measures the checks by mutation testing. It builds controllers with
// small edits of their source, and determines which check fails for each of them. A
// check that detects no mutant has no proven value.
//
// A [Mutant] is data: its edits, and the scenarios that should detect it. Package
// library has the mutants. A trial builds a mutant, runs its scenarios, and returns an
// [Outcome]:
//
//	unmodified  each scenario runs once with the unmodified controllers
//	build       each mutant is built from an overlay of the source
//	run         its scenarios run in order, with the same seed, until a check fails
//
// A failure counts only in a scenario that the unmodified controllers pass.
package mutant

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"strings"
)

// Mutant is a modification of the controllers that makes them incorrect.
type Mutant struct {
	// ID is the ID of a bug of these controllers, such as R1, D5 or E3. It has a suffix if
	// the bug has several mutants, such as R2-replication. The ID of an invented bug begins
	// with "own-".
	ID string
	// Description is one sentence about the wrong behavior.
	Description string
	Base        Base
	// Edits are the modifications of the source, applied in order. An unobservable mutant
	// has none.
	Edits []Edit
	// Scenarios are the names of the scenarios that should detect the mutant. The scenario
	// that most likely detects it comes first.
	Scenarios []string
	// Texts are the YAML texts of the scenarios, in the order of Scenarios.
	Texts []string
	// Checks are the IDs of the expected checks. The mutant is detected if at least one of
	// these checks fails.
	Checks []string
	// OpenReason is the reason why no check detects the mutant. It is empty if a check
	// does.
	OpenReason string
	// UnobservableReason is the reason why no check can detect the mutant. An unobservable
	// mutant has neither edits nor scenarios.
	UnobservableReason string
}

// Base is the source of the controllers that a mutant modifies.
type Base string

// The bases.
const (
	Ours     Base = "ours"     // controllers/ of this project
	Upstream Base = "upstream" // the module k8s.io/kubernetes
)

// Edit replaces a text that occurs exactly once in a file.
type Edit struct {
	// File is the path of the file in the module of the base, with slashes.
	File     string
	Old, New string
}

// Fingerprint returns a hash of the edits and scenarios. An outcome of a mutant with
// another fingerprint is out of date. The hash does not include the code around the edits.
func (m *Mutant) Fingerprint() string {
	content, err := json.Marshal([]any{m.Base, m.Edits, m.Scenarios, m.Texts})
	if err != nil {
		panic(err) // plain strings
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:6])
}

// Apply returns the contents of the edited files by path. It returns an error if the text
// that an edit replaces does not occur exactly once, or if the result is not valid Go.
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
