package scenario

import (
	"strings"
	"testing"
)

// TestNeverWorks checks the error of CheckReachable for workloads and faults that never work. An empty error means that the
// scenario works.
func TestNeverWorks(t *testing.T) {
	const sets = "workload:\n  - create: {kind: ReplicaSet, name: web, replicas: 3}\n  - create: {kind: ReplicaSet, name: api, replicas: 3}\n    after: 5s\n"
	const edit = "faults:\n  - user-edit: {steps: [{scale: {kind: ReplicaSet, name: api, replicas: 5}}]}\n"
	const early = "faults[0].user-edit.steps[0].scale.name: found ReplicaSet api, which workload[1] creates only after this fault has begun; expected a later fault, such as with when: {step: {index: 1}}"
	const service = "workload:\n  - create: {kind: Service, name: web, headless: true}\n"
	const definition = `  - create:
      kind: CustomResourceDefinition
      apiVersion: apiextensions.k8s.io/v1
      name: widgets.example.com
      manifest:
        spec: {group: example.com, names: {kind: Widget, plural: widgets}, scope: Namespaced, versions: [{name: v1, served: false}, {name: v2, served: true}]}
`
	const widget = "  - create: {kind: Widget, apiVersion: example.com/v2, name: w, manifest: {spec: {}}}\n"
	for _, test := range []struct{ name, text, want string }{
		{"an edit before the object", sets + edit, early},
		{"an edit after a pause", sets + edit + "    from: 6s\n", ""},
		{"an edit after a pause of its own", sets + strings.Replace(edit, "{scale", "{after: 6s, scale", 1), ""},
		{"an edit when the step begins", sets + edit + "    when: {step: {index: 1, at: begun}}\n", ""},
		{"an edit when the step before is done", sets + edit + "    when: {step: {index: 0}}\n", early},
		{"an edit when the step is done", sets + edit + "    when: {step: {index: 1}}\n", ""},
		{"an edit on a request", sets + edit + "    when: {request: {verb: create}}\n", ""},
		{"no Deployment", sets + "faults:\n  - name-taken: {}\n",
			"faults[0].name-taken: found name-taken, but the workload creates no Deployment, so that no controller creates a ReplicaSet; expected a step that creates a Deployment"},
		{"no pods", "workload:\n  - create: {kind: ReplicaSet, name: web, replicas: 0}\nfaults:\n  - pod-churn: {action: delete}\n",
			"faults[0].pod-churn: found pod-churn, but the workload never has pods; expected a step that creates pods, or an object with at least one replica"},
		{"pods after a scale", "workload:\n  - create: {kind: ReplicaSet, name: web, replicas: 0}\n  - scale: {kind: ReplicaSet, name: web, replicas: 2}\nfaults:\n  - pod-churn: {action: delete}\n", ""},
		{"pods of a Job", "workload:\n  - create: {kind: Job, name: web, manifest: {spec: {template: {spec: {restartPolicy: Never}}}}}\nfaults:\n  - pod-churn: {action: delete}\n", ""},

		{"a node port without a cluster IP address", service + "  - publish: {name: web, type: NodePort}\n",
			"workload[1].publish.type: found NodePort, but Service web is headless; expected a Service that a step creates without headless: true, because only the type ClusterIP may be headless"},
		{"a headless Service", service + "  - publish: {name: web, type: ClusterIP}\n", ""},
		{"an external name between", service + "  - publish: {name: web, type: ExternalName, externalName: example.com}\n  - publish: {name: web, type: NodePort}\n", ""},

		{"a resource before its definition", "workload:\n" + widget + definition,
			"workload[0].create.kind: found a Widget, but only workload[1] creates the CustomResourceDefinition widgets.example.com; move that step before this one"},
		{"a version that is not served", "workload:\n" + definition + strings.Replace(widget, "v2", "v1", 1),
			"workload[1].create.apiVersion: found example.com/v1, which the CustomResourceDefinition widgets.example.com of workload[0] does not serve; expected example.com/v2"},
		{"a served version", "workload:\n" + definition + widget, ""},
		{"a definition that changes", "workload:\n" + definition + "  - patch: {kind: CustomResourceDefinition, name: widgets.example.com, merge: {spec: {versions: []}}}\n" + strings.Replace(widget, "v2", "v1", 1), ""},

		{"an owner without uid", sets + "  - patch: {kind: ReplicaSet, name: web, merge: {metadata: {ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: x}]}}}\n",
			"workload[2].patch.merge.metadata.ownerReferences[0]: found an owner reference without uid; expected apiVersion, kind, name and uid, because the API server refuses others"},
		{"an owner", sets + "  - patch: {kind: ReplicaSet, name: web, merge: {metadata: {ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: x, uid: y}]}}}\n", ""},
		{"two controllers", sets + "  - patch: {kind: ReplicaSet, name: web, merge: {metadata: {ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: x, uid: y, controller: true}, {apiVersion: apps/v1, kind: Deployment, name: z, uid: z, controller: true}]}}}\n",
			"workload[2].patch.merge.metadata.ownerReferences[1].controller: found a second owner reference with controller: true; expected at most one"},
		{"a finalizer without a domain", "workload:\n  - create: {kind: ConfigMap, name: a, manifest: {metadata: {finalizers: [hold]}}}\n",
			`workload[0].create.manifest.metadata.finalizers[0]: found the finalizer "hold", which has no domain; expected a name such as example.com/hold, because the API server refuses others`},
		{"finalizers", sets + "  - patch: {kind: ReplicaSet, name: web, merge: {metadata: {finalizers: [orphan, example.com/hold]}}}\n", ""},
		{"a finalizer of a custom resource", "workload:\n" + definition + strings.Replace(widget, "spec", "metadata: {finalizers: [hold]}, spec", 1), ""},
		{"no finalizers", sets + "  - patch: {kind: ReplicaSet, name: web, merge: {metadata: {finalizers: null}}}\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) { checkReachable(t, test.text, test.want) })
	}
}

// checkReachable compares the error of CheckReachable with the expected one, without its position. The text has the fields of a
// scenario besides the name.
func checkReachable(t *testing.T, text, want string) {
	t.Helper()
	s, err := Parse("x.yaml", []byte("name: small\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	if err := s.CheckReachable(); err != nil {
		_, got, _ = strings.Cut(err.Error(), ": ")
	}
	if got != want {
		t.Errorf("error\n got %s\nwant %s", got, want)
	}
}
