package operator

import (
	"strings"
	"testing"
)

// TestRefusedValues checks which values of built-in objects readManifests refuses.
func TestRefusedValues(t *testing.T) {
	pod := func(fields string) string {
		return manifestOf("v1", "Pod", "spec: {containers: [{name: a, image: i}], "+fields+"}")
	}
	service := func(spec string) string { return manifestOf("v1", "Service", "spec: "+spec) }
	budget := func(spec string) string { return manifestOf("policy/v1", "PodDisruptionBudget", "spec: "+spec) }
	network := func(port string) string {
		return manifestOf("networking.k8s.io/v1", "NetworkPolicy", "spec: {podSelector: {}, ingress: [{ports: ["+port+"]}]}")
	}
	items := func(path string) string {
		return pod("volumes: [{name: v, configMap: {name: x, items: [{key: k, path: " + path + "}]}}]")
	}
	strategy := func(fields string) string {
		return manifestOf("apps/v1", "Deployment", "spec: {selector: {matchLabels: {a: b}}, strategy: {rollingUpdate: "+fields+"}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: i}]}}}")
	}
	for _, test := range []struct{ name, manifest, want string }{
		{"file of a volume", items("a/b"), ""},
		{"file with dots", items("a..b"), ""},
		{"file outside of its volume", items("a/../../b"), `items[0].path: found "a/../../b"; expected a relative path inside the volume, without ..`},
		{"file in the root directory", items("/b"), `items[0].path: found "/b"; expected a relative path`},
		{"host path", pod("volumes: [{name: v, hostPath: {path: /a/../b}}]"), `hostPath.path: found "/a/../b"; expected a path without ..`},
		{"seccomp", pod("securityContext: {seccompProfile: {type: RuntimeDefault}}"), ""},
		{"seccomp type", pod("securityContext: {seccompProfile: {type: runtimeDefault}}"), `seccompProfile.type: found "runtimeDefault"; expected RuntimeDefault, Localhost or Unconfined; did you mean RuntimeDefault?`},
		{"seccomp without a profile", pod("securityContext: {seccompProfile: {type: Localhost}}"), "seccompProfile.localhostProfile: found nothing; expected the path of a profile"},
		{"spread", pod("topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]"), ""},
		{"spread without an action", pod("topologySpreadConstraints: [{maxSkew: 1, topologyKey: a}]"), "whenUnsatisfiable: found nothing; expected DoNotSchedule or ScheduleAnyway"},
		{"wrong action", pod("topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotschedule}]"), `whenUnsatisfiable: found "DoNotschedule"`},
		{"mode", pod("volumes: [{name: v, secret: {secretName: s, defaultMode: 0644}}]"), ""},
		{"large mode", pod("volumes: [{name: v, secret: {secretName: s, defaultMode: 644000}}]"), "secret.defaultMode: found 644000; expected an octal number with a leading 0, such as 0644, or at most 511, which is 0777"},
		{"toleration", pod("tolerations: [{operator: Exists}, {key: a, value: b}]"), ""},
		{"toleration with a value", pod("tolerations: [{key: a, operator: Exists, value: b}]"), `tolerations[0].value: found "b"; expected no value for the operator Exists`},
		{"toleration without a key", pod("tolerations: [{effect: NoSchedule}]"), "tolerations[0].key: found nothing; expected the key of a taint, or the operator Exists"},
		{"node without values", pod("affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}]}]}}}"), "matchExpressions[0].values: found nothing; expected at least one value for the operator In"},
		{"affinity without a key", pod("affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {}}]}}"), "topologyKey: found nothing; expected the label of nodes, such as kubernetes.io/hostname"},
		{"weight", pod("affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{podAffinityTerm: {topologyKey: a}}]}}"), "weight: found 0; expected 1 to 100"},
		{"empty hook", manifestOf("v1", "Pod", "spec: {containers: [{name: a, image: i, lifecycle: {preStop: {}}}]}"), "lifecycle.preStop: found no handler"},
		{"two successes", manifestOf("v1", "Pod", "spec: {containers: [{name: a, image: i, livenessProbe: {tcpSocket: {port: 80}, successThreshold: 2}}]}"), "livenessProbe.successThreshold: found 2; expected 1, or no such field"},
		{"privileges", manifestOf("v1", "Pod", "spec: {containers: [{name: a, image: i, securityContext: {privileged: true, allowPrivilegeEscalation: false}}]}"), "allowPrivilegeEscalation: found false; expected true or no such field"},
		{"headless", service("{clusterIP: None}"), ""},
		{"misspelled headless", service("{clusterIP: none, ports: [{port: 80}]}"), `spec.clusterIP: found "none"; expected None, the address of a Service, or no such field; did you mean None?`},
		{"node port", service("{type: NodePort, ports: [{port: 80, nodePort: 30000}]}"), ""},
		{"node port of a wrong type", service("{ports: [{port: 80, nodePort: 30000}]}"), "spec.ports[0].nodePort: found 30000; expected no such field, because only the types NodePort and LoadBalancer have it"},
		{"external name with a scheme", service("{type: ExternalName, externalName: 'https://a.com'}"), "spec.externalName: found"},
		{"budget", budget("{minAvailable: 50%, selector: {matchLabels: {a: b}}}"), ""},
		{"negative budget", budget("{maxUnavailable: -1}"), "spec.maxUnavailable: found -1; expected a number of at least 0"},
		{"number in quotes", budget("{maxUnavailable: '1'}"), `spec.maxUnavailable: found "1"; expected a number without quotes, or a percentage such as 25%`},
		{"large percentage", budget("{minAvailable: 120%}"), `spec.minAvailable: found "120%"; expected at most 100%`},
		{"large surge", strategy("{maxSurge: 200%}"), ""},
		{"surge in quotes", strategy("{maxSurge: '1'}"), `spec.strategy.rollingUpdate.maxSurge: found "1"; expected a number without quotes`},
		{"short deadline", manifestOf("apps/v1", "Deployment", "spec: {minReadySeconds: 10, progressDeadlineSeconds: 5, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: i}]}}}"), "spec.progressDeadlineSeconds: found 5; expected more than minReadySeconds, which is 10"},
		{"template in a name", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'a-{{.Index}}'}\n", "expected a name without an action of a template"},
		{"group core", "apiVersion: core/v1\nkind: ConfigMap\nmetadata: {name: a}\n", `ConfigMap a: apiVersion: found "core/v1"; expected v1`},
		{"custom kind of a group without a dot", "apiVersion: local/v1\nkind: Widget\nmetadata: {name: a}\n", ""},
		{"port twice", service("{ports: [{name: a, port: 80}, {name: b, port: 80}]}"), "spec.ports[1].port: found 80/TCP twice; expected each port once"},
		{"port of two protocols", service("{ports: [{name: a, port: 80}, {name: b, port: 80, protocol: UDP}]}"), ""},
		{"excluded addresses", manifestOf("networking.k8s.io/v1", "NetworkPolicy", "spec: {podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16, 11.0.0.0/16]}}]}]}"), `ipBlock.except[1]: found "11.0.0.0/16"; expected a smaller range of addresses inside 10.0.0.0/8`},
		{"incomplete owner", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, ownerReferences: [{kind: Pod, apiVersion: v1, name: a}]}\n", "metadata.ownerReferences[0].uid: found nothing; expected the apiVersion, kind, name and uid of the owner"},
		{"quota", manifestOf("v1", "ResourceQuota", "spec: {hard: {cpu: 1, pods: '-1'}}"), `spec.hard.pods: found "-1"; expected a quantity of at least 0`},
		{"range of ports", network("{port: 80, endPort: 90}"), ""},
		{"reversed range of ports", network("{port: 80, endPort: 8}"), "endPort: found 8; expected at least port, which is 80"},
		{"range from a name", network("{port: web, endPort: 80}"), "endPort: found 80; expected no such field, because port is not a number"},
		{"large ConfigMap", manifestOf("v1", "ConfigMap", "data: {a: "+strings.Repeat("x", 1<<20)+", b: x}"), "data: found 1048577 bytes; expected at most 1048576 bytes, which is 1 MiB"},
	} {
		t.Run(test.name, func(t *testing.T) { checkManifestError(t, test.manifest, test.want) })
	}
}

