// Package library holds the chaos scenarios that come with gauntlet: one YAML
// file each, embedded. They are written so that a correct controller converges
// soon after the faults have healed: a key that has failed for a time T may wait
// for about T again before its next retry, so lasting errors are short, and what
// errs for longer errs a few times only.
package library

import (
	"embed"
	"io/fs"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

//go:embed *.yaml
var files embed.FS

// All returns the scenarios, by name. They are the caller's to change. A file
// that is no scenario is a mistake in this package, which its tests find.
func All() []*scenario.Scenario {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		panic(err)
	}
	var all []*scenario.Scenario
	for _, entry := range entries {
		all = append(all, load(entry.Name()))
	}
	return all
}

// Find returns the scenario of that name, if there is one. A file is named as its
// scenario, which a test sees to.
func Find(name string) (*scenario.Scenario, bool) {
	file := name + ".yaml"
	if _, err := fs.Stat(files, file); err != nil {
		return nil, false
	}
	return load(file), true
}

func load(file string) *scenario.Scenario {
	data, err := files.ReadFile(file)
	if err != nil {
		panic(err)
	}
	s, err := scenario.Parse("library/"+file, data)
	if err != nil {
		panic(err)
	}
	return s
}
