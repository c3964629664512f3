package scenario

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// statefulSet is a scenario that creates a StatefulSet from a manifest. Package kube has a row
// for the kind.
const statefulSet = `name: statefulset
description: Create, scale and delete a StatefulSet.
seed: 1
workload:
  - create:
      apiVersion: apps/v1
      kind: StatefulSet
      name: web
      manifest:
        spec:
          replicas: 3
          serviceName: web
          selector: {matchLabels: {app: web}}
          template: {metadata: {labels: {app: web}}}
    await: {until: "jsonpath={.status.readyReplicas}=3"}
  - scale: {kind: StatefulSet, name: web, replicas: 5}
    await: {until: jsonpath=.status.readyReplicas=5}
  - patch: {kind: StatefulSet, name: web, merge: {spec: {replicas: 2, minReadySeconds: null}}}
  - delete: {kind: StatefulSet, name: web}
    await: {until: gone}
`

// customResource is a scenario that creates a CustomResourceDefinition and an object of its
// kind.
const customResource = `name: custom
description: Create a custom resource.
workload:
  - create:
      apiVersion: apiextensions.k8s.io/v1
      kind: CustomResourceDefinition
      name: widgetry.example.com
      manifest: {spec: {group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgetry}}}
    await: {until: condition=Established}
  - create: {apiVersion: example.com/v1, kind: Widget, name: one, manifest: {spec: {size: 3}}}
  - create: {kind: Widget, name: two, manifest: {}}
  - create: {kind: ConfigMap, name: settings, manifest: {data: {a: b}}}
`