// TestExpressions checks which CEL expressions readManifests refuses.
func TestExpressions(t *testing.T) {
	webhook := func(condition string) string {
		return manifestOf("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration",
			"webhooks: [{name: a.b.c, clientConfig: {url: 'https://a'}, sideEffects: None, admissionReviewVersions: [v1], matchConditions: [{name: x, expression: \""+condition+"\"}]}]")
	}
	policy := func(spec string) string {
		return manifestOf("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "spec: {"+spec+"}")
	}
	for _, test := range []struct{ name, manifest, want string }{
		{"condition", webhook("!(request.resource.group == 'coordination.k8s.io' && request.resource.resource == 'leases')"), ""},
		{"authorizer", webhook("!authorizer.group('a.b').resource('c').check('d').allowed()"), ""},
		{"incomplete condition", webhook("object.a =="), `webhooks[0].matchConditions[0].expression: found "object.a =="; expected a CEL expression: line 1, column 12: Syntax error: the expression ends too early`},
		{"unknown variable", webhook("objct.a == 1"), "line 1, column 1: undeclared reference to 'objct'"},
		{"unknown function", webhook("object.a.beginsWith('x')"), "undeclared reference to 'beginsWith'"},
		{"text", webhook("'a'"), "expected a CEL expression: must evaluate to bool but got string"},
		{"empty condition", webhook(""), "expression: found nothing; expected a CEL expression"},
		{"params in a webhook", webhook("params.a == 1"), "undeclared reference to 'params'"},
		{"policy", policy("variables: [{name: size, expression: object.spec.replicas}], validations: [{expression: variables.size < 5, messageExpression: \"'a' + object.metadata.name\"}]"), ""},
		{"policy with params", policy("paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: params.data.a == object.metadata.name}]"), ""},
		{"policy without params", policy("validations: [{expression: params.data.a == object.metadata.name}]"), "spec.validations[0].expression: found \"params.data.a == object.metadata.name\"; expected a CEL expression: line 1, column 1: undeclared reference to 'params'"},
		{"unknown variable of a policy", policy("variables: [{name: size, expression: object.spec.replicas}], validations: [{expression: variables.siz < 5}]"), "undefined field 'siz'"},
		{"message that is a number", policy("validations: [{expression: 'true', messageExpression: '5'}]"), "spec.validations[0].messageExpression: found \"5\"; expected a CEL expression: must evaluate to string but got int"},
		{"policy without validations", policy("failurePolicy: Fail"), "spec.validations: found nothing; expected at least one expression, or auditAnnotations"},
	} {
		t.Run(test.name, func(t *testing.T) { checkManifestError(t, test.manifest, test.want) })
	}
}

// checkManifestError checks the error of readManifests about a manifest. The argument want is a part of it, or empty
// if the manifest is valid.
func checkManifestError(t *testing.T, manifest, want string) {
	t.Helper()
	_, err := readManifests("", write(t, t.TempDir(), "m.yaml", manifest))
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("error\n got %v\nwant %s", err, want)
	}
}

