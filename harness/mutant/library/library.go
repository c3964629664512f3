// Package library has the mutants of gauntlet, and scenarios whose only purpose is to
// detect them. A test applies all edits to the tree, because the edited source files may
// change.
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

// All returns the mutants, in the order of the table.
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

// text returns the YAML of a scenario without its description. The fingerprint of a mutant
// must not depend on the description. It returns "" for an unknown scenario, which a test
// reports.
func text(name string) string {
	s, err := Scenario(name)
	if err != nil {
		return ""
	}
	s.Description = "A scenario of the mutants."
	written, err := s.Marshal()
	if err != nil {
		return ""
	}
	return string(written)
}

// IDs returns the IDs of all mutants.
func IDs() []string {
	var ids []string
	for _, m := range All() {
		ids = append(ids, m.ID)
	}
	return ids
}

//go:embed scenarios/*.yaml
var own embed.FS

// Scenario returns the scenario with a name, from the scenario library or from this
// package. The caller may change it.
func Scenario(name string) (*scenario.Scenario, error) {
	if s, ok := scenarios.Find(name); ok {
		return s, nil
	}
	file := "scenarios/" + name + ".yaml"
	data, err := own.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("found scenario %q; expected one of the scenario library or of the mutants' scenarios", name)
	}
	return scenario.Parse("library/"+file, data)
}

// edit returns an edit of a file.
func edit(file, before, after string) mutant.Edit {
	return mutant.Edit{File: file, Old: before, New: after}
}
