package scenario

import (
	"strings"
	"testing"
)

// TestAdvice checks the end of the error about an unknown field, or about a field in the wrong place.
func TestAdvice(t *testing.T) {
	const head = "name: small\nworkload:\n  - create: {kind: Deployment, name: web, replicas: 3}\n"
	for text, want := range map[string]string{
		"    within: 30s\n":     "publish, patch or await; write within below await",
		"  - sleep: 5s\n":       "publish, patch or await; did you mean after?",
		"  - crate: {}\n":       "publish, patch or await; did you mean create?",
		"  - after: 5s\n":       "found only the field after; expected it beside an operation or an await, which then begins after this time",
		"    await: {for: x}\n": "expected kind, name, until or within; did you mean until?",
		"  - create: {kind: Deployment, name: b, replicas: 1, spec: {}}\n":                 "externalName or leader; write its fields without spec, or a manifest for another kind",
		"  - label: {kind: Deployment, name: web, app: b}\n":                               "expected kind, name, labels or remove; write it below labels",
		"  - label: {kind: Deployment, name: web, label: {app: b}}\n":                      "expected kind, name, labels or remove; did you mean labels?",
		"  - label: {kind: Deployment, name: web, remove: app}\n":                          `found "app"; expected a list such as [app]`,
		"  - scale: {kind: Deployment, name: web, replicas: '3'}\n":                        `found "3"; expected a whole number without quotes`,
		"  - configure: {kind: Deployment, name: web, minReadySeconds: 3s}\n":              `found "3s"; expected a whole number without a unit`,
		"  - create: {kind: Pod, name: a, count: 2}\n  - delete: {kind: Pod, name: a-0}\n": "; the name a stands for all pods of its create step",
		"    await: {until: rolledOut}\n":                                                  "did you mean complete?",
		"    await: {until: 'condition: Available'}\n":                                     "did you mean condition=Available?",
		"    await: {until: 'jsonpath={.status.replicas}==3'}\n":                           "expected one equal sign before the value",
		"    await: {until: jsonpath=.status.phase==a}\n":                                  "expected one equal sign before the value",
		"faults:\n  - pod-churn: {action: delete}\n    duration: 5s\n":                     "from, for and mustFire; did you mean for?",
		"faults:\n  - fault: pod-churn\n    params: {action: delete}\n":                    `found the field fault with the value "pod-churn"; expected the name as the key, and the parameters below it, such as pod-churn: {…}`,
		"  - create: {kind: StatefulSet, name: db, manifest: {}, replicas: 3}\n":           "apiVersion or manifest; write it below manifest, such as manifest: {spec: {replicas: 3}}",
		"  - await: {kind: ReplicaSet, name: web, until: ready}\n":                         "; the names of the ReplicaSets of Deployment web are generated, so name Deployment web instead",
		"  - await: {kind: Pod, name: web-x, until: ready}\n":                              "; the names of the Pods of Deployment web are generated, so name Deployment web instead",
		"  - create: {kind: Deployment, name: b, replicas: 1, paused: 'true'}\n":           `found "true"; expected true or false without quotes`,
		"  - create: {kind: Pod name: b}\n":                                                `found "Pod name: b"; expected a comma between fields in braces, or quotes around a text with ": "`,
		"  - create: {kind=Pod, name: b}\n":                                                `found "kind=Pod" without a colon and a space; expected a field such as name: web`,
		"faults:\n  - pod-churn\n":                                                         "expected parameters after the name of a fault, such as pod-churn: {}",
		"faults:\n  pod-churn: {action: delete}\n":                                         "found a mapping; expected a list, whose items begin with -",
		"faults:\n  - pod-churn: {}\n    when: {verb: create}\n":                           "fault, step or after; write it below request",
		"faults:\n  - pod-churn: {}\n    when: {event: {resource: deploy}}\n":              `found "deploy"; expected deployments.apps`,
		"faults:\n  - pod-churn: {}\n    when: {event: {resource: Pod}}\n":                 `found "Pod"; expected pods`,
	} {
		_, err := Parse("x.yaml", []byte(head+text))
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant …%s", text, err, want)
		}
	}
}

// TestMisread checks errors about mistakes for which the YAML library reports other ones.
func TestMisread(t *testing.T) {
	for text, want := range map[string]string{
		"name: x\nworkload:\n\t- create: {}\n":                                 "x.yaml:3:1: the file is not valid YAML: found a tab as indentation; expected spaces",
		"name: x\nworkload\n  - create: {kind: Pod, name: web}\n":              "x.yaml:2:1: the file is not valid YAML: found workload without a colon; expected workload:",
		"name: x\nworkload:\n  - await: {until: jsonpath={.status.phase}=a}\n": `x.yaml:3:20: the file is not valid YAML: found jsonpath={.status.phase}=a, which contains {; expected quotes around the whole value, such as "jsonpath={.status.phase}=a"`,
	} {
		if _, err := Parse("x.yaml", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}
