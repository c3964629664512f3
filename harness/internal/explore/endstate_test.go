package explore

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestEndStateOf checks which entries a set of objects has.
func TestEndStateOf(t *testing.T) {
	last := lastCommits{}
	add := func(resource, name, generateName, body string) {
		last.observe(&history.Commit{Type: history.Added, Object: history.Object{
			Ref: history.Ref{Resource: resource, Namespace: "ns", Name: name}, GenerateName: generateName, Body: []byte(body),
		}})
	}
	add("services", "web", "", `{"spec":{"clusterIP":"10.0.0.7","ports":[{"name":"b"},{"name":"a"}]},"status":{"x":1}}`)
	add("pods", "web-x", "web-", `{"spec":{"nodeName":"node-1"}}`)
	add("pods", "web-y", "web-", `{}`)
	add("configmaps", "other", "", `{"data":{"a":"b"}}`)
	add("events", "some", "", `{}`)
	want := EndState{
		"services ns/web": "1", "services ns/web spec.clusterIP": anyValue, "services ns/web spec.ports[0].name": "a", "services ns/web spec.ports[1].name": "b",
		"pods ns/web-*": "2", "configmaps ns/other": "1",
	}
	if diff := cmp.Diff(want, last.state([]string{"services", "pods"})); diff != "" {
		t.Errorf("end state (-want +got):\n%s", diff)
	}
}

// TestDifferences checks the comparison of an end state with that of the runs without faults.
func TestDifferences(t *testing.T) {
	common := agreed([]EndState{{"a": "1", "b": "x", "gone": "1"}, {"a": "1", "b": "y", "new": "1"}})
	if diff := cmp.Diff(EndState{"a": "1", "b": anyValue, "gone": anyValue, "new": anyValue}, common); diff != "" {
		t.Errorf("agreed (-want +got):\n%s", diff)
	}
	got := common.differences(EndState{"a": "2", "b": "z", "more": "1"})
	if diff := cmp.Diff([]string{`a: found "2"; expected "1"`, `more: found "1"; expected none`}, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	if got := common.differences(EndState{}); len(got) != 1 || got[0] != `a: found none; expected "1"` {
		t.Errorf("differences %v; want that a is missing", got)
	}
}
