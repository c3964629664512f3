// Package library holds the mutants that come with gauntlet, and the scenarios that
// no unbroken controller needs but that show one of them. The edits are of sources
// that change: a test applies all of them to the tree, so that none rots.
package library

import (
	"embed"
	"fmt"
	"slices"
	"sync"

	"github.com/kube-gauntlet/gauntlet/harness/mutant"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	scenarios "github.com/kube-gauntlet/gauntlet/harness/scenario/library"
)

// All are the mutants, in the order in which tables show them.
func All() []mutant.Mutant { return slices.Clone(all()) }

var all = sync.OnceValue(func() []mutant.Mutant {
	mutants := slices.Concat(replicas, deployments, endpoints, managers, heldOut, upstream)
	for i := range mutants {
		for _, name := range mutants[i].Scenarios {
			mutants[i].Texts = append(mutants[i].Texts, text(name))
		}
	}
	return mutants
})

// text is that of a scenario; of one that is not there, a test tells.
func text(name string) string {
	s, err := Scenario(name)
	if err != nil {
		return ""
	}
	written, err := s.Marshal()
	if err != nil {
		return ""
	}
	return string(written)
}

// IDs are those of all mutants.
func IDs() []string {
	var ids []string
	for _, m := range All() {
		ids = append(ids, m.ID)
	}
	return ids
}

//go:embed scenarios/*.yaml
var own embed.FS

// Scenario is the scenario of that name, of this library or of the one that every
// controller is run through. It is the caller's to change.
func Scenario(name string) (*scenario.Scenario, error) {
	if s, ok := scenarios.Find(name); ok {
		return s, nil
	}
	file := "scenarios/" + name + ".yaml"
	data, err := own.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("scenario %q: expected one of gauntlet's or of the mutants' library", name)
	}
	return scenario.Parse("library/"+file, data)
}

// edit is a mutant's edit.
func edit(file, before, after string) mutant.Edit {
	return mutant.Edit{File: file, Old: before, New: after}
}
