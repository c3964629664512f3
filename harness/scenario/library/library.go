// Package library holds the chaos scenarios that come with gauntlet: one YAML
// file each, embedded. They are written so that a correct controller converges
// soon after the faults have healed: a key that has failed for a time T may wait
// for about T again before its next retry, so lasting errors are short, and what
// errs for longer errs a few times only.
package library

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

//go:embed *.yaml
var files embed.FS

// All returns the scenarios, by name. They are the caller's to change.
func All() ([]*scenario.Scenario, error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, fmt.Errorf("listing the scenario library: %w", err)
	}
	var all []*scenario.Scenario
	for _, entry := range entries {
		s, err := load(entry.Name())
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Find returns the scenario of that name.
func Find(name string) (*scenario.Scenario, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	var known []string
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
		known = append(known, s.Name)
	}
	return nil, fmt.Errorf("no scenario is called %q; the library has %s", name, strings.Join(known, ", "))
}

func load(file string) (*scenario.Scenario, error) {
	data, err := files.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the scenario library: %w", err)
	}
	return scenario.Parse("library/"+file, data)
}
