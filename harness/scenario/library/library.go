// Package library has the chaos scenarios that are built into gauntlet, one YAML file for each.
// In each scenario, a correct controller can converge soon after the faults have ended. For that
// reason, faults that reject all requests are short, and longer faults reject only a few
// requests. A long fault that rejects all requests would make the back-off of work queue keys
// too long. After N seconds of failed retries, the next retry of a key may come N seconds later.
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

// All returns all scenarios of the library, sorted by name. The caller may change the returned
// scenarios, because each call of All parses the files again. All panics if a file is not a
// valid scenario; a test prevents this.
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

// Find returns the scenario with the given name, such as "rollout". It returns false if there is
// no such scenario. If the scenario was renamed, Find also accepts the old name, and adds a warning
// to the scenario.
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

// load returns the scenario in one of the embedded files. It panics if the file is not a valid
// scenario.
func load(file string) *scenario.Scenario {
	data, err := files.ReadFile(file)
	if err != nil {
		panic(err)
	}
	s, err := scenario.Parse("library/"+file, data)
	if err != nil {
		panic(err)
	}
	s.HideFile()
	return s
}
