package reference

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/schema"
)

// root is the root directory of the source tree.
const root = "../../.."

// TestEntries checks the kind and the page of each entry, and that Find finds the entry by its
// name.
func TestEntries(t *testing.T) {
	for _, s := range Sections {
		if len(s.Entries()) == 0 {
			t.Errorf("section %s has no entries", s.Name)
		}
		for _, e := range s.Entries() {
			path := s.Singular + "/" + e.Name
			if e.Kind != s.Singular {
				t.Errorf("%s: kind %q, want %q", path, e.Kind, s.Singular)
			}
			if e.Description != "" && !strings.HasSuffix(e.Description, ".") {
				t.Errorf("%s: description %q, want a period at its end", path, e.Description)
			}
			found, err := Find(path)
			if err != nil || !slices.ContainsFunc(found, func(f Entry) bool { return f.Name == e.Name }) {
				t.Errorf("Find(%q): error %v, want the entry", path, err)
			}
			checkPage(t, path, e.Page)
		}
	}
}

// headings matches the headings of a Markdown page.
var headings = regexp.MustCompile(`(?m)^#+ (.+)$`)

// checkPage checks that a page exists and has the heading that its anchor names.
func checkPage(t *testing.T, path, page string) {
	t.Helper()
	name, anchor, anchored := strings.Cut(page, "#")
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Errorf("%s: page: %v", path, err)
		return
	}
	if anchored && !slices.ContainsFunc(headings.FindAllStringSubmatch(string(content), -1), func(match []string) bool {
		return strings.ReplaceAll(strings.ToLower(match[1]), " ", "-") == anchor
	}) {
		t.Errorf("%s: page %s has no heading %s", path, name, anchor)
	}
}

func TestFind(t *testing.T) {
	for _, test := range []struct{ path, want string }{
		{"check/max-surge", "check max-surge"},
		{"checks/max-surge", "check max-surge"},
		{"max-surge", "check max-surge"},
		{"fault/watch-delay", "fault watch-delay"},
		{"fault/watch-delay.delay", "field fault/watch-delay.delay"},
		{"operation/create.ports.port", "field operation/create.ports.port"},
		{"scenario", "field scenario"},
		{"scenario.faults.watch-delay", "field scenario.faults.watch-delay"},
		{"scenario.faults.watch-delay.delay", "field scenario.faults.watch-delay.delay"},
		{"scenario.workload.create.replicas", "field scenario.workload.create.replicas"},
		{"scenario.faults.when.after.request.nth", "field scenario.faults.when.after.request.nth"},
		{"checks", "list checks"},
		{"check", "list checks"},
		{"kind/rs", "kind ReplicaSet"},
		{"kind/deployments.apps", "kind Deployment"},
		{"deployment", "kind Deployment"},
		{"kind/Event", "kind Event, kind Event"},
		{"rollout", "scenario rollout, operation rollout"},
	} {
		found, err := Find(test.path)
		var names []string
		for _, e := range found {
			names = append(names, e.Kind+" "+e.Name)
		}
		if got := strings.Join(names, ", "); err != nil || got != test.want {
			t.Errorf("Find(%q) = %s, error %v; want %s", test.path, got, err, test.want)
		}
	}
}

func TestUnknown(t *testing.T) {
	for _, test := range []struct{ path, want string }{
		{"check/max-surg", `check "max-surg" is unknown; did you mean max-surge? ("gauntlet list checks" lists all)`},
		{"chek/max-surge", `"chek" is unknown: expected one of scenarios, checks`},
		{"chek/max-surge", `; did you mean check?`},
		{"max-surg", `; did you mean max-surge?`},
		{"scenario.fault", `scenario has no field "fault": expected one of name, description`},
		{"scenario.fault", `; did you mean faults?`},
		{"scenario.settle.quiet.x", `scenario.settle.quiet has no field "x": this value has no fields`},
		{"fault/watch-delay.dela", `fault/watch-delay has no field "dela": expected one of resource, type, name, owner, nth, delay; did you mean delay?`},
		{"", `"" is unknown: expected KIND/NAME`},
		{"check/", `check "" is unknown`},
	} {
		if _, err := Find(test.path); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Find(%q): error %v, want %q", test.path, err, test.want)
		}
	}
}

