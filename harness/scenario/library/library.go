// Package library has the chaos scenarios that are built into gauntlet, one YAML file for each.
// In each scenario, a correct controller can converge soon after the faults have ended. For
// that reason, faults that reject all requests are short, and longer faults reject only a few
// requests. Otherwise the back-off of a work queue key would become too long. A key that has
// failed for N seconds may wait another N seconds for its next retry.
//
// The scenarios are in tiers: quick, default and full. The file tiers.txt lists the scenarios of
// quick and default. It is the output of "gauntlet mutants tiers".
package library

import (
	"embed"
	"io/fs"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

//go:embed *.yaml
var files embed.FS

// All returns all scenarios of the library, sorted by name. The caller may change them, because
// each call parses the files again. All panics if a file is not a valid scenario; a test
// prevents this.
func All() []*scenario.Scenario {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		panic(err)
	}
	var all []*scenario.Scenario
	for _, entry := range entries {
		all = append(all, load(entry.Name()))
	}
	slices.SortFunc(all, func(a, b *scenario.Scenario) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Find returns the scenario with a name, and reports whether it exists. For an old name, it
// returns the renamed scenario with a warning.
//
// It opens the file NAME.yaml; a test checks that each file has the name of its scenario.
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

// load parses one of the embedded files. It panics if the file is not a valid scenario.
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
