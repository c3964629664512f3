package reference

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/kube-gauntlet/gauntlet/faults/catalog"
	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/schema"
)

// Section is a list of entries of one sort, such as all checks. `gauntlet list` prints a section as
// a table.
type Section struct {
	// Name is the plural name, such as "checks". Singular is the singular name, such as "check",
	// which all entries have as their Kind.
	Name, Singular string
	// Description says in one sentence what the entries are.
	Description string
	// Columns has the names of the facts that the section's table shows after the entry's name. If
	// the entries have descriptions, the last column has the description.
	Columns []string
	// Entries returns the entries in the order of the table from which they are read. All calls
	// return the same slice.
	Entries func() []Entry
}

// Sections has all sections, in the order in which "gauntlet list" shows them.
var Sections = []Section{
	{"scenarios", "scenario", "The scenarios that gauntlet contains, with the smallest tier that has them.", []string{"tier"}, sync.OnceValue(scenarios)},
	{"checks", "check", "The guarantees of the controllers under test. Each check decides from a history whether one guarantee holds.", []string{"property", "scope"}, sync.OnceValue(checks)},
	{"faults", "fault", "The types of faults that a scenario can inject.", []string{"providers"}, sync.OnceValue(faultTypes)},
	{"operations", "operation", "What a step of the workload of a scenario can do.", nil, sync.OnceValue(operations)},
	{"triggers", "trigger", "The events on which a fault can begin or end.", nil, sync.OnceValue(triggers)},
	{"kinds", "kind", "The kinds of objects that gauntlet knows. Scenarios can use other kinds too, with a manifest.", []string{"shortName", "apiVersion", "resource", "namespaced"}, sync.OnceValue(kinds)},
	{"controllers", "controller", "The controllers of kube-controller-manager that can be under test. CONTRACT is true if the contract checks know what the controller promises. TRAITS say how it works, and decide which of these checks apply to it.", []string{"reconciles", "contract", "traits"}, sync.OnceValue(controllerRows)},
	{"providers", "provider", "The ways in which gauntlet gets the control plane of a run.", []string{"capabilities"}, sync.OnceValue(providerRows)},
	{"allowed-behaviors", "allowed-behavior", "Correct behaviors of controllers that look like a violation. No check reports them.", nil, sync.OnceValue(allowedBehaviors)},
	{"known-issues", "known-issue", "Known bugs of kube-controller-manager.", []string{"issue"}, sync.OnceValue(knownIssues)},
}

// Names returns the name of each entry of the section, such as the IDs of all checks.
func (s *Section) Names() []string {
	var names []string
	for _, e := range s.Entries() {
		names = append(names, e.Name)
	}
	return names
}

// SectionNames returns the plural name of each section of `gauntlet list`, such as "checks".
func SectionNames() []string {
	var names []string
	for _, s := range Sections {
		names = append(names, s.Name)
	}
	return names
}

// scenarios returns one [Entry] for each built-in scenario. `gauntlet list scenarios` shows these
// entries.
func scenarios() []Entry {
	var all []Entry
	for _, s := range library.All() {
		var faults []string
		for _, fault := range s.Faults {
			if !slices.Contains(faults, fault.Name) {
				faults = append(faults, fault.Name)
			}
		}
		text, err := s.Marshal()
		if err != nil {
			panic(err) // impossible: the scenario was parsed from the format in which Marshal writes it
		}
		all = append(all, Entry{
			Kind: "scenario", Name: s.Name, Aliases: oldNames(scenario.RenamedScenarios(), s.Name), Description: s.Description, Example: string(text), Page: "docs/reference/scenario.md",
			Facts: []Fact{{"tier", string(library.TierOf(s.Name))}, {"exercises", s.Exercises}, {"faults", faults}},
		})
	}
	return all
}