// TestStatements checks that the field Contract of each check refers to existing statements, or to
// another document.
func TestStatements(t *testing.T) {
	for _, c := range check.All {
		if got := statements(c.Contract); got == nil && c.Contract != "The binary" && !strings.HasPrefix(c.Contract, "Kubernetes ") {
			t.Errorf("check %s: no statements for the contract %q", c.ID, c.Contract)
		}
	}
	for _, test := range []struct{ contract, want string }{
		{"ReplicaSet 11, Deployment 3, 19", "ReplicaSet 11, Deployment 3, Deployment 19"},
		{"Endpoints 3 to 5", "Endpoints 3, Endpoints 4, Endpoints 5"},
		{"Deployment 20, Endpoints 1 to 2", "Deployment 20, Endpoints 1, Endpoints 2"},
		{"The binary", ""},
		{"Kubernetes documentation, Finalizers", ""},
	} {
		var ids []string
		for _, s := range statements(test.contract) {
			ids = append(ids, s.Name)
		}
		if got := strings.Join(ids, ", "); got != test.want {
			t.Errorf("statements(%q) = %s, want %s", test.contract, got, test.want)
		}
	}
}

// TestFields checks that each field of the scenario format has a type and a description. Fields
// of faults, operations and triggers are part of that format.
func TestFields(t *testing.T) {
	seen := 0
	var visit func(path string, fields []schema.Field, depth int)
	visit = func(path string, fields []schema.Field, depth int) {
		for _, f := range fields {
			seen++
			if f.Type == "" || f.Description == "" {
				t.Errorf("%s.%s: type %q, description %q; want both", path, f.Name, f.Type, f.Description)
			}
			if f.Fields != nil && depth > 0 { // a trigger contains a trigger
				visit(path+"."+f.Name, f.Fields(), depth-1)
			}
		}
	}
	visit("scenario", schema.Root().Fields(), 5)
	if seen < 300 {
		t.Errorf("visited %d fields, want all of the format", seen)
	}
}

// TestText checks that the text about an entry has all its properties, and fits the width.
func TestText(t *testing.T) {
	const width = 60
	for _, s := range Sections {
		for _, e := range s.Entries() {
			text := e.Text(width)
			for line := range strings.Lines(strings.ReplaceAll(text, e.Example, "")) {
				line = strings.TrimSuffix(line, "\n")
				if utf8.RuneCountInString(line) > width && strings.Contains(strings.TrimSpace(line), " ") && !strings.Contains(e.Example, strings.TrimSpace(line)) {
					t.Errorf("%s/%s: %d columns, want at most %d: %q", e.Kind, e.Name, utf8.RuneCountInString(line), width, line)
				}
			}
			joined := strings.Join(strings.Fields(text), " ")
			for _, f := range e.Facts {
				if !strings.Contains(joined, Label(f.Name)+":") && !isEmpty(f.Value) {
					t.Errorf("%s/%s: the text lacks %s", e.Kind, e.Name, f.Name)
				}
			}
			for _, f := range e.Fields {
				if !strings.Contains(joined, " "+f.Name+" <"+f.Type+">") {
					t.Errorf("%s/%s: the text lacks the field %s", e.Kind, e.Name, f.Name)
				}
			}
		}
	}
}

// TestJSON checks which properties the JSON of an entry has.
func TestJSON(t *testing.T) {
	e := Entry{
		Kind: "check", Name: "one", Aliases: []string{"uno"}, Description: "It is < 2.",
		Facts:   []Fact{{"general", false}, {"traits", []string{"a", "b"}}, {"statements", []Item{{"S 1", "Text."}}}, {"issue", ""}, {"faults", []string(nil)}},
		Fields:  []schema.Field{{Name: "delay", Type: "duration", Required: true, Values: "1ms to 10m", Fields: func() []schema.Field { return nil }}},
		Example: "x: 1",
	}
	encoded, err := json.Marshal(e)
	const want = `{"kind":"check","name":"one","description":"It is \u003c 2.","general":false,"traits":["a","b"],"statements":[{"name":"S 1","text":"Text."}],` +
		`"fields":[{"name":"delay","type":"duration","required":true,"values":"1ms to 10m"}],"example":"x: 1"}`
	if err != nil || string(encoded) != want {
		t.Errorf("got %s, error %v; want %s", encoded, err, want)
	}
	if e.Value("general") != false || e.Value("nothing") != nil {
		t.Errorf("Value: got %v and %v, want false and nil", e.Value("general"), e.Value("nothing"))
	}
}

func TestLabel(t *testing.T) {
	for name, want := range map[string]string{"apiVersion": "API VERSION", "check": "CHECK", "known-issue": "KNOWN ISSUE"} {
		if got := Label(name); got != want {
			t.Errorf("Label(%q) = %q, want %q", name, got, want)
		}
	}
}