// TestWebhookRules checks errors and notes about the rules of webhooks.
func TestWebhookRules(t *testing.T) {
	for _, test := range []struct{ rule, want, note string }{
		{"apiGroups: [example.com], resources: [widgetry, widgetry/status]", "", ""},
		{"apiGroups: [example.com], resources: ['*']", "", ""},
		{"apiGroups: ['*'], resources: ['*/*']", "", ""},
		{"apiGroups: [''], resources: [pods, pods/exec, pods/binding]", "", ""},
		{"apiGroups: [other.com], resources: [widget]", "", ""},
		{"apiGroups: ['*'], resources: [pods, '*/*']", "resources: found [pods */*]; expected only */*, or a list without it", ""},
		{"apiGroups: [''], resources: ['*', pods]", `resources[1]: found "pods"; expected no further resource, because the list has *`, ""},
		{"apiGroups: [''], resources: ['pods/*', pods/status]", `resources[1]: found "pods/status"; expected no such subresource, because the list has pods/*`, ""},
		{"apiGroups: [apps, '*'], resources: ['*']", "apiGroups: found [apps *]; expected only *, or a list without *", ""},
		{"apiGroups: [''], resources: [pod]", "", `webhooks[0].rules[0].resources[0]: found "pod"; expected a resource of the apiGroups in lower case and plural; did you mean pods?; API servers accept this value, but the webhook gets no requests for it`},
		{"apiGroups: [example.com], apiVersions: [v2], resources: [widgetry]", "", "webhooks[0].rules[0].apiVersions: found [v2]; expected a version of the CustomResourceDefinitions: v1alpha1 or v1"},
		{"apiGroups: [example.com], resources: [widgets]", "", "webhooks[0].rules[0].resources: found [widgets]; expected a resource of the CustomResourceDefinitions with these apiGroups: widgetry"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			dir := t.TempDir()
			writeProgram(t, dir, "run")
			versions := "apiVersions: ['*'], "
			if strings.Contains(test.rule, "apiVersions") {
				versions = ""
			}
			write(t, dir, "m.yaml", widgets+"---\n"+manifestOf("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration",
				"webhooks: [{name: a.b.c, clientConfig: {url: 'https://a'}, sideEffects: None, admissionReviewVersions: [v1], rules: [{"+versions+"operations: ['*'], "+test.rule+"}]}]"))
			loaded, err := Load(t.Context(), write(t, dir, "subject.yaml", "subject: {exec: run, manifests: [m.yaml]}"))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error\n got %v\nwant %s", err, test.want)
			}
			if err != nil {
				return
			}
			if notes := strings.Join(loaded.Incomplete, "\n"); (notes == "") != (test.note == "") || !strings.Contains(notes, test.note) {
				t.Errorf("notes\n got %s\nwant %s", notes, test.note)
			}
		})
	}
}

