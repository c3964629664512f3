// Package library contains all mutants of gauntlet, which are controllers with a deliberate bug. A
// test applies the edits of all mutants to the current source, because the source may have
// changed.
package library

import (
	"slices"
	"sync"

	"github.com/kube-gauntlet/gauntlet/harness/mutant"
	scenarios "github.com/kube-gauntlet/gauntlet/harness/scenario/library"
)

// All returns all mutants, in the order in which TABLE.md lists them.
func All() []mutant.Mutant { return slices.Clone(all()) }

// all returns all mutants, with the YAML of their scenarios in the field Texts.
var all = sync.OnceValue(func() []mutant.Mutant {
	mutants := slices.Concat(replicas, deployments, endpoints, managers, heldOut, unseen, upstream)
	for i := range mutants {
		for _, name := range mutants[i].Scenarios {
			mutants[i].Texts = append(mutants[i].Texts, text(name))
		}
	}
	return mutants
})

// text returns the YAML of the named scenario with a fixed description. Saved results thus stay
// valid after a change of the description. If there is no such scenario, text returns "", and a
// test fails.
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

// IDs returns the ID of each mutant, in the order in which TABLE.md lists them.
func IDs() []string {
	var ids []string
	for _, m := range All() {
		ids = append(ids, m.ID)
	}
	return ids
}

// Texts returns all scenarios of the scenario library as YAML, by name. The descriptions are
// replaced by a fixed text, so that a new description does not make results out of date.
func Texts() mutant.Texts {
	texts := mutant.Texts{}
	for _, s := range scenarios.All() {
		texts[s.Name] = text(s.Name)
	}
	return texts
}

// edit returns an edit of a source file. The argument before is the text to replace, and the
// argument after is its replacement.
func edit(file, before, after string) mutant.Edit {
	return mutant.Edit{File: file, Old: before, New: after}
}
