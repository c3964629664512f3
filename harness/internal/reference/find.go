package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/schema"
)

// Find returns the entries that a path names. A path is one of these:
//
//   - the kind and the name of an entry, such as check/max-surge; the path of a field may follow,
//     as in fault/watch-delay.delay
//   - the path of a field of the scenario format, such as scenario.settle.quiet
//   - the name of a section, such as checks
//   - the name of an entry, such as max-surge, if the path is none of the above
//
// Several entries may have the same name. If nothing is found, the error suggests the most similar
// name.
func Find(path string) ([]Entry, error) {
	if kind, name, ok := strings.Cut(path, "/"); ok {
		section, err := SectionNamed(kind)
		if err != nil {
			return nil, err
		}
		return section.Find(name)
	}
	names := strings.Split(path, ".")
	if names[0] == "scenario" {
		e, err := fieldAt(schema.Root(), names[1:])
		return []Entry{e}, err
	}
	if section, err := SectionNamed(path); err == nil {
		return []Entry{section.entry()}, nil
	}
	var found []Entry
	var known []string
	for i := range Sections {
		s := &Sections[i]
		known = append(known, s.Names()...)
		if entries, err := s.Find(path); err == nil {
			found = append(found, entries...)
		}
	}
	if len(found) == 0 {
		known = append(known, SectionNames()...)
		return nil, fmt.Errorf("%q is unknown: expected KIND/NAME, such as check/max-surge, or the path of a field, such as scenario.faults%s", path, nearest.Suggestion(path, known))
	}
	return found, nil
}

// SectionNamed returns the section of `gauntlet list` with the given plural or singular name, such
// as "checks". If there is none, the error suggests the most similar name.
func SectionNamed(name string) (*Section, error) {
	var known []string
	for i := range Sections {
		if s := &Sections[i]; name == s.Name || name == s.Singular {
			return s, nil
		}
		known = append(known, Sections[i].Name, Sections[i].Singular)
	}
	return nil, fmt.Errorf("%q is unknown: expected one of %s%s", name, strings.Join(SectionNames(), ", "), nearest.Suggestion(name, known))
}

// Find returns the entries of the section that have the given name, such as the check max-surge. A
// path of fields may follow the name, as in "watch-delay.delay".
func (s *Section) Find(path string) ([]Entry, error) {
	var found []Entry
	for _, e := range s.Entries() {
		if e.isNamed(path) {
			found = append(found, e)
		}
	}
	if found != nil {
		return found, nil
	}
	name, fields, _ := strings.Cut(path, ".")
	for _, e := range s.Entries() {
		if e.isNamed(name) && e.Fields != nil {
			parent := schema.Field{Name: s.Singular + "/" + e.Name, Fields: func() []schema.Field { return e.Fields }}
			field, err := fieldAt(parent, strings.Split(fields, "."))
			return []Entry{field}, err
		}
	}
	return nil, fmt.Errorf(`%s %q is unknown%s ("gauntlet list %s" lists all)`, s.Singular, path, nearest.Suggestion(path, s.Names()), s.Name)
}

// isNamed reports whether the entry's name or one of its aliases equals the given name. Upper and
// lower case are equal.
func (e *Entry) isNamed(name string) bool {
	return strings.EqualFold(e.Name, name) || slices.ContainsFunc(e.Aliases, func(alias string) bool {
		return alias != "" && strings.EqualFold(alias, name)
	})
}

// fieldAt returns the entry for a field that is nested in another field, which is the argument at.
// The argument path has the field names on the way to the nested field, such as "settle" and
// "quiet".
func fieldAt(at schema.Field, path []string) (Entry, error) {
	parents := at.Name
	for _, name := range path {
		var fields []schema.Field
		if at.Fields != nil {
			fields = at.Fields()
		}
		i := slices.IndexFunc(fields, func(f schema.Field) bool { return f.Name == name })
		if i < 0 {
			return Entry{}, unknownField(parents, name, fields)
		}
		at, parents = fields[i], parents+"."+name
	}
	e := Entry{Kind: "field", Name: parents, Description: at.Description, Example: at.Example, Page: "docs/reference/scenario.md"}
	e.Facts = []Fact{{"type", at.Type}, {"required", at.Required}, {"default", at.Default}, {"values", at.Values}, {"meanings", items(at.Meanings)}}
	if at.Fields != nil {
		e.Fields = at.Fields()
	}
	return e, nil
}

// unknownField returns the error for a field name that does not exist in a parent field. The
// argument path is the path of the parent field. The argument fields has the fields that exist in
// the parent field.
func unknownField(path, name string, fields []schema.Field) error {
	var known []string
	for _, f := range fields {
		known = append(known, f.Name)
	}
	if known == nil {
		return fmt.Errorf("%s has no field %q: this value has no fields", path, name)
	}
	return fmt.Errorf("%s has no field %q: expected one of %s%s", path, name, strings.Join(known, ", "), nearest.Suggestion(name, known))
}

// items converts the documented values of a field to items. The name of each item is the value, and
// its text is the meaning of the value.
func items(meanings []schema.Meaning) []Item {
	var all []Item
	for _, m := range meanings {
		all = append(all, Item{m.Value, m.Text})
	}
	return all
}

// entry returns an entry about the section itself, such as checks, for "gauntlet explain checks".
// It says what the entries are, and lists their names.
func (s *Section) entry() Entry {
	return Entry{Kind: "list", Name: s.Name, Description: s.Description, Facts: []Fact{{s.Name, s.Names()}}}
}
