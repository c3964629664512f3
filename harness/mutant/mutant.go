// Package mutant measures the checks: it breaks controllers on purpose, by small
// edits of their source, and sees which check tells each broken one from the
// unbroken. A check that catches no mutant is worth nothing, however well it reads.
//
// A [Mutant] is data: what is broken, by which edits, and in which scenarios that
// should show. Those that there are stand in package library. A trial builds a
// mutant, runs it through its scenarios, and comes to an [Outcome]:
//
//	unbroken  every scenario, once, on what the mutants were made from
//	build     each mutant, its edits laid over the source, which stays as it is
//	run       its scenarios in turn, with the same seed, until a check fails
//
// A failure counts only in a scenario that the unbroken controllers pass: the
// others say nothing of the mutant.
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

// Mutant is a way to break controllers.
type Mutant struct {
	// ID is that of a bug that these controllers have had (R1, D5, E3), with a suffix
	// where it has several mutants (R2-replication), or else begins with "own-".
	ID string
	// Description is one sentence on what the mutant does wrong.
	Description string
	Base        Base
	// Edits are applied in their order. None where nothing could observe it.
	Edits []Edit
	// Scenarios should show it, the most telling first: names of the library of
	// scenarios or of this one's own.
	Scenarios []string
	// Texts are those of the scenarios, in the same order.
	Texts []string
	// Checks are the IDs of those that fail for the right reason, one of them at least.
	Checks []string
	// OpenReason is why no check catches it yet; empty if one does.
	OpenReason string
	// UnobservableReason is why nothing that can be observed tells it from the unbroken; then it
	// has neither edits nor scenarios.
	UnobservableReason string
}

// Base is what a mutant is made from.
type Base string

// The bases.
const (
	Ours     Base = "ours"     // controllers/ of this project
	Upstream Base = "upstream" // the module k8s.io/kubernetes
)

// Edit replaces a text that a file has exactly once.
type Edit struct {
	// File is the file's path in the base's module, with slashes.
	File     string
	Old, New string
}

// Fingerprint changes when anything does that an outcome depends on, but for the
// code around it.
func (m *Mutant) Fingerprint() string {
	content, err := json.Marshal([]any{m.Base, m.Edits, m.Scenarios, m.Texts})
	if err != nil {
		panic(err) // plain strings
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:6])
}

// Apply returns the files that the edits change, as they are then, by path. It
// fails where an edit does not fit, or leaves what is not Go.
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
