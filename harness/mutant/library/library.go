// Package library contains all mutants of gauntlet. A test applies the edits of all mutants to
// the current source, because the source may change.
package library

import (
	"slices"
	"sync"

	"github.com/kube-gauntlet/gauntlet/harness/mutant"
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

// text returns the YAML of a scenario with a fixed description. Fingerprints of mutants
// therefore do not depend on the real one. For an unknown scenario it returns "", and a test
// fails.
func text(name string) string {
	s, ok := scenarios.Find(name)
	if !ok {
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

// Texts returns the scenarios of the scenario library in YAML, by name. All have the same fixed
// description, so that results do not depend on the real one.
func Texts() mutant.Texts {
	texts := mutant.Texts{}
	for _, s := range scenarios.All() {
		texts[s.Name] = text(s.Name)
	}
	return texts
}

// edit returns an edit that replaces the text before in a file with the text after.
func edit(file, before, after string) mutant.Edit {
	return mutant.Edit{File: file, Old: before, New: after}
}
