// Package library has the chaos scenarios that are built into gauntlet, one YAML file each.
// In each scenario, a correct controller can converge soon after the faults have healed.
// Therefore faults that reject all requests are short, and longer faults reject only a few
// requests. The reason is the back-off: a work queue key that has failed for some time may
// wait about as long again for its next retry.
package library

import (
	"embed"
	"io/fs"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

//go:embed *.yaml
var files embed.FS

// All returns the scenarios, sorted by name. The caller may change them. All panics if a
// file is not a valid scenario; a test prevents this.
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

// Find returns the scenario with a name, and reports whether it exists. A name of an
// earlier release finds the renamed scenario, which then has a warning. A test checks that
// each file has the name of its scenario.
func Find(name string) (*scenario.Scenario, bool) {
	if renamed, ok := scenario.RenamedScenario(name); ok {
		s := load(renamed + ".yaml")
		s.Warn(scenario.RenameWarning(name, renamed))
		return s, true
	}
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
