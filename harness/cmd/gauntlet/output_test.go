package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/internal/reference"
)

// TestList checks that the tables of "gauntlet list" name every entry. A section or names as
// arguments must limit the entries.
func TestList(t *testing.T) {
	all, err := command(t, "list")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range reference.Sections {
		for _, name := range s.Names() {
			if !strings.Contains(all, "\n"+name+" ") {
				t.Errorf("list: no line of %s %s", s.Singular, name)
			}
		}
	}
	section, err := command(t, "list", "checks")
	if err != nil || strings.Contains(section, "\nwatch-delay ") || !strings.HasPrefix(section, "NAME ") {
		t.Errorf("list checks: error %v; want a table of checks only:\n%.300s", err, section)
	}
	named, err := command(t, "list", "checks", "burst-limit", "status")
	if lines := strings.Split(named, "\n"); err != nil || len(lines) != 4 || !strings.HasPrefix(lines[1], "burst-limit ") || !strings.HasPrefix(lines[2], "status ") {
		t.Errorf("list checks burst-limit status: error %v; want a header and two lines:\n%s", err, named)
	}
}

// TestListValues checks the output of "gauntlet list" in the formats JSON and YAML.
func TestListValues(t *testing.T) {
	encoded, err := command(t, "list", "checks", "max-surge", "--output=json")
	var listed map[string][]map[string]any
	if err := errors.Join(err, json.Unmarshal([]byte(encoded), &listed)); err != nil {
		t.Fatal(err)
	}
	if got := listed["checks"]; len(listed) != 1 || len(got) != 1 || got[0]["name"] != "max-surge" || got[0]["property"] != "safety" {
		t.Errorf("found %v; want one check with its properties", listed)
	}
	if text, err := command(t, "list", "checks", "max-surge", "-o", "yaml"); err != nil || !strings.HasPrefix(text, "checks:\n- ") || !strings.Contains(text, "\n  name: max-surge\n") {
		t.Errorf("error %v; want the same as YAML:\n%s", err, text)
	}
}

// TestExplain checks that "gauntlet explain" prints a check's contract statements, and all entries
// with the same name.
func TestExplain(t *testing.T) {
	for _, test := range []struct{ path, want string }{
		{"check/max-surge", "maxSurge rounds up and maxUnavailable rounds down."},
		{"check/max-surge", "\nWRITTEN IN:      controllers/CONTRACT.md\n"},
		{"scenario.faults.watch-delay", "The fault proxy delays the events"},
		{"rollout", "\n---\n\nOPERATION:  rollout\n"},
	} {
		if out, err := command(t, "explain", test.path); err != nil || !strings.Contains(out, test.want) {
			t.Errorf("explain %s: error %v; want %q in\n%s", test.path, err, test.want, out)
		}
	}
	encoded, err := command(t, "explain", "kind/Event", "-o", "json")
	var found []map[string]any
	if err := errors.Join(err, json.Unmarshal([]byte(encoded), &found)); err != nil || len(found) != 2 || found[1]["apiVersion"] != "events.k8s.io/v1" {
		t.Errorf("found %v, error %v; want both kinds with the name Event", found, err)
	}
}

func TestVersion(t *testing.T) {
	text, err := command(t, "version")
	if err != nil || !strings.HasPrefix(text, "gauntlet "+revision+"\netcd ") {
		t.Errorf("found %q, error %v; want gauntlet first", text, err)
	}
	encoded, err := command(t, "version", "-o", "json")
	var versions map[string]string
	if err := errors.Join(err, json.Unmarshal([]byte(encoded), &versions)); err != nil || versions["gauntlet"] != revision || versions["kubernetes"] == "" {
		t.Errorf("found %v, error %v; want the versions of gauntlet and kubernetes", versions, err)
	}
}

// TestFormatTable checks that formatTable wraps the last column to fit the width.
func TestFormatTable(t *testing.T) {
	rows := [][]string{{"NAME", "PROPERTY", "DESCRIPTION"}, {"max-surge", "safety", "It stays within replicas and maxSurge, always."}, {"é", "", "Short."}}
	for _, test := range []struct {
		width int
		want  string
	}{
		{0, `NAME       PROPERTY  DESCRIPTION
max-surge  safety    It stays within replicas and maxSurge, always.
é                    Short.
`},
		{50, `NAME       PROPERTY  DESCRIPTION
max-surge  safety    It stays within replicas and
                     maxSurge, always.
é                    Short.
`},
		{10, `NAME       PROPERTY  DESCRIPTION
max-surge  safety    It stays within replicas
                     and maxSurge, always.
é                    Short.
`},
	} {
		if got := formatTable(rows, test.width); got != test.want {
			t.Errorf("width %d: got\n%swant\n%s", test.width, got, test.want)
		}
	}
	if got := formatTable(nil, 80); got != "" {
		t.Errorf("no rows: got %q, want nothing", got)
	}
}

// TestCompletion checks which values shell completion offers for arguments and flags.
func TestCompletion(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"list", ""}, "checks"},
		{[]string{"list", "checks", "max"}, "max-surge"},
		{[]string{"explain", ""}, "check/"},
		{[]string{"explain", "check/max"}, "check/max-surge"},
		{[]string{"explain", "scenario.set"}, "scenario.settle"},
		{[]string{"explain", "fault/watch-delay.d"}, "fault/watch-delay.delay"},
		{[]string{"run", "bur"}, "burst"},
		{[]string{"validate", "bur"}, "burst"},
		{[]string{"sweep", "crash", "bur"}, "burst"},
		{[]string{"run", "--subject", ""}, "upstream"},
		{[]string{"nightly", "--subjects", ""}, "upstream"},
		{[]string{"run", "--provider", ""}, "existing"},
		{[]string{"up", "--provider", ""}, "kind"},
		{[]string{"clean", "--provider", ""}, "existing"},
		{[]string{"generate", "--profile", ""}, "storm"},
		{[]string{"shrink", "--check", ""}, "max-surge"},
		{[]string{"sweep", "crash", "--at", ""}, "lost"},
		{[]string{"run", "--output", ""}, "json"},
		{[]string{"run", "--tier", ""}, "quick"},
		{[]string{"mutants", ""}, "R1"},
	} {
		out, err := command(t, append([]string{"__complete"}, test.args...)...)
		if err != nil || !strings.Contains("\n"+out, "\n"+test.want+"\n") {
			t.Errorf("%q: error %v; want %s among\n%s", test.args, err, test.want, out)
		}
	}
}
