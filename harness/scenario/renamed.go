package scenario

import (
	"fmt"
	"maps"
	"reflect"
)

// renamedUntil is the release that removes the old names. VERSIONING.md says how long an old
// name works.
const renamedUntil = "v0.4"

// These maps have the names that earlier releases used, with the names that replace them.
// Marshal writes only the new names.
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

// RenamedCheck returns the new ID of a check that had the ID old in an earlier release.
func RenamedCheck(old string) (string, bool) {
	name, ok := renamedChecks[old]
	return name, ok
}

// RenamedChecks returns the new IDs of renamed checks, by their old IDs.
func RenamedChecks() map[string]string { return maps.Clone(renamedChecks) }

// RenamedScenario returns the new name of a library scenario that had the name old in an
// earlier release.
func RenamedScenario(old string) (string, bool) {
	name, ok := renamedScenarios[old]
	return name, ok
}

// RenamedFields returns the new names of the renamed fields of a struct, by their old names
// in YAML.
func RenamedFields(of reflect.Type) map[string]string { return maps.Clone(renamedFields[of]) }

// RenameWarning returns the text of the warning for the use of an old name. It serves all kinds
// of names: of YAML fields, checks, library scenarios and flags.
func RenameWarning(old, name string) string {
	return fmt.Sprintf("%q is now %q; release %s removes the old name", old, name, renamedUntil)
}

// Warnings returns one line for each old name that the file uses, in the order
// in which they were read. Each line begins with file, line and column.
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

// warnRenamed records that the file uses an old name.
func (src *source) warnRenamed(at position, old, name string) {
	src.warnings = append(src.warnings, src.errorAt(at, "", "%s", RenameWarning(old, name)).Error())
}

// renameFields replaces old names of a struct's fields with the new names. It changes the
// parsed nodes before they are decoded, so that errors about a field have the new name.
func (src *source) renameFields(fields mapping, of reflect.Type) error {
	for i, field := range fields {
		name, ok := renamedFields[of][field.name]
		if !ok {
			continue
		}
		if fields.field(name) != nil {
			return src.errorAt(field.position, "", "found both %q and its new name %q; expected only one of them", field.name, name)
		}
		src.warnRenamed(field.position, field.name, name)
		fields[i].name = name
	}
	return nil
}

// renameChecks replaces old check IDs in the scenario with the new IDs.
func (s *Scenario) renameChecks() {
	for i, id := range s.Exercises {
		if name, ok := RenamedCheck(id); ok {
			s.source.warnRenamed(s.source.find(fmt.Sprintf("exercises[%d]", i)), id, name)
			s.Exercises[i] = name
		}
	}
}
