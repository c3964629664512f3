package scenario

import (
	"fmt"
	"maps"
	"reflect"
)

// renamedUntil is the first release that rejects the old names. VERSIONING.md says how long an
// old name works.
const renamedUntil = "v0.4"

// These maps have the new names of renamed fields, checks and scenarios, by the names that
// earlier releases used. [Scenario.Marshal] writes only new names.
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

// RenamedCheck returns the new ID of a check by the old name of the check. It returns false if
// no check had that ID.
func RenamedCheck(old string) (string, bool) {
	name, ok := renamedChecks[old]
	return name, ok
}

// RenamedChecks returns the new IDs of all renamed checks, by the old names.
func RenamedChecks() map[string]string { return maps.Clone(renamedChecks) }

// RenamedScenario returns the new name of a library scenario by its old name. It returns false
// if no scenario had that name.
func RenamedScenario(old string) (string, bool) {
	name, ok := renamedScenarios[old]
	return name, ok
}

// RenamedFields returns the new YAML names of the renamed fields of a struct, by the old names.
func RenamedFields(of reflect.Type) map[string]string { return maps.Clone(renamedFields[of]) }

// RenameWarning returns the text of the warning for the use of an old name. The name may be of a
// YAML field, a check, a library scenario or a flag.
func RenameWarning(old, name string) string {
	return fmt.Sprintf("%q is now %q; release %s removes the old name", old, name, renamedUntil)
}

// Warnings returns the warnings about the scenario, such as one line for each old name in the
// file. Warnings about the file begin with file, line and column, and are in the order of
// reading.
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

// warnRenamed adds a warning that the file has an old name at a position.
func (src *source) warnRenamed(at position, old, name string) {
	src.warnings = append(src.warnings, src.errorAt(at, "", "%s", RenameWarning(old, name)).Error())
}

// renameFields replaces old names of a struct's fields with the new names, and adds a warning
// for each. The argument path is the path of the struct.
//
// It changes the parsed YAML before it is decoded, so that errors about a field have the new
// name.
func (src *source) renameFields(fields mapping, of reflect.Type, path string) error {
	for i, field := range fields {
		name, ok := renamedFields[of][field.name]
		if !ok {
			continue
		}
		if fields.field(name) != nil {
			return src.errorAt(field.position, path, "found both %q and its new name %q; expected only one of them", field.name, name)
		}
		src.warnRenamed(field.position, field.name, name)
		fields[i].name = name
	}
	return nil
}

// renameChecks replaces old names of checks in the field exercises with the new IDs, and adds a
// warning for each.
func (s *Scenario) renameChecks() {
	for i, id := range s.Exercises {
		if name, ok := RenamedCheck(id); ok {
			s.source.warnRenamed(s.source.find(fmt.Sprintf("exercises[%d]", i)), id, name)
			s.Exercises[i] = name
		}
	}
}
