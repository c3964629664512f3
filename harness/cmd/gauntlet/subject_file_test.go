package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
)

// TestSetOperator checks which controllers and Kinds setOperator copies from a subject file to a
// scenario. A subject file describes the program under test in YAML.
func TestSetOperator(t *testing.T) {
	operator := &scenario.Operator{
		Kinds:       []scenario.ExternalKind{{APIVersion: "example.com/v1", Kind: "Widget", Plural: "widgets"}},
		Controllers: []scenario.ExternalController{{Name: "widget", Kind: "Widget"}},
	}
	s := parseScenario(t, `name: x
operator: {kinds: [{apiVersion: example.com/v1, kind: Widget}, {apiVersion: v1, kind: Secret}]}
workload: [create: {kind: Widget, apiVersion: example.com/v1, name: one, manifest: {}}]
`)
	if err := setOperator(s, operator); err != nil {
		t.Fatal(err)
	}
	want := &scenario.Operator{Kinds: append(operator.Kinds, scenario.ExternalKind{APIVersion: "v1", Kind: "Secret"}), Controllers: operator.Controllers}
	if diff := cmp.Diff(want, s.Operator, cmpopts.IgnoreUnexported(scenario.ExternalKind{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := s.Marshal(); err != nil {
		t.Error(err)
	}
	s = parseScenario(t, "name: x\nworkload: [create: {kind: ReplicaSet, name: web, replicas: 1}]\n")
	if err := setOperator(s, operator); !errors.Is(err, errNothingToReconcile) {
		t.Errorf("error %v, want %v", err, errNothingToReconcile)
	}
	builtIn, _ := library.Find("burst")
	const wantErr = "scenario burst: found no object that the controllers of the subject file reconcile; name the file of a scenario that creates a Widget"
	if err := setOperator(builtIn, operator); err == nil || !strings.HasPrefix(err.Error(), wantErr) {
		t.Errorf("a built-in scenario: error %v, want %s", err, wantErr)
	}
}

// TestReachableByOperator checks scenarios with what only an operator does. With a subject file, it is valid. The controllers
// of the file then decide, and not those of Kubernetes.
func TestReachableByOperator(t *testing.T) {
	const text = `name: x
workload:
  - create: {kind: Deployment, name: web, replicas: 1}
  - await: {kind: Deployment, name: web, until: condition=Reloaded}
faults:
  - api-error: {verb: create, resource: statefulsets.apps, code: 500}
  - api-error: {verb: create, resource: pods, namespace: gauntlets, code: 500}
  - api-error: {verb: create, resource: pods, name: "rel-*", code: 500}
`
	o := &scenario.Operator{Controllers: []scenario.ExternalController{{Name: "reloader", Kind: "Deployment", Watches: []string{"Deployment"}}}}
	for _, test := range []struct {
		subject string
		errors  int // the number of lines that advise the field operator: {}
	}{{"ours", 3}, {"exec:/bin/x", 3}, {"my.yaml", 0}} {
		s, err := scenario.Parse("x.yaml", []byte(text), validatorFor(test.subject))
		if got := strings.Count(fmt.Sprint(err), "the field operator: {} for other controllers"); got != test.errors {
			t.Errorf("subject %s: %d errors, want %d: %v", test.subject, got, test.errors, err)
		}
		if err != nil {
			continue
		}
		if err := setOperator(s, o); err != nil {
			t.Errorf("subject %s: %v", test.subject, err)
		}
	}
}

// parseScenario parses a scenario from YAML. The test fails if the YAML is not valid.
func parseScenario(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
