// Package library contains all mutants of gauntlet, and scenarios whose only purpose is to
// detect mutants. A test applies the edits of all mutants to the current source, because the
// source may change.
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

// All returns all mutants, in the order of TABLE.md.
func All() []mutant.Mutant { return slices.Clone(all()) }

// all returns all mutants, with the texts of their scenarios.
var all = sync.OnceValue(func() []mutant.Mutant {
	mutants := slices.Concat(replicas, deployments, endpoints, managers, heldOut, upstream)
	for i := range mutants {
		for _, name := range mutants[i].Scenarios {
			mutants[i].Texts = append(mutants[i].Texts, text(name))
		}
	}
	return mutants
})

// text returns the YAML of a scenario with a fixed description. Therefore, the fingerprints of
// mutants do not depend on the real description. For an unknown scenario it returns "", and a
// test fails.
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

// IDs returns the IDs of all mutants, in the order of TABLE.md.
func IDs() []string {
	var ids []string
	for _, m := range All() {
		ids = append(ids, m.ID)
	}
	return ids
}

//go:embed scenarios/*.yaml
var own embed.FS

// Scenario returns the scenario with the given name, from package harness/scenario/library or
// from this package. The caller may modify the returned scenario.
func Scenario(name string) (*scenario.Scenario, error) {
	if s, ok := scenarios.Find(name); ok {
		return s, nil
	}
	file := "scenarios/" + name + ".yaml"
	data, err := own.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("found scenario %q; expected a scenario of the library or of the mutants", name)
	}
	return scenario.Parse("library/"+file, data)
}

// edit returns an edit that replaces the text before in a file with the text after.
func edit(file, before, after string) mutant.Edit {
	return mutant.Edit{File: file, Old: before, New: after}
}