func parse(t *testing.T, text string) *Scenario {
	t.Helper()
	s, err := Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParseGeneric(t *testing.T) {
	web := Target{"StatefulSet", "web"}
	s := parse(t, statefulSet)
	want := []Operation{
		&Create{Target: web, APIVersion: "apps/v1", Count: 1, Controller: NoController, Manifest: Fields{"spec": map[string]any{
			"replicas": int64(3), "serviceName": "web",
			"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}},
		}}},
		s.Workload[1].Operation,
		&Patch{Target: web, Merge: Fields{"spec": map[string]any{"replicas": int64(2), "minReadySeconds": nil}}},
		&Delete{Target: web, Propagation: Background},
	}
	for i, step := range s.Workload {
		if diff := cmp.Diff(want[i], step.Operation); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
	if got := s.Workload[0].Await; got.Target != web || got.Until != "jsonpath={.status.readyReplicas}=3" {
		t.Errorf("await %v; want the condition of %s", got, web)
	}
	if got, want := s.Workload[2].String(), "patch StatefulSet web with {spec: {minReadySeconds: null, replicas: 2}}"; got != want {
		t.Errorf("step %q; want %q", got, want)
	}
	if got := s.PodsMax(); got != 5 {
		t.Errorf("%d pods; want 5", got)
	}
	if got := s.ExistingObjects(); len(got) != 0 {
		t.Errorf("objects %v exist; want none", got)
	}
	if err := s.NeedsOwnControlPlane(); err != nil {
		t.Errorf("a StatefulSet needs an own control plane: %v", err)
	}
}

// TestAwaitObjectsOfOperators checks that an await may name an object that only the controllers under
// test create.
func TestAwaitObjectsOfOperators(t *testing.T) {
	for _, text := range []string{
		minimal + "  - await: {kind: StatefulSet, name: db, until: 'jsonpath={.status.readyReplicas}=3'}\n",
		minimal + "  - await: {kind: Job, name: db, until: gone}\n",
		"operator: {}\n" + minimal + "  - await: {kind: Deployment, name: db, until: available}\n",
		"operator: {kinds: [{apiVersion: example.com/v1, kind: Gadget}]}\n" + minimal + "  - await: {kind: Gadget, name: db, until: condition=Ready}\n",
	} {
		if _, err := Parse("x.yaml", []byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestCheckDefined checks which workloads create custom resources without a definition.
func TestCheckDefined(t *testing.T) {
	const definition = "  - create: {kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1, name: gadgets.example.com, manifest: {spec: {group: example.com}}}\n"
	const gadget = "  - create: {kind: Gadget, apiVersion: example.com/v1, name: one, manifest: {spec: {}}}\n"
	for _, test := range []struct{ name, steps, want string }{
		{"no custom resource", "  - create: {kind: StatefulSet, name: db, manifest: {spec: {}}}\n  - create: {kind: Role, apiVersion: rbac.authorization.k8s.io/v1, name: a, manifest: {}}\n", ""},
		{"a definition", definition + gadget, ""},
		{"no definition", gadget, "x.yaml:3:20: workload[0].create.kind: found the kind Gadget of the group example.com, but no CustomResourceDefinition; expected the subject file of an operator, such as my-operator.yaml, as the subject under test"},
	} {
		s, err := Parse("x.yaml", []byte("name: x\nworkload:\n"+test.steps))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := s.CheckDefined(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: error %q; want %q", test.name, got, test.want)
		}
	}
}

// TestAPIVersionDefaults checks that a create step may omit the apiVersion in two cases. Package
// kube has a row for the kind, or another create step has the apiVersion.
func TestAPIVersionDefaults(t *testing.T) {
	var got []string
	for _, create := range parse(t, customResource).creates() {
		got = append(got, create.APIVersion)
	}
	want := []string{"apiextensions.k8s.io/v1", "example.com/v1", "example.com/v1", "v1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func resources(kinds []kube.Kind) []string {
	var all []string
	for _, kind := range kinds {
		all = append(all, kind.Resource())
	}
	return all
}

func TestObservedKinds(t *testing.T) {
	always := []string{"deployments.apps", "endpoints", "pods", "replicasets.apps", "replicationcontrollers", "services"}
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"default", minimal, always},
		{"one controller", minimal + "subject: {controllers: [endpoints-controller]}\n", always},
		{"a kind of the registry", statefulSet, append(slices.Clone(always), "statefulsets.apps")},
		{"custom resources", customResource, slices.Concat([]string{"configmaps"}, always, []string{"customresourcedefinitions.apiextensions.k8s.io", "widgetry.example.com"})},
	} {
		s := parse(t, test.text)
		if diff := cmp.Diff(test.want, resources(s.ObservedKinds())); diff != "" {
			t.Errorf("%s: observed (-want +got):\n%s", test.name, diff)
		}
		for _, resource := range slices.Concat(test.want, kube.Resources()) {
			if !slices.Contains(s.Resources(), resource) {
				t.Errorf("%s: faults may not name %s", test.name, resource)
			}
		}
	}
}

// TestControllers checks which controllers are under test, with and without the fields that name
// them.
func TestControllers(t *testing.T) {
	for text, want := range map[string][]string{
		"": kube.DefaultControllers(),
		"subject: {controllers: [endpoints-controller, replicaset-controller]}\n": {"replicaset-controller", "endpoints-controller"},
	} {
		var got []string
		for _, controller := range parse(t, minimal+text).Controllers() {
			got = append(got, controller.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: (-want +got):\n%s", text, diff)
		}
	}
	s := parse(t, minimal)
	s.Subject.Controllers = []string{"no-controller"}
	if got := s.Controllers(); got != nil {
		t.Errorf("unknown controllers: %v; want none", got)
	}
}

func TestNeedsOwnControlPlane(t *testing.T) {
	const want = "x.yaml:6:13: workload[0].create.kind: found CustomResourceDefinition, which is cluster-scoped; " +
		"expected a namespaced kind, or a provider with a control plane of its own"
	if err := parse(t, customResource).NeedsOwnControlPlane(); err == nil || err.Error() != want {
		t.Errorf("error\n got %v\nwant %s", err, want)
	}
	scoped := strings.Replace(customResource, "Namespaced", "Cluster", 1)
	for _, kind := range parse(t, scoped).GenericKinds() {
		if want := kind.Name != "ConfigMap"; kind.ClusterScoped != want {
			t.Errorf("%s: cluster-scoped %t; want %t", kind.Name, kind.ClusterScoped, want)
		}
	}
}

// TestGenericErrors checks the complete error message for one invalid step with a manifest in
// each case.
func TestGenericErrors(t *testing.T) {
	const widget = minimal + "  - create: {apiVersion: example.com/v1, kind: Widget, name: w, manifest: {}}\n"
	create := func(fields string) string { return minimal + "  - create: {" + fields + "}\n" }
	for _, test := range []struct {
		name, input, want string
	}{
		{"no apiVersion", create("kind: Widget, name: w, manifest: {}"),
			`x.yaml:5:13: workload[1].create.apiVersion: found nothing for kind "Widget"; expected an apiVersion such as example.com/v1, or one of the kinds ReplicaSet, ReplicationController, Deployment, Pod, Service and Endpoints`},
		{"bad apiVersion", create("apiVersion: Example/v1, kind: Widget, name: w, manifest: {}"),
			`x.yaml:5:26: workload[1].create.apiVersion: found "Example/v1"; expected a group and a version such as apps/v1, or v1`},
		{"apiVersion of a kind with fields", create("apiVersion: v1, kind: Pod, name: w"),
			`x.yaml:5:26: workload[1].create.apiVersion: found apiVersion "v1" for kind Pod; remove the field, because gauntlet knows the apiVersion of this kind`},
		{"two apiVersions", widget + "  - create: {apiVersion: example.com/v2, kind: Widget, name: x, manifest: {}}\n",
			"x.yaml:6:26: workload[2].create.apiVersion: found example.com/v2 for kind Widget; expected example.com/v1, as in an earlier create"},
		{"apiVersion of the field operator", "operator: {kinds: [{apiVersion: example.com/v2, kind: Widget}]}\n" + create("apiVersion: example.com/v1, kind: Widget, name: x, manifest: {}"),
			"x.yaml:6:26: workload[1].create.apiVersion: found example.com/v1 for kind Widget; expected example.com/v2, as in operator.kinds, or in a CustomResourceDefinition of subject.manifests"},
		{"kind that is no name", create("apiVersion: example.com/v1, kind: widget, name: w, manifest: {}"),
			`x.yaml:5:48: workload[1].create.kind: found "widget"; expected the name of a kind, such as StatefulSet`},
		{"misspelled kind", create("apiVersion: apps/v1, kind: Statefulset, name: w, manifest: {}"),
			`x.yaml:5:41: workload[1].create.kind: found "Statefulset"; expected a kind that apps/v1 has; did you mean StatefulSet?`},
		{"misspelled kind without apiVersion", create("kind: Replicaset, name: w, replicas: 1"),
			`x.yaml:5:13: workload[1].create.apiVersion: found nothing for kind "Replicaset"; expected an apiVersion such as example.com/v1, or one of the kinds ReplicaSet, ReplicationController, Deployment, Pod, Service and Endpoints; did you mean ReplicaSet?`},
		{"unknown version", create("apiVersion: batch/v2, kind: Job, name: w, manifest: {}"), "x.yaml:5:26: workload[1].create.apiVersion: found batch/v2; expected batch/v1 or batch/v1beta1"},
		{"unknown version of the core group", create("apiVersion: v2, kind: Node, name: w, manifest: {}"), "x.yaml:5:26: workload[1].create.apiVersion: found v2; expected v1"},
		{"unknown kind of the field operator", minimal + "operator: {kinds: [{apiVersion: apps/v7, kind: A}, {apiVersion: v1, kind: Cofigmap}, {apiVersion: apps.example.com/v7, kind: B}]}\n",
			"x.yaml:5:33: operator.kinds[0].apiVersion: found apps/v7; expected apps/v1, apps/v1beta1 or apps/v1beta2\n" +
				"x.yaml:5:75: operator.kinds[1].kind: found \"Cofigmap\"; expected a kind that v1 has; did you mean ConfigMap?"},
		{"misspelled kind to scale", minimal + "  - scale: {kind: Replicaset, name: web, replicas: 2}\n",
			`x.yaml:5:19: workload[1].scale.kind: found "Replicaset"; expected ReplicaSet, ReplicationController or Deployment; did you mean ReplicaSet?`},
		{"kind in lower case", minimal + "  - delete: {kind: replicaset, name: web}\n",
			`x.yaml:5:20: workload[1].delete.kind: found "replicaset"; expected the name of a kind, such as StatefulSet; did you mean ReplicaSet?`},
		{"short name of a kind", minimal + "  - delete: {kind: rs, name: web}\n",
			`x.yaml:5:20: workload[1].delete.kind: found "rs"; expected the name of a kind, such as StatefulSet; did you mean ReplicaSet?`},
		{"misspelled kind to await", minimal + "  - await: {kind: Statefulset, name: x, until: gone}\n",
			`x.yaml:5:19: workload[1].await.kind: found "Statefulset"; expected ReplicaSet, ReplicationController, Deployment, Pod, Service or Endpoints; did you mean StatefulSet?`},
		{"unknown kind to await", minimal + "  - await: {kind: Xyz, name: x, until: gone}\n",
			`x.yaml:5:19: workload[1].await.kind: found "Xyz"; expected ReplicaSet, ReplicationController, Deployment, Pod, Service or Endpoints, or a kind in the field operator.kinds of the scenario`},
		{"old version of a kind", create("apiVersion: apps/v1beta1, kind: StatefulSet, name: w, manifest: {}"),
			"x.yaml:5:26: workload[1].create.apiVersion: found apps/v1beta1 for kind StatefulSet; expected apps/v1, because Kubernetes 1.16 removed this version of the kind"},
		{"group that no API server serves", create("apiVersion: extensions/v1beta1, kind: Ingress, name: w, manifest: {}"),
			"x.yaml:5:26: workload[1].create.apiVersion: found extensions/v1beta1 for kind Ingress; expected networking.k8s.io/v1, because Kubernetes 1.22 removed this version of the kind"},
		{"bad name", create("kind: ConfigMap, name: A_b, manifest: {}"),
			`x.yaml:5:37: workload[1].create.name: found "A_b"; expected a DNS subdomain: at most 253 of a-z, 0-9, - and ., with a letter or digit at either end of each part`},
		{"no name", create("kind: ConfigMap, manifest: {}"), "x.yaml:5:13: workload[1].create.name: found nothing; expected a name"},
		{"no manifest", create("kind: ConfigMap, name: w"), "x.yaml:5:13: workload[1].create.manifest: found nothing; expected the fields of the ConfigMap, such as spec"},
		{"manifest as text", create("kind: ConfigMap, name: w, manifest: x"), `x.yaml:5:50: workload[1].create.manifest: found "x"; expected a mapping`},
		{"manifest of a pod", create("kind: Pod, name: w, manifest: {}"), "x.yaml:5:44: workload[1].create.manifest: a create of kind Pod has no field manifest; expected only the fields kind, name, count, labels or controller"},
		{"replicas beside a manifest", create("kind: StatefulSet, name: w, replicas: 3, manifest: {}"), "x.yaml:5:52: workload[1].create.replicas: a create of kind StatefulSet has no field replicas; expected only the fields kind, name, apiVersion or manifest; write it below manifest, such as manifest: {spec: {replicas: 3}}"},
		{"manifest with a kind", create("kind: ConfigMap, name: w, manifest: {kind: ConfigMap}"), "x.yaml:5:57: workload[1].create.manifest.kind: found the field kind; remove the fields apiVersion, kind and status"},
		{"manifest with a status", create("kind: ConfigMap, name: w, manifest: {status: {}}"), "x.yaml:5:59: workload[1].create.manifest.status: found the field status; remove the fields apiVersion, kind and status"},
		{"complete manifest", create("kind: ConfigMap, name: w, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: w}}"), "x.yaml:5:63: workload[1].create.manifest.apiVersion: found the fields apiVersion, kind and metadata.name; remove them, because gauntlet sets them"},
		{"field deep in a manifest", create("kind: Ingress, name: w, manifest: {spec: {rules: [{http: {paths: [{backend: {serviceName: web}}]}}]}}"), "x.yaml:5:104: workload[1].create.manifest.spec.rules[0].http.paths[0].backend.serviceName: found the field serviceName, which an Ingress does not have"},
		{"manifest with a name", create("kind: ConfigMap, name: w, manifest: {metadata: {name: w}}"), "x.yaml:5:68: workload[1].create.manifest.metadata.name: found the field metadata.name; remove the fields metadata.name and metadata.namespace"},
		{"metadata as text", create("kind: ConfigMap, name: w, manifest: {metadata: x}"), "x.yaml:5:61: workload[1].create.manifest.metadata: found no mapping; expected fields such as labels and annotations"},
		{"huge number", create("kind: ConfigMap, name: w, manifest: {a: [18446744073709551615]}"), "x.yaml:5:55: workload[1].create.manifest.a[0]: found 18446744073709551615; expected at most 9223372036854775807"},
		{"too many replicas", create("kind: StatefulSet, name: w, manifest: {spec: {replicas: 20001}}"), "x.yaml:5:70: workload[1].create.manifest.spec.replicas: found 20001; expected a number from 0 to 20000"},
		{"not created", widget + "  - delete: {kind: Gadget, name: w}\n",
			`x.yaml:6:20: workload[2].delete.kind: found "Gadget"; expected ReplicaSet, ReplicationController, Deployment, Pod, Service, Endpoints or Widget; did you mean Widget?`},
		{"await of a Deployment that nobody creates", widget + "  - await: {kind: Deployment, name: x, until: ready}\n", "x.yaml:6:37: workload[2].await.name: found Deployment x, but no earlier step creates this object; add a create step before this step, or the field operator: {} if the controllers under test create it"},
		{"await of a custom resource that nobody creates", widget + "  - await: {kind: Widget, name: x, until: gone}\n", "x.yaml:6:33: workload[2].await.name: found Widget x, but no earlier step creates this object; add a create step before this step"},
		{"await of an unknown kind", widget + "  - await: {kind: Gadget, name: x, until: gone}\n", `x.yaml:6:19: workload[2].await.kind: found "Gadget"; expected ReplicaSet, ReplicationController, Deployment, Pod, Service, Endpoints or Widget; did you mean Widget?`},
		{"not created by that name", widget + "  - delete: {kind: Widget, name: x}\n", "x.yaml:6:34: workload[2].delete.name: found Widget x, but no earlier step creates this object; add a create step before this step"},
		{"created twice", widget + "  - create: {apiVersion: example.com/v1, kind: Widget, name: w, manifest: {}}\n",
			"x.yaml:6:62: workload[2].create.name: found Widget w, but workload[1] has created this object already; use another name"},
		{"rollout", widget + "  - rollout: {kind: Widget, name: w, version: v2}\n", `x.yaml:6:21: workload[2].rollout.kind: found "Widget"; expected Deployment`},
		{"empty patch", minimal + "  - patch: {kind: ReplicaSet, name: web, merge: {}}\n", "x.yaml:5:49: workload[1].patch.merge: found nothing; expected the fields to change, such as spec"},
		{"patch without merge", minimal + "  - patch: {kind: ReplicaSet, name: web}\n", "x.yaml:5:12: workload[1].patch.merge: found nothing; expected the fields to change, such as spec"},
		{"patch of a status", minimal + "  - patch: {kind: ReplicaSet, name: web, merge: {status: {}}}\n", "x.yaml:5:58: workload[1].patch.merge.status: found the field status; remove the fields apiVersion, kind and status"},
		{"patch of an unknown field", minimal + "  - patch: {kind: ReplicaSet, name: web, merge: {spec: {replcas: 3}}}\n", "x.yaml:5:66: workload[1].patch.merge.spec.replcas: found the field spec.replcas, which a ReplicaSet does not have; did you mean replicas?"},
		{"patch of a field of another object", minimal + "  - patch: {kind: ReplicaSet, name: web, merge: {spec: {image: x}}}\n", "x.yaml:5:64: workload[1].patch.merge.spec.image: found the field spec.image, which a ReplicaSet does not have"},
		{"patch of an unknown field of a status", minimal + "  - patch: {kind: ReplicaSet, name: web, status: {replcas: 1}}\n", "x.yaml:5:60: workload[1].patch.status.replcas: found the field status.replcas, which a ReplicaSet does not have; did you mean replicas?"},
		{"status of an object without one", minimal + "  - create: {kind: ConfigMap, name: w, manifest: {}}\n  - patch: {kind: ConfigMap, name: w, status: {a: b}}\n", "x.yaml:6:47: workload[2].patch.status: found a ConfigMap, which has no status; expected a kind with a status"},
		{"patch with a wrong type", minimal + "  - patch: {kind: ReplicaSet, name: web, merge: {spec: {minReadySeconds: 5s}}}\n", "x.yaml:5:74: workload[1].patch.merge.spec.minReadySeconds: found \"5s\"; expected a whole number"},
		{"manifest with an unknown field", create("kind: ConfigMap, name: w, manifest: {date: {a: b}}"), "x.yaml:5:57: workload[1].create.manifest.date: found the field date, which a ConfigMap does not have; did you mean data?"},
		{"manifest with a number in data", create("kind: ConfigMap, name: w, manifest: {data: {a: 5}}"), "x.yaml:5:61: workload[1].create.manifest.data.a: found 5; expected a text in quotes"},
		{"patch of both", minimal + "  - patch: {kind: ReplicaSet, name: web, merge: {spec: {}}, status: {replicas: 1}}\n", "x.yaml:5:69: workload[1].patch.status: found the fields merge and status; expected one of them in a step"},
		{"patch of the status of a pod", minimal + "  - create: {kind: Pod, name: one}\n  - patch: {kind: Pod, name: one, status: {phase: Failed}}\n", "x.yaml:6:43: workload[2].patch.status: found a Pod; expected another kind, because only the kubelet writes the status of a pod"},
		{"patch of too many replicas", minimal + "  - patch: {kind: ReplicaSet, name: web, merge: {spec: {replicas: -1}}}\n", "x.yaml:5:67: workload[1].patch.merge.spec.replicas: found -1; expected a number from 0 to 20000"},
		{"condition of another kind", widget + "    await: {until: ready}\n", `x.yaml:6:20: workload[1].await.until: found "ready", which is no condition of a Widget; expected gone, quiet, condition=…, jsonpath=… or no jsonpath=…`},
		{"quiet of an object", widget + "  - await: {kind: Widget, name: w, until: quiet}\n",
			"x.yaml:6:19: workload[2].await.kind: found Widget; expected no kind, because quiet is not about an object\n" +
				`x.yaml:6:33: workload[2].await.name: found "w"; expected no name, because quiet is not about an object`},
		{"condition without a type", widget + "    await: {until: condition=}\n", `x.yaml:6:20: workload[1].await.until: found "condition="; expected condition=TYPE or condition=TYPE=STATUS`},
		{"condition with a colon", widget + "    await: {until: 'condition=Ready:True'}\n", `x.yaml:6:20: workload[1].await.until: found "condition=Ready:True"; expected condition=TYPE or condition=TYPE=STATUS`},
		{"kind of another group", create("apiVersion: v1, kind: StatefulSet, name: w, manifest: {}"),
			"x.yaml:5:26: workload[1].create.apiVersion: found v1 for kind StatefulSet; expected apps/v1, because API servers do not serve the kind in this version"},
		{"JSONPath without an end", widget + "    await: {until: 'jsonpath={.status'}\n", `x.yaml:6:20: workload[1].await.until: found "jsonpath={.status": the text is not a single JSONPath expression; expected an expression such as {.status.phase}`},
		{"JSONPath that is none", widget + "    await: {until: 'jsonpath={.status[}'}\n", `x.yaml:6:20: workload[1].await.until: found "jsonpath={.status[}": the text is not valid JSONPath (unterminated array); expected an expression such as {.status.phase}`},
		{"JSONPath with a space", widget + "    await: {until: 'jsonpath={.status.repl icas}=3'}\n", `x.yaml:6:20: workload[1].await.until: found "jsonpath={.status.repl icas}=3": the word icas follows a space; expected names of fields with a dot between them`},
		{"JSONPath with dots at the end", widget + "    await: {until: 'jsonpath={.spec..}=3'}\n", `x.yaml:6:20: workload[1].await.until: found "jsonpath={.spec..}=3": two dots at the end select no field; expected the name of a field after them`},
		{"JSONPath without its value", widget + "    await: {until: 'jsonpath={.status}='}\n", `x.yaml:6:20: workload[1].await.until: found "jsonpath={.status}="; expected a value after the equal sign`},
		{"unknown controller", minimal + "subject: {controllers: [replicaset]}\n", `x.yaml:5:25: subject.controllers[0]: found "replicaset"; expected ` + controllerNames + "; did you mean replicaset-controller?"},
		{"no controllers", minimal + "subject: {controllers: []}\n", "x.yaml:5:24: subject.controllers: found an empty list; expected at least one controller, or no field controllers for the default controllers"},
		{"a controller twice", minimal + "subject: {controllers: [endpoints-controller, endpoints-controller]}\n", `x.yaml:5:47: subject.controllers[1]: found controller "endpoints-controller" twice; expected each controller once`},
		{"state of a kind that is not observed", widget + "faults:\n  - pod-churn: {}\n    when: {state: {resource: gadgets.example.com}}\n",
			`x.yaml:8:30: faults[0].when.state.resource: found "gadgets.example.com"; expected deployments.apps, endpoints, pods, replicasets.apps, replicationcontrollers, services or widgets.example.com; did you mean widgets.example.com?`},
		{"state that only pods have", widget + "faults:\n  - pod-churn: {}\n    when: {state: {resource: widgets.example.com, is: ready}}\n",
			`x.yaml:8:55: faults[0].when.state.is: found "ready"; expected present or terminating`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(test.input))
			if err == nil || err.Error() != test.want {
				t.Errorf("error\n got %v\nwant %s\n%s", err, test.want, test.input)
			}
		})
	}
}

var controllerNames = nearest.List(kube.ControllerNames(), "or")

// TestTriggersOfGenericKinds checks that triggers may name the resources of the kinds that the
// workload creates from manifests.
func TestTriggersOfGenericKinds(t *testing.T) {
	for _, trigger := range []string{
		"request: {verb: create, resource: widgetry.example.com}",
		"event: {resource: widgetry.example.com, type: ADDED}",
		"state: {resource: widgetry.example.com, is: terminating}",
		"state: {resource: configmaps, is: present, atLeast: 2}",
	} {
		parse(t, customResource+"faults:\n  - pod-churn: {}\n    when: {"+trigger+"}\n")
	}
}

// TestParamsOfGenericKinds checks which resources and kinds the parameters of a fault may
// name.
func TestParamsOfGenericKinds(t *testing.T) {
	s := parse(t, customResource+`faults:
  - user-edit:
      steps:
        - create: {kind: Widget, name: three, manifest: {}}
        - delete: {kind: Widget, name: one}
  - user-edit: {steps: [{create: {kind: StatefulSet, name: x, manifest: {}}}]}
`)
	if got := s.Faults[0].Params.Resources(); !slices.Contains(got, "widgetry.example.com") || !slices.Contains(got, "pods") {
		t.Errorf("resources %v; want that of the custom resource too", got)
	}
	if got := (Params{}).Resources(); !slices.Equal(got, Resources) {
		t.Errorf("resources without a scenario %v; want those of the registry", got)
	}
	var edit struct {
		Steps []Step `yaml:"steps"`
	}
	params := s.Faults[0].Params
	if err := params.Decode(&edit); err != nil {
		t.Fatal(err)
	}
	if err := params.CheckSteps("steps", edit.Steps); err != nil {
		t.Error(err)
	}
	if got := edit.Steps[0].Operation.(*Create).APIVersion; got != "example.com/v1" {
		t.Errorf("apiVersion %q; want that of the workload", got)
	}
	quiet := []Step{{Await: &Await{Until: Quiet, Within: withinMax}}}
	if err := params.CheckSteps("steps", quiet); err == nil || !strings.Contains(err.Error(), "user-edit.steps[0].await.until: found quiet; expected another condition") {
		t.Errorf("error %v; want that a second user cannot await that the subject is quiet", err)
	}
	params = s.Faults[1].Params
	if err := params.Decode(&edit); err != nil {
		t.Fatal(err)
	}
	const want = `x.yaml:18:41: user-edit.steps[0].create.kind: found "StatefulSet"; expected ReplicaSet, ReplicationController, Deployment, Pod, Service, Endpoints, CustomResourceDefinition, Widget or ConfigMap`
	if err := params.CheckSteps("steps", edit.Steps); err == nil || err.Error() != want {
		t.Errorf("error\n got %v\nwant %s", err, want)
	}
}

// TestFaultOfDroppedKind checks a scenario with a shortened workload. No fault may name a kind
// of which the workload no longer creates an object.
func TestFaultOfDroppedKind(t *testing.T) {
	s := parse(t, customResource+"faults:\n  - watch-stall: {resource: widgetry.example.com}\n").Clone()
	s.Workload = s.Workload[:1]
	_, err := s.Marshal()
	if err == nil || !strings.HasSuffix(err.Error(), "faults[0].watch-stall.resource: found widgetry.example.com; expected a resource of a kind that the workload creates") {
		t.Errorf("error %v; want one about the resource", err)
	}
}

func TestFieldCondition(t *testing.T) {
	for until, want := range map[Until]FieldCondition{
		"condition=Established":                    {Type: "Established", Status: "True"},
		"condition=Ready=false":                    {Type: "Ready", Status: "false"},
		"jsonpath={.status.phase}=Running":         {JSONPath: "{.status.phase}", Value: "Running"},
		"no jsonpath={.status.phase}":              {JSONPath: "{.status.phase}", Absent: true},
		"no jsonpath={.status.phase}=Running":      {},
		"no jsonpath=jsonpath={.status.phase}":     {},
		"jsonpath={status.phase}":                  {JSONPath: "{.status.phase}"},
		"jsonpath=.status.replicas=3":              {JSONPath: "{.status.replicas}", Value: "3"},
		"jsonpath={.data.token}=d29ybGQ=":          {JSONPath: "{.data.token}", Value: "d29ybGQ="},
		"jsonpath=.data.token=YQ==":                {JSONPath: "{.data.token}", Value: "YQ=="},
		`jsonpath={.items[?(@.a=="b")].c}="d e"`:   {JSONPath: `{.items[?(@.a=="b")].c}`, Value: "d e"},
		`jsonpath={.metadata.labels.app\.kube/x}=`: {},
		"jsonpath={.status.replicas}==3":           {},
		"ready":                                    {},
	} {
		got, err := until.FieldCondition()
		if got != want || (err == nil) != (want != FieldCondition{}) {
			t.Errorf("%s: %+v, error %v; want %+v", until, got, err, want)
		}
	}
}

// TestFieldsCopy checks that the values in a copy have the Go types of an unstructured object.
func TestFieldsCopy(t *testing.T) {
	got := Fields{"spec": Fields{"replicas": 3, "ratio": float32(0.5), "ports": []any{int32(1)}, "labels": map[string]string{"a": "b"}}}.Copy()
	want := map[string]any{"spec": map[string]any{"replicas": int64(3), "ratio": 0.5, "ports": []any{int64(1)}, "labels": map[string]any{"a": "b"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s := parse(t, statefulSet)
	s.creates()[0].Manifest["spec"] = func() {}
	if _, err := s.Marshal(); err == nil || !strings.Contains(err.Error(), "expected fields that JSON can represent") {
		t.Errorf("error %v of a function in a manifest", err)
	}
}
