package scenario

import (
	"fmt"
	"maps"
	"reflect"
)

// renamedUntil is the first release that rejects the old names of fields, checks, scenarios and
// flags. VERSIONING.md says how long an old name works.
const renamedUntil = "v0.4"

// These maps have the new names of renamed fields, checks and scenarios. The keys are the names
// that earlier releases used. [Scenario.Marshal] writes only new names.
var (
	renamedFields = map[reflect.Type]map[string]string{
		reflect.TypeFor[Trigger](): {"truth": "state"},
	}

	renamedChecks = map[string]string{
		"alive":      "process-alive",
		"choice":     "scale-down-order",
		"claims":     "adopt-and-release",
		"content":    "matches-template",
		"history":    "revision-history-limit",
		"informed":   "cache-synced",
		"leadership": "lease-holder-writes",
		"quiet":      "no-writes-when-settled",
		"shut-out":   "terminating-namespace",
		"sizes":      "proportional-scaling",
	}

	renamedScenarios = map[string]string{
		"moments":   "triggers",
		"obstacles": "admission",
		"strays":    "orphaned-pods",
	}
)

// RenamedCheck returns the new ID of a renamed check. The argument is the old ID, such as
// "alive" for the check process-alive. RenamedCheck returns false if no check had the old ID.
func RenamedCheck(old string) (string, bool) {
	name, ok := renamedChecks[old]
	return name, ok
}

// RenamedChecks returns the new ID of every check that earlier releases named differently. The
// keys are the old IDs. The JSON Schema accepts these IDs as deprecated.
func RenamedChecks() map[string]string { return maps.Clone(renamedChecks) }

// RenamedScenarios returns the new name of every library scenario that earlier releases named
// differently. The keys are the old names.
func RenamedScenarios() map[string]string { return maps.Clone(renamedScenarios) }

// RenamedScenario returns the new name of a renamed library scenario. The argument is the old
// name. RenamedScenario returns false if no scenario had the old name.
func RenamedScenario(old string) (string, bool) {
	name, ok := renamedScenarios[old]
	return name, ok
}

// RenamedFields returns a map of a struct's renamed fields, from the old to the new YAML name.
func RenamedFields(of reflect.Type) map[string]string { return maps.Clone(renamedFields[of]) }

// RenameWarning returns a warning that a user used the old name of something. The name may be of
// a YAML field, a check, a library scenario or a flag.
func RenameWarning(old, name string) string {
	return fmt.Sprintf("found the old name %q; use the new name %q, because release %s rejects the old name", old, name, renamedUntil)
}

// Warnings returns the warnings about the scenario, such as one line for each old name in the
// file. A warning about the file begins with file, line and column.
func (s *Scenario) Warnings() []string {
	if s.source == nil {
		return nil
	}
	return s.source.warnings
}

// Warn adds a line to the scenario's warnings.
func (s *Scenario) Warn(warning string) {
	if s.source == nil {
		s.source = &source{}
	}
	s.source.warnings = append(s.source.warnings, warning)
}

// warnRenamed adds a warning that the file has an old name at the given position. The argument
// name is the new name.
func (src *source) warnRenamed(at position, old, name string) {
	src.warnings = append(src.warnings, src.errorAt(at, "", "%s", RenameWarning(old, name)).Error())
}

// renameFields replaces the old names of a struct's fields with the new names, and adds a
// warning for each. The argument path is the path of the struct in the file.
//
// The decoder calls renameFields before it decodes the fields. Therefore errors about a field
// contain the new name.
func (src *source) renameFields(fields mapping, of reflect.Type, path string) error {
	for i, field := range fields {
		name, ok := renamedFields[of][field.name]
		if !ok {
			continue
		}
		if fields.field(name) != nil {
			return src.errorAt(field.position, path, "found the old name %q and the new name %q of one field; remove the old name", field.name, name)
		}
		src.warnRenamed(field.position, field.name, name)
		fields[i].name = name
	}
	return nil
}

// renameChecks replaces the old IDs of checks in the field exercises with the new IDs. It adds a
// warning for each old ID.
func (s *Scenario) renameChecks() {
	for i, id := range s.Exercises {
		if name, ok := RenamedCheck(id); ok {
			s.source.warnRenamed(s.source.find(fmt.Sprintf("exercises[%d]", i)), id, name)
			s.Exercises[i] = name
		}
	}
}
