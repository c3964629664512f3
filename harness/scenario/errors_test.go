package scenario

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestParseErrors checks the complete error message of Parse for one invalid file in each case.
func TestParseErrors(t *testing.T) {
	const create = "  - create: {kind: ReplicaSet, name: web, replicas: 3}\n"
	step := func(text string) string { return minimal + text + "\n" }
	instead := func(text string) string { return strings.Replace(minimal, create, text+"\n", 1) }

	for _, test := range []struct {
		name, input, want string
	}{
		// Syntax errors
		{"empty", "", "x.yaml: found an empty file; expected a mapping"},
		{"empty document first", "---\n---\n" + minimal, "x.yaml:3:1: found a YAML document after an empty one; expected one document per file"},
		{"empty documents", "---\n---\n# x\n...\n", "x.yaml: found an empty file; expected a mapping"},
		{"comment only", "# nothing\n", "x.yaml: found an empty file; expected a mapping"},
		{"unclosed", "name: [a,\n", "x.yaml:1:7: the file is not valid YAML: found [ without a closing ]; expected ], or quotes around a text with ["},
		{"indented by one", "name: a\nworkload:\n  - create: {kind: Pod, name: a}\n   await: {until: ready}\n", "x.yaml:4:4: the file is not valid YAML: value is not allowed in this context; expected the indentation of the fields or items beside it, a space after each colon, and quotes around a text with \": \" or with quotes inside"},
		{"template", "name: {{ .Name }}\n", "x.yaml:1:7: found {{ .Name }}; expected plain YAML, because scenarios support no templates and no variables; render the file first, such as with helm template or envsubst"},
		{"template in a line of its own", "name: a\n{{- if .Values.chaos }}\ncluster: {nodes: 4}\n{{- end }}\n", "x.yaml:2:1: found {{- if .Values.chaos }}; expected plain YAML, because scenarios support no templates and no variables; render the file first, such as with helm template or envsubst"},
		{"template in quotes", "name: x\nseed: \"{{ .Seed }}\"\nworkload:\n  - create: {kind: ReplicaSet, name: \"{{ .Name }}\", replicas: 3}\n", "x.yaml:2:7: seed: found {{ .Seed }}; expected plain YAML, because scenarios support no templates and no variables; render the file first, such as with helm template or envsubst"},
		{"variable", instead("  - create: {kind: ReplicaSet, name: web, replicas: $REPLICAS}"), "x.yaml:4:53: workload[0].create.replicas: found $REPLICAS; expected plain YAML, because scenarios support no templates and no variables; render the file first, such as with helm template or envsubst"},
		{"twice", minimal + "name: b\n", `x.yaml:5:1: the file is not valid YAML: mapping key "name" already defined at [1:1]; give each key only once`},
		{"two documents", minimal + "---\n" + minimal, "x.yaml:6:1: found a second YAML document; expected one document per file"},
		{"directive", "%TAG ! tag:example.com,2000:\n---\n" + minimal, "x.yaml:1:1: YAML directives other than %YAML are not supported; remove the line"},
		{"deep brackets", "name: x\n" + strings.Repeat("a: [\n", 40_000), "x.yaml:62:4: found values nested too deeply; expected at most 60 levels of lists and mappings"},
		{"deep braces", strings.Repeat("{a: ", 50_000), "x.yaml:1:241: found values nested too deeply; expected at most 60 levels of lists and mappings"},
		{"deep items", strings.Repeat("- ", 50_000), "x.yaml:1:123: found values nested too deeply; expected at most 60 levels of lists and mappings"},
		{"a large mapping", minimal + strings.Repeat("name: x\n", 20_000), "x.yaml:2002:1: found a mapping of more than 2000 fields; expected at most 2000 fields"},
		{"UTF-16", "\xff\xfen\x00a\x00", "x.yaml:1:1: found binary data; expected text in UTF-8"},
		{"Latin-1", minimal + "description: caf\xe9\n", "x.yaml:5:1: found binary data; expected text in UTF-8"},
		{"NUL", minimal + "description: \"a\x00\"\n", "x.yaml:5:1: found binary data; expected text in UTF-8"},
		{"no space after a colon", instead("  - create: {kind:Pod, name: web}"), `x.yaml:4:14: the file is not valid YAML: found no space after "kind:"; expected a space after each colon`},
		{"no space before quotes", instead("  - create: {kind: Pod, name:\"web\"}"), `x.yaml:4:25: the file is not valid YAML: found no space after "name:"; expected a space after each colon`},
		{"no space before a list", minimal + "exercises: [{a:[1]}]\n", `x.yaml:5:13: exercises[0]: found a mapping; expected text`},
		{"no space after a key in quotes", minimal + "exercises: [{\"a\":1}]\n", `x.yaml:5:13: exercises[0]: found a mapping; expected text`},
		{"no value", minimal + "cluster: {nodes:}\n", `x.yaml:5:17: cluster.nodes: found nothing; expected a whole number`},
		{"no value in a block", minimal + "cluster:\n  nodes:\n", `x.yaml:6:10: cluster.nodes: found nothing; expected a whole number`},
		{"anchor", "name: &n a\n", "x.yaml:1:7: YAML anchors and aliases are not supported; repeat the value"},
		{"tag", "name: !!str a\n", "x.yaml:1:7: YAML tags are not supported; remove the tag"},
		{"merge", "<<: {name: a}\n", "x.yaml:1:1: YAML merge keys (<<) are not supported; repeat the fields"},
		{"subject file", "subject:\n  module: example.com/a@v1.0.0\n  manifests: [crd]\n", "x.yaml: found a subject file; expected a scenario; pass the subject file with the flag --subject"},
		{"non-breaking space", "name: x\nworkload:\n\u00a0\u00a0- scale: {}\n\u00a0bad: x: y\n", "x.yaml:3:1: found a non-breaking space (U+00A0) as indentation, as in text from a web page; expected normal spaces"},
		{"baseline", "effects: {}\nend: {}\nformat: 3\nruns: 3\nscenario: x\n", "x.yaml: found a baseline; expected a scenario; pass the baseline with the flag --baseline"},
		{"subject file with a program", "subject: {exec: ./a}\noperator: {}\n", "x.yaml: found a subject file; expected a scenario; pass the subject file with the flag --subject"},
		{"not a mapping", "- a\n", "x.yaml:1:1: found a list; expected a mapping with name, description, seed, cluster, subject, operator, workload, externalWorkload, faults, settle and exercises"},

		// Unknown fields and values of the wrong type
		{"unknown field", minimal + "fault: []\n", `x.yaml:5:1: unknown field "fault"; expected name, description, seed, cluster, subject, operator, workload, externalWorkload, faults, settle or exercises; did you mean faults?`},
		{"empty field", minimal + "'': 1\n", `x.yaml:5:1: unknown field ""; expected name, description, seed, cluster, subject, operator, workload, externalWorkload, faults, settle or exercises`},
		{"unknown nested field", minimal + "cluster:\n  nods: 4\n", `x.yaml:6:3: cluster: unknown field "nods"; expected nodes, podStartDelay or podStopDelay; did you mean nodes?`},
		{"unknown operation", step("  - creat: {kind: Pod}"), `x.yaml:5:5: workload[1]: unknown field "creat"; expected after, create, scale, delete, rollout, pause, resume, rollback, label, annotate, select, configure, publish, patch or await; did you mean create?`},
		{"bad duration", minimal + "settle: {within: soon}\n", `x.yaml:5:18: settle.within: found "soon"; expected a duration such as 500ms, 8s or 1m30s`},
		{"duration without unit", minimal + "settle: {within: 60}\n", "x.yaml:5:18: settle.within: found 60; expected a duration such as 500ms, 8s or 1m30s"},
		{"text for a number", minimal + "cluster: {nodes: four}\n", `x.yaml:5:18: cluster.nodes: found "four"; expected a whole number`},
		{"fraction for a number", minimal + "cluster: {nodes: 1.5}\n", "x.yaml:5:18: cluster.nodes: found 1.5; expected a whole number"},
		{"seed with a leading zero", minimal + "seed: 010\n", "x.yaml:5:7: seed: found 010, which begins with 0; expected a whole number, 0 or more"},
		{"number with a leading zero", minimal + "cluster: {nodes: 010}\n", "x.yaml:5:18: cluster.nodes: found 010, which begins with 0; expected a whole number"},
		{"too long a duration", minimal + "settle: {within: 9999999h}\n", `x.yaml:5:18: settle.within: found "9999999h"; expected at most 2562047h`},
		{"not a number in a manifest", step("  - create: {kind: StatefulSet, name: db, manifest: {spec: {replicas: .nan}}}"), "x.yaml:5:71: workload[1].create.manifest.spec.replicas: found .nan; expected a JSON value"},
		{"whole number with a point", minimal + "cluster: {nodes: 4.0}\n", "x.yaml:5:18: cluster.nodes: found 4.0; expected a whole number"},
		{"too large a seed", minimal + "seed: 99999999999999999999\n", "x.yaml:5:7: seed: found 99999999999999999999; expected a number from 0 to 18446744073709551615"},
		{"no qps, and a burst", minimal + "subject: {qps: null, burst: 7}\n", "x.yaml:5:16: subject.qps: found nothing; expected a whole number"},
		{"no steps, and a trigger of a step", "name: a\nworkload: text\nfaults:\n  - pod-churn: {}\n    when: {step: {index: 1}}\n", `x.yaml:2:11: workload: found "text"; expected a list, whose items begin with -`},
		{"unknown strategy, and maxSurge", instead("  - create: {kind: Deployment, name: web, replicas: 1, strategy: Fast, maxSurge: 1}"), `x.yaml:4:66: workload[0].create.strategy: found "Fast"; expected RollingUpdate or Recreate`},
		{"too large a number", minimal + "cluster: {nodes: 99999999999999999999}\n", "x.yaml:5:18: cluster.nodes: found 99999999999999999999; expected a number from 1 to 50"},
		{"too large a number without bounds", minimal + "faults:\n  - pod-churn: {}\n    times: 99999999999999999999\n", "x.yaml:7:12: faults[0].times: found 99999999999999999999; expected a whole number of at most 18 digits"},
		{"negative seed", minimal + "seed: -1\n", "x.yaml:5:7: seed: found -1; expected a whole number, 0 or more"},
		{"number for text", strings.Replace(minimal, "small", "7", 1), "x.yaml:1:7: name: found 7; expected text (quote a value such as 7 or true)"},
		{"nothing for a mapping", minimal + "cluster:\n", "x.yaml:5:10: cluster: found nothing; expected a mapping with nodes, podStartDelay and podStopDelay"},
		{"mapping for a list", minimal + "exercises: {a: 1}\n", "x.yaml:5:12: exercises: found a mapping; expected a list"},

		// Invalid names and numbers out of bounds
		{"no name", strings.Replace(minimal, "name: small\n", "", 1), "x.yaml:1:1: name: found nothing; expected a name"},
		{"bad name", strings.Replace(minimal, "small", "Small_one", 1), `x.yaml:1:7: name: found "Small_one"; expected a DNS label: at most 63 of a-z, 0-9 and -, with no - at either end`},
		{"no nodes", minimal + "cluster: {nodes: 0}\n", "x.yaml:5:18: cluster.nodes: found 0; expected a number from 1 to 50"},
		{"pods that never go", minimal + "cluster: {podStopDelay: 2m}\n", "x.yaml:5:25: cluster.podStopDelay: found 2m0s; expected a duration from 0s to 1m0s"},
		{"slow pods", minimal + "cluster: {podStartDelay: 2m}\n", "x.yaml:5:26: cluster.podStartDelay: found 2m0s; expected a duration from 0s to 1m0s"},
		{"burst below qps", minimal + "subject: {qps: 500, burst: 100}\n", "x.yaml:5:28: subject.burst: found 100; expected at least subject.qps, which is 500"},
		{"endless settling", minimal + "settle: {within: 1h}\n", "x.yaml:5:18: settle.within: found 1h0m0s; expected a duration from 1s to 10m0s"},
		{"check twice", minimal + "exercises: [no-writes-when-settled, no-writes-when-settled]\n", `x.yaml:5:37: exercises[1]: found check "no-writes-when-settled" twice; expected each check once`},

		// Invalid steps of the workload
		{"no steps", instead("  []"), "x.yaml:4:3: workload: found no step; expected at least one"},
		{"empty step", step("  - {}"), "x.yaml:5:5: workload[1]: found no operation; expected create, scale, delete, rollout, pause, resume, rollback, label, annotate, select, configure, publish, patch or await"},
		{"only after", step("  - after: 1s"), "x.yaml:5:5: workload[1]: found only the field after; expected it beside an operation or an await, which then begins after this time"},
		{"two operations", step("  - {scale: {kind: ReplicaSet, name: web, replicas: 1}, delete: {kind: ReplicaSet, name: web}}"),
			"x.yaml:5:57: workload[1]: found the operations delete and scale in one step; expected one operation per step"},
		{"negative after", step("  - scale: {kind: ReplicaSet, name: web, replicas: 1}\n    after: -1s"), "x.yaml:6:12: workload[1].after: found -1s; expected a duration from 0s to 24h0m0s"},
		{"unknown kind", instead("  - create: {kind: Replicaset, name: web}"), `x.yaml:4:13: workload[0].create.apiVersion: found nothing for kind "Replicaset"; expected an apiVersion such as example.com/v1, or one of the kinds ReplicaSet, ReplicationController, Deployment, Pod, Service and Endpoints; did you mean ReplicaSet?`},
		{"misspelled kind of a manifest", instead("  - create: {kind: StatefullSet, name: web}"), `x.yaml:4:13: workload[0].create.apiVersion: found nothing for kind "StatefullSet"; expected an apiVersion such as example.com/v1, or one of the kinds ReplicaSet, ReplicationController, Deployment, Pod, Service and Endpoints; did you mean StatefulSet?`},
		{"misspelled kind that few scenarios use", instead("  - create: {kind: PodDisruptionBudgt, name: web}"), `x.yaml:4:13: workload[0].create.apiVersion: found nothing for kind "PodDisruptionBudgt"; expected an apiVersion such as example.com/v1, or one of the kinds ReplicaSet, ReplicationController, Deployment, Pod, Service and Endpoints; did you mean PodDisruptionBudget?`},
		{"misspelled kind of an operator", instead("  - create: {kind: Widgt, name: web}") + "operator: {kinds: [{apiVersion: example.com/v1, kind: Widget}]}\n", `x.yaml:4:13: workload[0].create.apiVersion: found nothing for kind "Widgt"; expected an apiVersion such as example.com/v1, or one of the kinds ReplicaSet, ReplicationController, Deployment, Pod, Service and Endpoints; did you mean Widget?`},
		{"kind of Kubernetes without an apiVersion", instead("  - create: {kind: Secret, name: web}"), `x.yaml:4:13: workload[0].create.apiVersion: found nothing for kind "Secret"; expected apiVersion: v1`},
		{"no kind", instead("  - create: {name: web}"), "x.yaml:4:13: workload[0].create.kind: found nothing; expected ReplicaSet, ReplicationController, Deployment, Pod, Service or Endpoints"},
		{"bad object name", instead("  - create: {kind: Pod, name: a.b}"), `x.yaml:4:31: workload[0].create.name: found "a.b"; expected a DNS label: at most 63 of a-z, 0-9 and -, with no - at either end`},
		{"no replicas", instead("  - create: {kind: ReplicaSet, name: web}"), "x.yaml:4:13: workload[0].create.replicas: found nothing; expected a number from 0 to 20000"},
		{"too many replicas", instead("  - create: {kind: ReplicaSet, name: web, replicas: 20001}"), "x.yaml:4:53: workload[0].create.replicas: found 20001; expected a number from 0 to 20000"},
		{"count of replicas", instead("  - create: {kind: ReplicaSet, name: web, count: 3}"), "x.yaml:4:50: workload[0].create.count: a create of kind ReplicaSet has no field count; expected only the fields kind, name, replicas, labels, selector, minReadySeconds or matchExpressions; did you mean replicas?"},
		{"kind with a name", instead("  - create: {kind: deploy/web, replicas: 3}"), "x.yaml:4:13: workload[0].create: found kind: deploy/web; expected two fields, such as kind: Deployment and name: web"},
		{"method of a request", minimal + "faults:\n  - x: {}\n    when: {request: {verb: POST}}\n", "x.yaml:7:28: faults[0].when.request.verb: found the method POST; expected a verb; did you mean create?"},
		{"expression of kubectl wait", step("    await: {until: jsonpath='{.status.replicas}'=3}"), "x.yaml:5:20: the file is not valid YAML: found jsonpath='{.status.replicas}'=3, which contains {; expected quotes around the whole value, such as \"jsonpath={.status.replicas}=3\""},
		{"replicas of a pod", instead("  - create: {kind: Pod, name: web, replicas: 2}"), "x.yaml:4:46: workload[0].create.replicas: a create of kind Pod has no field replicas; expected only the fields kind, name, count, labels or controller; did you mean count?"},
		{"selector of a pod", instead("  - create: {kind: Pod, name: web, selector: {a: b}}"), "x.yaml:4:46: workload[0].create.selector: a create of kind Pod has no field selector; expected only the fields kind, name, count, labels or controller"},
		{"several ReplicaSets", instead("  - create: {kind: ReplicaSet, name: web, replicas: 1, count: 2}"), "x.yaml:4:63: workload[0].create.count: a create of kind ReplicaSet has no field count; expected only the fields kind, name, replicas, labels, selector, minReadySeconds or matchExpressions"},
		{"controller of a ReplicaSet", instead("  - create: {kind: ReplicaSet, name: web, replicas: 1, controller: foreign}"), "x.yaml:4:68: workload[0].create.controller: a create of kind ReplicaSet has no field controller; expected only the fields kind, name, replicas, labels, selector, minReadySeconds or matchExpressions"},
		{"unknown controller", instead("  - create: {kind: Pod, name: web, controller: me}"), `x.yaml:4:48: workload[0].create.controller: found "me"; expected none or foreign`},
		{"bad label", instead("  - create: {kind: Pod, name: web, labels: {app: a b}}"), `x.yaml:4:50: workload[0].create.labels.app: found "a b"; expected a label value: at most 63 of A-Z, a-z, 0-9, -, _ and ., beginning and ending with a letter or digit`},
		{"bad label key", instead("  - create: {kind: Pod, name: web, labels: {a/b/c: x}}"), `x.yaml:4:52: workload[0].create.labels.a/b/c: found the key "a/b/c"; expected the key of a label or annotation, such as app or example.com/app`},
		{"bad label key of an owner", instead("  - create: {kind: ReplicaSet, name: web, replicas: 1, labels: {a b: x}}"), `x.yaml:4:70: workload[0].create.labels.a b: found the key "a b"; expected the key of a label or annotation, such as app or example.com/app`},
		{"bad selector key of an owner", instead("  - create: {kind: ReplicaSet, name: web, replicas: 1, selector: {a b: x}}"), `x.yaml:4:72: workload[0].create.selector.a b: found the key "a b"; expected the key of a label or annotation, such as app or example.com/app`},
		{"label not text", instead("  - create: {kind: Pod, name: web, labels: {app: true}}"), "x.yaml:4:50: workload[0].create.labels.app: found true; expected text (quote a value such as 7 or true)"},
		{"selector that misses", instead("  - create: {kind: ReplicaSet, name: web, replicas: 1, labels: {app: a}, selector: {app: b}}"),
			"x.yaml:4:84: workload[0].create.selector: found app: b, which the labels do not have; expected a selector that matches the labels"},
		{
			"expression that the labels do not meet", instead("  - create: {kind: ReplicaSet, name: web, replicas: 1, labels: {app: a}, matchExpressions: [{key: app, operator: NotIn, values: [a]}]}"),
			"x.yaml:4:93: workload[0].create.matchExpressions[0]: found app notin (a), which the labels do not meet; expected a selector that matches the labels",
		},
		{
			"expression without values", instead("  - create: {kind: ReplicaSet, name: web, replicas: 1, matchExpressions: [{key: app, operator: In}]}"),
			"x.yaml:4:75: workload[0].create.matchExpressions[0].values: found 0 values beside In; expected at least one for In and NotIn, and none for the other operators",
		},
		{
			"expression with an unknown operator", instead("  - create: {kind: ReplicaSet, name: web, replicas: 1, matchExpressions: [{key: app, operator: Has}]}"),
			`x.yaml:4:96: workload[0].create.matchExpressions[0].operator: found "Has"; expected In, NotIn, Exists or DoesNotExist`,
		},
		{
			"expressions of a ReplicationController", instead("  - create: {kind: ReplicationController, name: web, replicas: 1, matchExpressions: [{key: app, operator: Exists}]}"),
			"x.yaml:4:85: workload[0].create.matchExpressions: a create of kind ReplicationController has no field matchExpressions; expected only the fields kind, name, replicas, labels, selector or minReadySeconds",
		},
		{"created twice", step(create), "x.yaml:5:38: workload[1].create.name: found ReplicaSet web, but workload[0] has created this object already; use another name"},
		{"steps and external workload", minimal + "externalWorkload: {}\n", "x.yaml:4:3: workload: found the fields workload and externalWorkload; expected only one of the two fields"},
		{"external pods", external + "externalWorkload: {pods: -1}\n", "x.yaml:3:26: externalWorkload.pods: found -1; expected a number from 0 to 20000"},
		{"external kind of another group", external + "externalWorkload: {}\noperator: {kinds: [{apiVersion: v1, kind: Deployment}]}\n", "x.yaml:4:33: operator.kinds[0].apiVersion: found v1 for kind Deployment; expected apps/v1"},
		{"external kind twice", external + "externalWorkload: {}\noperator: {kinds: [{apiVersion: a/v1, kind: W}, {apiVersion: a/v1, kind: W}]}\n", "x.yaml:4:74: operator.kinds[1].kind: found kind W twice; expected each kind once"},
		{"external plural twice", external + "externalWorkload: {}\noperator: {kinds: [{apiVersion: a/v1, kind: W, plural: ws}, {apiVersion: a/v1, kind: V, plural: ws}]}\n", "x.yaml:4:97: operator.kinds[1].plural: found plural ws twice in a/v1; expected the plural of kind V"},
		{"external write twice", external + "externalWorkload: {}\noperator: {controllers: [{name: c, kind: Pod, writes: [Pod, Pod]}]}\n", "x.yaml:4:61: operator.controllers[0].writes[1]: found kind Pod twice; expected each kind once"},
		{"wrong plural of a built-in kind", minimal + "operator: {kinds: [{apiVersion: v1, kind: Pod, plural: podz}]}\n", `x.yaml:5:56: operator.kinds[0].plural: found "podz"; expected pods, the plural of kind Pod`},
		{"wrong scope of a built-in kind", minimal + "operator: {kinds: [{apiVersion: v1, kind: Node, plural: nodes}]}\n", `x.yaml:5:20: operator.kinds[0].clusterScoped: found false for kind Node; expected true`},
		{"external scope without plural", external + "externalWorkload: {}\noperator: {kinds: [{apiVersion: a/v1, kind: W, clusterScoped: true}]}\n", "x.yaml:4:20: operator.kinds[0].plural: found nothing; expected the plural of the cluster-scoped kind W"},
		{"external workload and a trigger on a step", external + "externalWorkload: {}\nfaults:\n  - pod-churn: {}\n    when: {step: {index: 0}}\n", "x.yaml:6:18: faults[0].when.step: found a trigger on a step; expected another trigger, because an external workload has no steps"},
		{"scaled before created", step("  - scale: {kind: ReplicaSet, name: wbe, replicas: 1}"), "x.yaml:5:37: workload[1].scale.name: found ReplicaSet wbe, but no earlier step creates this object; add a create step before this step; did you mean web?"},
		{"scale of a pod", step("  - scale: {kind: Pod, name: web, replicas: 1}"), `x.yaml:5:19: workload[1].scale.kind: found "Pod"; expected ReplicaSet, ReplicationController or Deployment`},
		{"scale to nothing", step("  - scale: {kind: ReplicaSet, name: web}"), "x.yaml:5:12: workload[1].scale.replicas: found nothing; expected a number from 0 to 20000"},
		{"scaled after deleted", step("  - delete: {kind: ReplicaSet, name: web}\n  - scale: {kind: ReplicaSet, name: web, replicas: 1}"), "x.yaml:6:37: workload[2].scale.name: found ReplicaSet web, but workload[1] deletes this object; expected an object that exists"},
		{"unknown propagation", step("  - delete: {kind: ReplicaSet, name: web, propagation: now}"), `x.yaml:5:56: workload[1].delete.propagation: found "now"; expected background, foreground or orphan`},
		{"await nothing", step("  - await: {until: ready}"), "x.yaml:5:12: workload[1].await.kind: found nothing; expected ReplicaSet, ReplicationController, Deployment, Pod, Service or Endpoints\nx.yaml:5:12: workload[1].await.name: found nothing; expected a name"},
		{"await what no pod does", instead("  - create: {kind: Pod, name: web}\n    await: {until: scaled}"), `x.yaml:5:20: workload[0].await.until: found "scaled", which is no condition of a Pod; expected ready, gone, quiet, condition=…, jsonpath=… or no jsonpath=…`},
		{"await unknown", step("  - await: {kind: ReplicaSet, name: web, until: done}"), `x.yaml:5:49: workload[1].await.until: found "done"; expected scaled, ready, available, gone, quiet, condition=…, jsonpath=… or no jsonpath=…; did you mean gone?`},
		{"await gone, not deleted", step("  - await: {kind: ReplicaSet, name: web, until: gone}"), "x.yaml:5:49: workload[1].await.until: found gone, but no earlier step deletes ReplicaSet web; add a delete step before this await"},

		{"step that is no mapping", step("  - pause"), `x.yaml:5:5: workload[1]: found "pause"; expected a mapping with after, create, scale, delete, rollout, pause, resume, rollback, label, annotate, select, configure, publish, patch or await`},
		{"short lease", minimal + "subject: {leaseDuration: 2s}\n", "x.yaml:5:26: subject.leaseDuration: found 2s; expected a duration from 3s to 5m0s"},

		// Invalid fields of Deployments, Services and Endpoints
		{"strategy of a ReplicaSet", instead("  - create: {kind: ReplicaSet, name: web, replicas: 1, strategy: Recreate}"),
			"x.yaml:4:66: workload[0].create.strategy: a create of kind ReplicaSet has no field strategy; expected only the fields kind, name, replicas, labels, selector, minReadySeconds or matchExpressions"},
		{"unknown strategy", instead("  - create: {kind: Deployment, name: web, replicas: 1, strategy: Canary}"),
			`x.yaml:4:66: workload[0].create.strategy: found "Canary"; expected RollingUpdate or Recreate`},
		{"surge of all at once", instead("  - create: {kind: Deployment, name: web, replicas: 1, strategy: Recreate, maxSurge: 1}"),
			"x.yaml:4:86: workload[0].create.maxSurge: found 1 with strategy Recreate; expected strategy RollingUpdate for this field"},
		{"surge of half a pod", instead("  - create: {kind: Deployment, name: web, replicas: 1, maxSurge: 0.5}"),
			"x.yaml:4:66: workload[0].create.maxSurge: found 0.5; expected a whole number, or a percentage such as 25%"},
		{"surge without a unit", instead("  - create: {kind: Deployment, name: web, replicas: 1, maxSurge: 5p}"),
			`x.yaml:4:66: workload[0].create.maxSurge: found "5p"; expected 0 to 20000, or 0% to 100%`},
		{"too much surge", instead("  - create: {kind: Deployment, name: web, replicas: 1, maxSurge: 101%}"),
			`x.yaml:4:66: workload[0].create.maxSurge: found "101%"; expected 0 to 20000, or 0% to 100%`},
		{"neither surge nor unavailable", instead("  - create: {kind: Deployment, name: web, replicas: 1, maxSurge: 0, maxUnavailable: 0%}"),
			`x.yaml:4:85: workload[0].create.maxUnavailable: found "0%" beside maxSurge 0; expected at least one of the two fields above 0`},
		{"no time to progress", instead("  - create: {kind: Deployment, name: web, replicas: 1, minReadySeconds: 9, progressDeadlineSeconds: 9}"),
			"x.yaml:4:101: workload[0].create.progressDeadlineSeconds: found 9; expected more than minReadySeconds, which is 9"},
		{"Service without ports", instead("  - create: {kind: Service, name: web, ports: []}"),
			"x.yaml:4:47: workload[0].create.ports: found no port; expected at least one, or headless: true"},
		{"port without a name", instead("  - create: {kind: Service, name: web, ports: [{port: 1}, {name: a, port: 2}]}"),
			"x.yaml:4:48: workload[0].create.ports[0].name: found nothing; expected a name, because the Service has several ports"},
		{"number twice", instead("  - create: {kind: Service, name: web, ports: [{name: a, port: 1}, {name: b, port: 1}]}"),
			"x.yaml:4:84: workload[0].create.ports[1].port: found port 1 with protocol TCP twice; expected each port and protocol once"},
		{"port twice", instead("  - create: {kind: Service, name: web, ports: [{name: a, port: 1}, {name: a, port: 2}]}"),
			`x.yaml:4:75: workload[0].create.ports[1].name: found port name "a" twice; expected each port name once`},
		{"target of no port", instead("  - create: {kind: Service, name: web, ports: [{port: 1, targetPort: 99999}]}"),
			"x.yaml:4:70: workload[0].create.ports[0].targetPort: found 99999; expected 1 to 65535, or the name of a container port"},
		{"target of no name", instead("  - create: {kind: Service, name: web, ports: [{port: 1, targetPort: 80%}]}"),
			`x.yaml:4:70: workload[0].create.ports[0].targetPort: found "80%"; expected 1 to 65535, or the name of a container port`},
		{"unknown protocol", instead("  - create: {kind: Service, name: web, ports: [{port: 1, protocol: IP}]}"),
			`x.yaml:4:68: workload[0].create.ports[0].protocol: found "IP"; expected TCP, UDP or SCTP`},
		{"headless and external", instead("  - create: {kind: Service, name: web, headless: true, externalName: a.b}"),
			"x.yaml:4:50: workload[0].create.headless: found headless beside externalName; expected only one of the two fields"},
		{"external, but no domain", instead("  - create: {kind: Service, name: web, externalName: A_b}"),
			`x.yaml:4:54: workload[0].create.externalName: found "A_b"; expected a domain such as example.com`},
		{"replicas of Endpoints", instead("  - create: {kind: Endpoints, name: web, replicas: 2}"),
			"x.yaml:4:52: workload[0].create.replicas: a create of kind Endpoints has no field replicas; expected only the fields kind, name, labels or leader"},
		{"rollout of a ReplicaSet", step("  - rollout: {kind: ReplicaSet, name: web, version: v2}"), `x.yaml:5:21: workload[1].rollout.kind: found "ReplicaSet"; expected Deployment`},
		{"rollout of nothing", step("  - rollout: {name: web, version: v2}"), "x.yaml:5:21: workload[1].rollout.name: found Deployment web, but no earlier step creates this object; add a create step before this step"},
		{"rollout to nothing", step("  - rollout: {name: web}"), "x.yaml:5:14: workload[1].rollout.version: found nothing; expected a name\n" +
			"x.yaml:5:21: workload[1].rollout.name: found Deployment web, but no earlier step creates this object; add a create step before this step"},
		{"rollback into the future", step("  - rollback: {name: web, revision: -1}"), "x.yaml:5:22: workload[1].rollback.name: found Deployment web, but no earlier step creates this object; add a create step before this step\n" +
			"x.yaml:5:37: workload[1].rollback.revision: found -1; expected a number from 0 to 1000000"},
		{"no label", step("  - label: {kind: ReplicaSet, name: web}"), "x.yaml:5:12: workload[1].label: found no label; expected labels to set, or keys to remove"},
		{"label set and removed", step("  - label: {kind: ReplicaSet, name: web, labels: {a: b}, remove: [a]}"),
			"x.yaml:5:67: workload[1].label.remove[0]: found the key a, which the field labels sets; expected the key in only one of the two fields"},
		{"label that is no key", step("  - label: {kind: ReplicaSet, name: web, remove: [a b]}"),
			`x.yaml:5:51: workload[1].label.remove[0]: found the key "a b"; expected the key of a label or annotation, such as app or example.com/app`},
		{"nothing to configure", step("  - configure: {kind: ReplicaSet, name: web}"), "x.yaml:5:16: workload[1].configure: found nothing to change; expected minReadySeconds"},
		{"strategy to configure of a ReplicaSet", step("  - configure: {kind: ReplicaSet, name: web, minReadySeconds: 1, strategy: Recreate}"),
			"x.yaml:5:76: workload[1].configure.strategy: a configure of kind ReplicaSet has no field strategy; expected only minReadySeconds"},
		{"bounds without a strategy", instead("  - create: {kind: Deployment, name: web, replicas: 1}\n  - configure: {kind: Deployment, name: web, maxSurge: 1}"),
			"x.yaml:5:56: workload[1].configure.maxSurge: found 1 with strategy none; expected strategy RollingUpdate for this field"},
		{"no room to roll", instead("  - create: {kind: Deployment, name: web, replicas: 1}\n  - configure: {kind: Deployment, name: web, strategy: RollingUpdate, maxSurge: 0, maxUnavailable: 0}"),
			"x.yaml:5:100: workload[1].configure.maxUnavailable: found 0 beside maxSurge 0; expected at least one of the two fields above 0"},
		{"no ports to publish", instead("  - create: {kind: Service, name: web, ports: [{port: 80}], selector: {a: b}}\n  - publish: {name: web, ports: []}"),
			"x.yaml:5:33: workload[1].publish.ports: found an empty list; expected at least one port, or no field ports"},
		{"a port without a number", instead("  - create: {kind: Service, name: web, ports: [{name: a}], selector: {a: b}}"),
			"x.yaml:4:48: workload[0].create.ports[0].port: found 0, or nothing; expected a number from 1 to 65535"},
		{"nothing to publish", instead("  - create: {kind: Service, name: web}\n  - publish: {name: web}"),
			"x.yaml:5:14: workload[1].publish: found nothing to change; expected type, externalName, ports or publishNotReadyAddresses"},
		{"a type without its name", instead("  - create: {kind: Service, name: web}\n  - publish: {name: web, type: ExternalName}"),
			`x.yaml:5:14: workload[1].publish.externalName: found nothing with type ExternalName; expected a domain such as example.com`},
		{"several missing objects", step("  - scale: {kind: ReplicaSet, name: a, replicas: 1}\n  - scale: {kind: ReplicaSet, name: b, replicas: 1}"),
			"x.yaml:5:37: workload[1].scale.name: found ReplicaSet a, but no earlier step creates this object; add a create step before this step\n" +
				"x.yaml:6:37: workload[2].scale.name: found ReplicaSet b, but no earlier step creates this object; add a create step before this step"},
		{"a name without its type", instead("  - create: {kind: Service, name: web}\n  - publish: {name: web, externalName: example.com}"),
			`x.yaml:5:40: workload[1].publish.externalName: found externalName "example.com" with type ""; expected an externalName only with type ExternalName`},
		{"no selector of a controller", instead("  - create: {kind: ReplicationController, name: web, replicas: 1}\n  - select: {kind: ReplicationController, name: web, selector: {}}"),
			"x.yaml:5:64: workload[1].select.selector: found no label; expected at least one, because a ReplicationController must have a selector"},
		{"no annotation", step("  - annotate: {kind: ReplicaSet, name: web}"), "x.yaml:5:15: workload[1].annotate: found no annotation; expected annotations to set, or keys to remove"},
		{"an annotation's key", step("  - annotate: {kind: ReplicaSet, name: web, annotations: {a b: c}}"), `x.yaml:5:64: workload[1].annotate.annotations.a b: found the key "a b"; expected the key of a label or annotation, such as app or example.com/app`},
		{"annotation set and removed", step("  - annotate: {kind: ReplicaSet, name: web, annotations: {a: b}, remove: [a]}"), "x.yaml:5:75: workload[1].annotate.remove[0]: found the key a, which the field annotations sets; expected the key in only one of the two fields"},
		{"no selector", step("  - select: {name: web}"), "x.yaml:5:13: workload[1].select.selector: found nothing; expected labels, or {} for no selector\n" +
			"x.yaml:5:20: workload[1].select.name: found Service web, but no earlier step creates this object; add a create step before this step"},
		{"await a ready Service", instead("  - create: {kind: Service, name: web}\n    await: {until: ready}"), `x.yaml:5:20: workload[0].await.until: found "ready", which is no condition of a Service; expected served, gone, quiet, condition=…, jsonpath=… or no jsonpath=…`},
		{"await a complete ReplicaSet", step("  - await: {kind: ReplicaSet, name: web, until: complete}"), `x.yaml:5:49: workload[1].await.until: found "complete", which is no condition of a ReplicaSet; expected scaled, ready, available, gone, quiet, condition=…, jsonpath=… or no jsonpath=…`},

		// Invalid faults
		{"parameters beside the fault", minimal + "faults:\n  - api-error:\n    verb: create\n    code: 500\n", "x.yaml:7:5: faults[0]: found the field verb beside api-error, which has no parameters; expected the parameters indented below api-error"},
		{"parameters beside the operation", instead("  - create:\n    kind: ReplicaSet\n    name: web\n"), "x.yaml:5:5: workload[0]: found the field kind beside create, which has no parameters; expected the parameters indented below create"},
		{"the name of a fault as a value", minimal + "faults:\n  - type: api-error\n    verb: create\n", `x.yaml:6:5: faults[0]: found the field type with the value "api-error"; expected the name as the key, and the parameters below it, such as api-error: {…}`},
		{"fault without kind", minimal + "faults:\n  - from: 1s\n", "x.yaml:6:5: faults[0]: found no fault; expected one fault with its parameters, and optionally when, until, times, from, for and mustFire"},
		{"two kinds of fault", minimal + "faults:\n  - pod-churn: {}\n    form: 1s\n", `x.yaml:7:5: faults[0]: found the fields "form" and "pod-churn"; expected one fault with its parameters, and optionally when, until, times, from, for and mustFire; did you mean for?`},
		{"fault as text", minimal + "faults:\n  - pod-churn\n", `x.yaml:6:5: faults[0]: found "pod-churn"; expected parameters after the name of a fault, such as pod-churn: {}`},
		{"parameters as text", minimal + "faults:\n  - pod-churn: hard\n", `x.yaml:6:16: faults[0].pod-churn: found "hard"; expected a mapping of parameters`},
		{"fault before the start", minimal + "faults:\n  - pod-churn: {}\n    from: -1s\n", "x.yaml:7:11: faults[0].from: found -1s; expected a duration from 0s to 10m0s"},
		{"fault without a trigger", minimal + "faults:\n  - pod-churn: {}\n    when: {}\n", "x.yaml:7:11: faults[0].when: found 0 of the fields request, event, state, fault and step; expected exactly one"},
		{"fault with two triggers", minimal + "faults:\n  - pod-churn: {}\n    until: {step: {index: 0}, request: {nth: 2}}\n", "x.yaml:7:12: faults[0].until: found 2 of the fields request, event, state, fault and step; expected exactly one"},
		{"trigger of an unknown verb", minimal + "faults:\n  - pod-churn: {}\n    when: {request: {verb: creat}}\n", `x.yaml:7:28: faults[0].when.request.verb: found "creat"; expected write, get, list, watch, create, update, patch, delete or deletecollection; did you mean create?`},
		{"trigger of no request", minimal + "faults:\n  - pod-churn: {}\n    when: {request: {nth: 0}}\n", "x.yaml:7:27: faults[0].when.request.nth: found 0; expected a number from 1 to 1000000"},
		{"trigger of an unknown phase", minimal + "faults:\n  - pod-churn: {}\n    when: {request: {phase: lost}}\n", `x.yaml:7:29: faults[0].when.request.phase: found "lost"; expected sent or committed`},
		{"trigger of an owner without a kind", minimal + "faults:\n  - pod-churn: {}\n    when: {request: {owner: web}}\n", `x.yaml:7:29: faults[0].when.request.owner: found "web"; expected a kind and a name, such as ReplicaSet/web-*`},
		{"trigger of an event of nothing", minimal + "faults:\n  - pod-churn: {}\n    when: {event: {type: ADDED}}\n", "x.yaml:7:19: faults[0].when.event.resource: found nothing; expected configmaps, controllerrevisions.apps, cronjobs.batch, daemonsets.apps, deployments.apps, endpoints, endpointslices.discovery.k8s.io, events, events.events.k8s.io, ingresses.networking.k8s.io, jobs.batch, leases.coordination.k8s.io, namespaces, nodes, pods, replicasets.apps, replicationcontrollers, services or statefulsets.apps"},
		{"trigger of a state of another kind", minimal + "faults:\n  - pod-churn: {}\n    when: {state: {resource: services, is: ready}}\n", `x.yaml:7:44: faults[0].when.state.is: found "ready"; expected present or terminating`},
		{"trigger that always matches", minimal + "faults:\n  - pod-churn: {}\n    when: {state: {resource: pods, atLeast: 0}}\n", "x.yaml:7:45: faults[0].when.state.atLeast: found 0 without atMost, so the trigger always matches; expected 1 or more, or the field atMost"},
		{"trigger of no step", minimal + "faults:\n  - pod-churn: {}\n    when: {step: {index: 1}}\n", "x.yaml:7:26: faults[0].when.step.index: found 1; expected a number from 0 to 0"},
		{"trigger of the fault itself", minimal + "faults:\n  - pod-churn: {}\n    when: {fault: {index: 0}}\n", "x.yaml:7:27: faults[0].when.fault.index: found the index of the fault itself; expected the index of another fault"},
		{"bad trigger after a good one", minimal + "faults:\n  - pod-churn: {}\n    when: {request: {}, after: {step: {index: 0, at: half}}}\n", `x.yaml:7:54: faults[0].when.after.step.at: found "half"; expected begun or done`},
		{"often, but when", minimal + "faults:\n  - pod-churn: {}\n    times: 2\n", "x.yaml:7:12: faults[0].times: found times without when; add the field when, with the trigger that begins the fault each time"},
		{"fault for no time", minimal + "faults:\n  - pod-churn: {}\n    for: 0s\n", "x.yaml:7:10: faults[0].for: found 0s; expected a duration from 1ms to 10m0s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(test.input))
			switch {
			case err == nil:
				t.Errorf("no error; want %s\n%s", test.want, test.input)
			case err.Error() != test.want:
				t.Errorf("error\n got %s\nwant %s", err, test.want)
			}
		})
	}
}

func TestLoadErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "absent.yaml")
	if _, err := Load(path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("error of an absent file: %v", err)
	}
}

func TestParseBoundsSize(t *testing.T) {
	_, err := Parse("x.yaml", []byte(strings.Repeat("#", SizeLimit+1)))
	if want := "x.yaml: found a file of 262145 bytes; expected at most 262144 bytes"; err == nil || err.Error() != want {
		t.Errorf("error %v; want %s", err, want)
	}
	var text strings.Builder // the defaults of the steps make the scenario larger
	text.WriteString("name: x\nworkload:\n")
	for i := range 900 {
		fmt.Fprintf(&text, "  - create: {kind: ConfigMap, name: c%d, manifest: {data: {a: %q}}}\n", i, strings.Repeat("y", 200))
	}
	_, err = Parse("x.yaml", []byte(text.String()))
	if want := "bytes, complete with defaults; expected at most 262144 bytes"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error %v; want one that ends with %s", err, want)
	}
}

// TestErrorf checks the positions in errors that other packages report with Errorf. These are
// errors about checks and faults.
func TestErrorf(t *testing.T) {
	s, err := Parse("x.yaml", []byte(minimal+`faults:
  - pod-churn:
    from: 1s
  - api-error: {code: 999}
exercises: [no-writes-when-settled, qiet]
`))
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("no such check")
	made := &Scenario{Name: "made-in-go"}
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"an item", s.Errorf("exercises[1]", "%w", cause), "x.yaml:9:37: exercises[1]: no such check"},
		{"an absent field", s.Errorf("cluster.nodes", "too few"), "x.yaml:1:1: cluster.nodes: too few"},
		{"an absent item", s.Errorf("exercises[7]", "absent"), "x.yaml:9:12: exercises[7]: absent"},
		{"the scenario", s.Errorf("", "odd"), "x.yaml:1:1: odd"},
		{"a fault", s.Faults[1].Errorf("unknown"), "x.yaml:8:5: api-error: unknown"},
		{"a fault without parameters", s.Faults[0].Errorf("unknown"), "x.yaml:6:5: pod-churn: unknown"},
		{"a parameter", s.Faults[1].Params.Errorf("code", "found %d", 999), "x.yaml:8:23: api-error.code: found 999"},
		{"an absent parameter", s.Faults[1].Params.Errorf("verb", "missing"), "x.yaml:8:5: api-error.verb: missing"},
		{"no file", made.Errorf("name", "odd"), "name: odd"},
	} {
		if test.err.Error() != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, test.err, test.want)
		}
	}
	if !errors.Is(s.Errorf("exercises[1]", "%w", cause), cause) {
		t.Error("Errorf does not wrap")
	}
}