// checks returns one [Entry] for each check. `gauntlet list checks` shows these entries.
func checks() []Entry {
	exercisedBy := map[string][]string{} // the names of scenarios, by the ID of a check
	for _, s := range library.All() {
		for _, id := range s.Exercises {
			exercisedBy[id] = append(exercisedBy[id], s.Name)
		}
	}
	var all []Entry
	for _, c := range check.All {
		scope := "contract"
		if c.Scope.General() {
			scope = "general"
		}
		all = append(all, Entry{
			Kind: "check", Name: c.ID, Aliases: oldNames(scenario.RenamedChecks(), c.ID), Description: c.Guarantee, Page: "docs/reference/checks.md#" + c.ID,
			Facts: []Fact{
				{"property", string(c.Property)},
				{"scope", scope},
				{"traits", texts(c.Scope.Traits)},
				{"contract", c.Contract},
				{"writtenIn", writtenIn(c.Contract)},
				{"exercisedWhen", c.ExercisedWhen},
				{"exercisedBy", exercisedBy[c.ID]},
				{"traitMeanings", meaningsOf(c.Scope.Traits)},
				{"statements", statements(c.Contract)},
				{"allowedBehaviors", behaviorsNamed(c.AllowedBehaviors)},
			},
		})
	}
	return all
}

// oldNames returns the names that earlier releases used for the name current. The argument renamed
// maps old names to new ones.
func oldNames(renamed map[string]string, current string) []string {
	var old []string
	for _, name := range slices.Sorted(maps.Keys(renamed)) {
		if renamed[name] == current {
			old = append(old, name)
		}
	}
	return old
}

// behaviorsNamed returns the allowed behaviors with the given slugs, as named texts. These are
// correct behaviors that look like violations.
func behaviorsNamed(slugs []string) []Item {
	var items []Item
	for _, b := range check.AllowedBehaviors {
		if slices.Contains(slugs, b.Slug) {
			items = append(items, Item{b.Slug, b.Behavior})
		}
	}
	return items
}

// faultTypes returns one [Entry] for each type of fault. `gauntlet list faults` shows these
// entries.
func faultTypes() []Entry {
	all := described("fault", "docs/reference/faults.md", schema.Faults())
	for i, of := range catalog.All {
		all[i].Facts = []Fact{{"healing", of.Healing}, {"providers", providers.With(of.Needs...)}}
	}
	return all
}

// operations returns one [Entry] for each operation of a workload, such as scale. `gauntlet list
// operations` shows these entries.
func operations() []Entry {
	return described("operation", "docs/reference/scenario.md", schema.Operations())
}

// triggers returns one [Entry] for each trigger, an event on which a fault can begin or end.
// `gauntlet list triggers` shows these entries.
func triggers() []Entry {
	return described("trigger", "docs/reference/triggers.md", schema.Triggers())
}

// described returns an entry for each of the given fields of the scenario format. The argument kind
// is the Kind of the entries. The argument page is the path of the documentation page, which has a
// heading for each field.
func described(kind, page string, fields []schema.Field) []Entry {
	var all []Entry
	for _, field := range fields {
		e := Entry{Kind: kind, Name: field.Name, Description: field.Description, Example: field.Example, Page: page + "#" + field.Name}
		if field.Fields != nil {
			e.Fields = field.Fields()
		}
		all = append(all, e)
	}
	return all
}

// kinds returns one [Entry] for each Kind that gauntlet knows. `gauntlet list kinds` shows these
// entries.
func kinds() []Entry {
	formats := map[string]scenario.KindFormat{}
	for _, format := range scenario.Kinds() {
		formats[string(format.Kind)] = format
	}
	var all []Entry
	for _, k := range kube.Kinds {
		e := Entry{
			Kind: "kind", Name: k.Name, Aliases: []string{k.GVR.Resource, k.ShortName, k.GVR.GroupResource().String()}, Page: "docs/reference/scenario.md#kinds",
			Facts: []Fact{
				{"apiVersion", k.APIVersion()},
				{"resource", k.GVR.Resource},
				{"shortName", k.ShortName},
				{"namespaced", !k.ClusterScoped},
				{"controls", k.Controls},
			},
		}
		if format, ok := formats[k.Name]; ok {
			e.Facts = append(e.Facts, Fact{"createFields", format.Create}, Fact{"awaitConditions", texts(format.Conditions)})
		}
		all = append(all, e)
	}
	return all
}

