package table

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/suites/conformance/rows"
)

var run = Run{
	Kubernetes: "v1.2.3", Provider: "embedded", Subjects: []string{"ours", "upstream"},
	Results: []Result{
		{Row: "ReplicaSet/statement 6", Spec: "it waits", Subject: "ours", State: Failed, Reason: "it did not\nwait"},
		{Row: "ReplicaSet/statement 6", Spec: "it waits", Subject: "upstream", State: Passed},
		{Row: "ReplicationController/statement 6", Spec: "so does it", Subject: "ours", State: Passed},
		{Row: "ReplicaSet/statement 7", Spec: "it needs more", Subject: "ours", State: Skipped, Reason: "no kubelet"},
	},
}

// TestTerminal checks that the result of a statement is the worst result of its specs. Specs of
// several controllers may test the same statement.
func TestTerminal(t *testing.T) {
	var out bytes.Buffer
	if err := Terminal(&out, run); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"│ ReplicaSet 6  │     2 │ FAIL 1 of 2 ",
		"│ ReplicaSet 7  │     1 │ skipped ",
		"│ Endpoints 14  │     0 │ - ",
		"FAIL ours: it waits (ReplicaSet/statement 6): it did not\n",
		"SKIPPED ours: it needs more (ReplicaSet/statement 7): no kubelet\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if strings.Index(out.String(), "ReplicaSet 9") > strings.Index(out.String(), "ReplicaSet 10") {
		t.Errorf("statements are not sorted by number:\n%s", out.String())
	}
}

func TestMarkdown(t *testing.T) {
	var out bytes.Buffer
	if err := Markdown(&out, run); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n\n| Kubernetes v1.2.3, embedded | statements | specs | ours | upstream |\n|---|---:|---:|---|---|\n| ReplicaSet |",
		" | 2 | 1 fail, 1 skipped | 1 pass |\n| ReplicationController |",
		" | 0 | - | - |\n\n## ReplicaSet\n",
		"| row | statements | spec | ours | upstream |\n|---|---|---|---|---|\n",
		"| statement 6 | 6 | it waits | fail | pass |\n",
		"| statement 7 | 7 | it needs more | skipped: no kubelet | - |\n",
		"| statement 2 | 2 | *pending: ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func TestPrefix(t *testing.T) {
	row := rows.Row{Name: "TestAdoption", Level: rows.Integration, Statements: []int{4, 5}}
	if got, want := Prefix(row), "| `TestAdoption` | 4, 5 | "; got != want {
		t.Errorf("Prefix = %q, want %q", got, want)
	}
}

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	if err := JSON(&out, run); err != nil {
		t.Fatal(err)
	}
	var back Run
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, run) {
		t.Errorf("decoded %+v", back)
	}
}