// TestReferences checks the notes about references to objects that the manifests lack.
func TestReferences(t *testing.T) {
	const accounts = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: manager, namespace: system}\n---\n"
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: webhooks, namespace: system}\nspec: {ports: [{port: 443, targetPort: https}]}\n---\n"
	deployed := func(account, port string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: m, namespace: system}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {serviceAccountName: " + account + ", containers: [{name: m, image: i, ports: [{name: " + port + ", containerPort: 9443}]}]}}}\n---\n"
	}
	binding := func(subject string) string {
		return accounts + manifestOf("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "roleRef: {kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: ServiceAccount, "+subject+"}]")
	}
	webhook := func(service string) string {
		return manifestOf("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration",
			"webhooks: [{name: a.b.c, clientConfig: {service: {"+service+"}}, sideEffects: None, admissionReviewVersions: [v1]}]")
	}
	for _, test := range []struct{ name, manifests, want string }{
		{"account", accounts + deployed("manager", "https"), ""},
		{"no accounts", deployed("manager", "https"), ""},
		{"misspelled account", accounts + deployed("manger", "https"), `spec.template.spec.serviceAccountName: found "manger"; expected a ServiceAccount of subject.manifests; did you mean manager?`},
		{"bound account", binding("name: manager, namespace: system"), ""},
		{"other bound account", binding("name: prometheus, namespace: monitoring"), ""},
		{"misspelled bound account", binding("name: manger, namespace: system"), `subjects[0].name: found "manger"; expected a ServiceAccount of subject.manifests; did you mean manager?`},
		{"bound account in another namespace", binding("name: manager, namespace: default"), `subjects[0].namespace: found "default"; expected system, the namespace of the ServiceAccount manager`},
		{"webhook", service + webhook("name: webhooks, namespace: system"), ""},
		{"webhook elsewhere", service + webhook("name: other, namespace: system"), ""},
		{"misspelled Service", service + webhook("name: webhoks, namespace: system"), `clientConfig.service.name: found "webhoks"; expected a Service of subject.manifests; did you mean webhooks?`},
		{"Service in another namespace", service + webhook("name: webhooks, namespace: default"), `clientConfig.service.namespace: found "default"; expected system, the namespace of the Service webhooks`},
		{"other port", service + webhook("name: webhooks, namespace: system, port: 8443"), "clientConfig.service.port: found 8443; expected a port of the Service webhooks: 443"},
		{"port of the container", deployed("a", "https") + service + webhook("name: webhooks, namespace: system"), ""},
		{"another installation with this name", binding("name: manager, namespace: default}, {kind: ServiceAccount, name: manager, namespace: system"), ""},
		{"old version of an object that a run does not create", "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n", "apiVersion: found policy/v1beta1; expected policy/v1; a run does not create the object, but API servers do not serve the kind in this version"},
		{"version of a custom resource", widgets + "---\n{apiVersion: example.com/v2, kind: Widget, metadata: {name: a}}\n", `apiVersion: found "example.com/v2"; expected example.com/v1alpha1 or example.com/v1, as in the CustomResourceDefinition`},
		{"verb of another system", manifestOf("rbac.authorization.k8s.io/v1", "ClusterRole", "rules: [{apiGroups: [''], resources: [pods], verbs: [read]}]"), `rules[0].verbs[0]: found "read"; expected a verb such as get, list, watch, create, update, patch, delete or deletecollection; did you mean get?`},
		{"required field", strings.ReplaceAll(widgets, "{openAPIV3Schema: {type: object}}", "{openAPIV3Schema: {type: object, required: [spce], properties: {spec: {type: object}}}}"), `required[0]: found "spce"; expected a name in properties; did you mean spec?`},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			objects, err := readManifests("", write(t, dir, "m.yaml", test.manifests))
			if err != nil {
				t.Fatal(err)
			}
			sorted, err := sort(t.Context(), objects)
			if err != nil {
				t.Fatal(err)
			}
			if notes := strings.Join(sorted.incomplete, "\n"); (notes == "") != (test.want == "") || !strings.Contains(notes, test.want) {
				t.Errorf("notes\n got %s\nwant %s", notes, test.want)
			}
		})
	}
}