// controllerRows returns one [Entry] for each controller that can be under test. `gauntlet list
// controllers` shows these entries.
func controllerRows() []Entry {
	var all []Entry
	for _, c := range kube.Controllers {
		e := Entry{
			Kind: "controller", Name: c.Name, Page: "controllers/CONTRACT.md",
			Facts: []Fact{
				{"reconciles", c.Kind},
				{"contract", c.Contract},
				{"watches", c.Watches},
				{"writes", c.Writes},
				{"traits", texts(c.Traits)},
				{"concurrencyFlag", c.ConcurrencyFlag},
				{"traitMeanings", meaningsOf(c.Traits)},
			},
		}
		if !c.Contract {
			e.Page = "docs/reference/checks.md"
		}
		all = append(all, e)
	}
	return all
}

// meaningsOf returns the meanings of the given traits. A trait is a property of a controller that
// decides which checks apply.
func meaningsOf(traits []kube.Trait) []Item {
	var items []Item
	for _, row := range kube.Traits {
		if slices.Contains(traits, row.Trait) {
			items = append(items, Item{string(row.Trait), row.Meaning})
		}
	}
	return items
}

// providerRows returns one [Entry] for each provider of clusters, such as kind. `gauntlet list
// providers` shows these entries.
func providerRows() []Entry {
	var all []Entry
	for _, p := range providers.All {
		all = append(all, Entry{
			Kind: "provider", Name: p.Name, Page: "docs/providers/" + p.Name + ".md",
			Facts: []Fact{{"capabilities", texts(p.Capabilities)}},
		})
	}
	return all
}

// allowedBehaviors returns one [Entry] for each correct behavior that looks like a violation. No
// check reports these behaviors. `gauntlet list allowed-behaviors` shows the entries.
func allowedBehaviors() []Entry {
	var all []Entry
	for _, b := range check.AllowedBehaviors {
		all = append(all, Entry{
			Kind: "allowed-behavior", Name: b.Slug, Description: b.Behavior, Page: "docs/allowed-behaviors.md#" + b.Slug,
			Facts: []Fact{{"topic", b.Topic}, {"handling", handling(b.Handling)}},
		})
	}
	return all
}

// handling splits lines such as "max-surge: counts only …" into items. The name of each item is a
// check, and its text says how the check treats the allowed behavior.
func handling(lines []string) []Item {
	var items []Item
	for _, line := range lines {
		checks, text, _ := strings.Cut(line, ": ")
		items = append(items, Item{checks, text})
	}
	return items
}

// knownIssues returns one [Entry] for each known bug of kube-controller-manager. `gauntlet list
// known-issues` shows these entries.
func knownIssues() []Entry {
	var all []Entry
	add := func(issue *check.KnownIssue) {
		all = append(all, Entry{
			Kind: "known-issue", Name: issue.Slug, Description: issue.Description, Page: "docs/known-upstream-issues.md#" + issue.Slug,
			Facts: []Fact{{"issue", issue.Issue}, {"check", issue.Check}, {"reproduce", issue.Reproduce}},
		})
	}
	for _, issue := range check.KnownIssues {
		add(issue)
	}
	for i := range check.UnrecognizedIssues {
		add(&check.UnrecognizedIssues[i])
	}
	return all
}

// texts converts values of any string type to strings, because the value of a [Fact] may be a
// []string.
func texts[T ~string](words []T) []string {
	converted := make([]string, 0, len(words))
	for _, word := range words {
		converted = append(converted, string(word))
	}
	return converted
}
