package operator

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// manifestOf returns the manifest of an object that is named a.
func manifestOf(apiVersion, kind, rest string) string {
	return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: a}\n" + rest + "\n"
}

// podsOf returns the spec of a workload whose template has the given spec of pods.
func podsOf(spec string) string {
	return "spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: " + spec + "}}"
}

// TestBuiltinManifests checks which built-in objects readManifests refuses, with a path, what was found and what was
// expected. An empty error means that it accepts the object.
func TestBuiltinManifests(t *testing.T) {
	const container = "{name: m, image: i}"
	containerWith := func(fields string) string { return podsOf("{containers: [{name: m, image: i, " + fields + "}]}") }
	for _, test := range []struct{ kind, rest, want string }{
		{"ClusterRole", "rules: [{resources: [pods], verbs: [get]}]", "rules[0].apiGroups: found nothing; expected at least one group such as apps"},
		{"ClusterRole", "rules: [{apiGroups: [''], verbs: [get]}]", "rules[0].resources: found nothing; expected at least one resource such as pods"},
		{"Role", "rules: [{apiGroups: [''], resources: [pods]}]", "rules[0].verbs: found nothing; expected at least one verb"},
		{"Role", "rules: [{apiGroups: [policy], resources: [podsecuritypolicies], verbs: [use, deletecollection, '*']}]", ""},
		{"Role", "rules: [{apiGroups: ['', apps, extensions], resources: [deployments, pods/log, events], verbs: [get]}]", ""},
		{"Role", "rules: [{nonResourceURLs: [/metrics], verbs: [get]}]", "rules[0].nonResourceURLs: found URLs in a Role; expected a ClusterRole for them"},
		{"ClusterRole", "rules: [{nonResourceURLs: [/metrics], verbs: [get, watch]}]", ""},
		{"ClusterRoleBinding", "roleRef: {kind: Role, name: x}", `roleRef.kind: found "Role"; expected ClusterRole`},
		{"ClusterRoleBinding", "roleRef: {kind: ClusterRole}", "roleRef.name: found nothing; expected the name of a ClusterRole"},
		{"RoleBinding", "roleRef: {name: x}", "roleRef.kind: found nothing; expected ClusterRole or Role"},
		{"RoleBinding", "subjects: []", "roleRef: found nothing; expected the kind and the name of a role"},
		{"RoleBinding", "roleRef: {kind: Role, name: x, apiGroup: rbac.authorization.k8s.io/v1}", `roleRef.apiGroup: found "rbac.authorization.k8s.io/v1"; expected rbac.authorization.k8s.io`},
		{"RoleBinding", "roleRef: {kind: Role, name: x}\nsubjects: [{name: x}]", "subjects[0].kind: found nothing; expected ServiceAccount, User or Group"},
		{"RoleBinding", "roleRef: {kind: Role, name: x}\nsubjects: [{kind: ServiceAccount}]", "subjects[0].name: found nothing; expected the name of a ServiceAccount"},
		{"RoleBinding", "roleRef: {kind: Role, name: x}\nsubjects: [{kind: ServiceAccount, name: x}, {kind: Group, name: z, apiGroup: rbac.authorization.k8s.io}]", ""},
		{"Deployment", "spec: {selector: {matchLabels: {a: c}}, template: {metadata: {labels: {a: b}}, spec: {containers: [" + container + "]}}}", `spec.template.metadata.labels: found "a=b"; expected labels that spec.selector matches: a=c`},
		{"StatefulSet", "spec: {selector: {a: b}, template: {metadata: {labels: {a: b}}, spec: {containers: [" + container + "]}}}", "spec.selector: found an empty selector; expected labels of the template, such as {matchLabels: {app: web}} (unknown field a)"},
		{"StatefulSet", "spec: {volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}], " + strings.TrimPrefix(podsOf("{containers: [{name: m, image: i, volumeMounts: [{name: d, mountPath: /d}]}]}"), "spec: {"), ""},
		{"DaemonSet", podsOf("{restartPolicy: Never, containers: [" + container + "]}"), `spec.template.spec.restartPolicy: found "Never"; expected Always`},
		{"ReplicaSet", "spec: {template: {labels: {a: b}}}", "unknown field spec.template.labels; did you mean metadata.labels?"},
		{"ReplicationController", "spec: {selector: {a: c}, template: {metadata: {labels: {a: b}}, spec: {containers: [" + container + "]}}}", `spec.template.metadata.labels: found "a=b"`},
		{"ReplicationController", "spec: {template: {metadata: {labels: {a: b}}, spec: {containers: [" + container + "]}}}", ""},
		{"Deployment", "spec: {strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0%}}, " + strings.TrimPrefix(podsOf("{containers: ["+container+"]}"), "spec: {"), "spec.strategy.rollingUpdate: found 0 for maxSurge and maxUnavailable"},
		{"Deployment", "spec: {replicas: -1, " + strings.TrimPrefix(podsOf("{containers: ["+container+"]}"), "spec: {"), "spec.replicas: found -1; expected a number of at least 0"},
		{"Job", "spec: {template: {spec: {containers: [" + container + "]}}}", "spec.template.spec.restartPolicy: found nothing; expected Never or OnFailure"},
		{"Job", "spec: {template: {spec: {restartPolicy: Never, containers: [" + container + "]}}}", ""},
		{"PersistentVolumeClaim", "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1GB}}}", `spec.resources.requests.storage: found "1GB"; expected a quantity such as 500m, 2 or 1Gi`},
		{"PersistentVolumeClaim", "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10G}}}", ""},
		{"PersistentVolumeClaim", "spec: {resources: {requests: {storage: 1Gi}}}", "spec.accessModes: found nothing; expected at least one of ReadWriteOnce"},
		{"PersistentVolumeClaim", "spec: {accessModes: [readWriteOnce], resources: {requests: {storage: 1Gi}}}", `spec.accessModes[0]: found "readWriteOnce"; expected ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod; did you mean ReadWriteOnce?`},
		{"DaemonSet", containerWith("volumeMounts: [{name: v}]"), `volumeMounts[0].name: found "v"; expected the name of one of the volumes`},
		{"DaemonSet", podsOf("{volumes: [{name: v}], containers: [{name: m, image: i, volumeMounts: [{name: v}]}]}"), "volumeMounts[0].mountPath: found nothing; expected a path"},
		{"Deployment", podsOf("{containers: []}"), "spec.template.spec.containers: found no container; expected at least one"},
		{"Deployment", podsOf("{containers: [" + container + ", " + container + "]}"), `spec.template.spec.containers[1].name: found "m" twice; expected each name once`},
		{"Deployment", podsOf("{containers: [{name: M, image: i}]}"), `spec.template.spec.containers[0].name: found "M"; expected a DNS label`},
		{"Deployment", containerWith("ports: [{containerPort: 70000}]"), "ports[0].containerPort: found 70000; expected the number of a port: 1 to 65535"},
		{"Deployment", containerWith("ports: [{name: metrics_port, containerPort: 80}]"), `ports[0].name: found "metrics_port"; expected the name of a port`},
		{"Deployment", containerWith("ports: [{name: dns, containerPort: 53, protocol: udp}]"), `ports[0].protocol: found "udp"; expected TCP, UDP or SCTP; did you mean UDP?`},
		{"Deployment", containerWith("resources: {limits: {memory: 64Mb}}"), `resources.limits.memory: found "64Mb"; expected a quantity such as 500m, 2 or 1Gi`},
		{"Deployment", containerWith("resources: {limits: {memroy: 64Mi}}"), `resources.limits.memroy: found "memroy"; expected cpu, memory or ephemeral-storage, or a resource such as example.com/gpu; did you mean memory?`},
		{"Deployment", containerWith("resources: {limits: {cpu: 1, example.com/gpu: 1}, requests: {cpu: 500m}}"), ""},
		{"Deployment", containerWith("resources: {limits: {cpu: 1}, requests: {cpu: 2}}"), `resources.requests.cpu: found "2"; expected at most the limit 1`},
		{"Deployment", containerWith("livenessProbe: {path: /healthz}"), "containers[0].livenessProbe: found no handler; expected one of exec, grpc, httpGet and tcpSocket (unknown field path; did you mean httpGet.path?"},
		{"Deployment", containerWith("livenessProbe: {httpGet: {path: /, port: '8081'}}"), `livenessProbe.httpGet.port: found "8081"; expected a number without quotes, or the name of a port`},
		{"Deployment", containerWith("livenessProbe: {httpGet: {path: /, port: health}}"), ""},
		{"Deployment", containerWith("readinessProbe: {}"), "readinessProbe: found no handler; expected one of exec, grpc, httpGet and tcpSocket"},
		{"Deployment", containerWith("envFrom: [{name: x}]"), "envFrom[0]: found no source; expected configMapRef or secretRef (unknown field name; did you mean configMapRef.name?"},
		{"Deployment", containerWith("envFrom: [{prefix: X}]"), "envFrom[0]: found no source; expected configMapRef or secretRef"},
		{"Deployment", podsOf("{tolerations: [{operator: equals}], containers: [" + container + "]}"), `tolerations[0].operator: found "equals"; expected Exists, Equal, Lt or Gt; did you mean Equal?`},
		{"Service", "spec: {selector: {a: b}}", "spec.ports: found nothing; expected at least one port, or clusterIP: None"},
		{"Service", "spec: {clusterIP: None}", ""},
		{"Service", "spec: {ports: [{port: 80}, {port: 81}]}", "spec.ports[0].name: found nothing; expected a name, because the Service has several ports"},
		{"Service", "spec: {ports: [{port: 80, targetPort: '8080'}]}", `spec.ports[0].targetPort: found "8080"; expected a number without quotes, or the name of a port`},
		{"Service", "spec: {ports: [{port: 80, targetPort: http}]}", ""},
		{"Service", "spec: {type: Loadbalancer, ports: [{port: 80}]}", `spec.type: found "Loadbalancer"; expected ClusterIP, NodePort, LoadBalancer or ExternalName; did you mean LoadBalancer?`},
		{"Ingress", "spec: {rules: [{http: {paths: [{path: /, backend: {service: {name: a, port: {number: 80}}}}]}}]}", "spec.rules[0].http.paths[0].pathType: found nothing; expected Exact, Prefix or ImplementationSpecific"},
		{"Ingress", "spec: {rules: [{host: 'http://a.b'}]}", `spec.rules[0].host: found "http://a.b"; expected a domain`},
		{"Ingress", "spec: {defaultBackend: {serviceName: a}}", "spec.defaultBackend: found nothing; expected service or resource (unknown field serviceName)"},
		{"NetworkPolicy", "spec: {podSelector: {matchExpressions: [{key: a, operator: In, values: [b, c d]}]}}", `spec.podSelector.matchExpressions[0].values[1]: found "c d"; expected the value of a label`},
		{"NetworkPolicy", "spec: {podSelector: {matchExpressions: [{key: a, operator: in, values: [b]}]}}", `spec.podSelector.matchExpressions[0].operator: found "in"; expected In, NotIn, Exists or DoesNotExist; did you mean In?`},
		{"NetworkPolicy", "spec: {podSelector: {matchLabels: {a: b}, matchExpressions: [{key: a/b, operator: Exists}, {key: c, operator: NotIn, values: ['']}]}}", ""},
		{"NetworkPolicy", "spec: {podSelector: {}, policyTypes: [ingress]}", `spec.policyTypes[0]: found "ingress"; expected Ingress or Egress; did you mean Ingress?`},
		{"NetworkPolicy", "spec: {podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0}}]}]}", `spec.ingress[0].from[0].ipBlock.cidr: found "10.0.0.0"; expected a range of addresses`},
		{"ConfigMap", "data: {a/b: x}", `data: found "a/b"; expected a key`},
		{"ConfigMap", "data: {a: true}", "data.a: found true; expected a text in quotes"},
		{"ConfigMap", "data: {a: x}\nbinaryData: {a: AQ==}", `binaryData.a: found the key "a" in data, too`},
		{"Secret", "type: kubernetes.io/tls", `data["tls.crt"]: found nothing; expected this key in a Secret of the type kubernetes.io/tls`},
		{"Secret", "type: kubernetes.io/tls\nstringData: {tls.crt: x, tls.key: x}", ""},
		{"PodDisruptionBudget", "spec: {minAvailable: 1, maxUnavailable: 1}", "spec: found minAvailable and maxUnavailable; expected one of them"},
		{"HorizontalPodAutoscaler", "spec: {minReplicas: 3, maxReplicas: 1}", "spec.minReplicas: found 3; expected at most maxReplicas, which is 1"},
		{"PriorityClass", "value: 2000000000", "value: found 2000000000; expected at most 1000000000"},
		{"PriorityClass", "value: -5", ""},
		{"ValidatingWebhookConfiguration", "webhooks: [{name: a.b.c, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: 'https://a'}, rules: [{operations: [CREATE], apiGroups: [''], resources: [pods]}]}]", "webhooks[0].rules[0].apiVersions: found nothing; expected a list of versions such as v1"},
		{"MutatingWebhookConfiguration", "webhooks: [{name: a.b.c, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: 'https://a'}, timeoutSeconds: 60}]", "webhooks[0].timeoutSeconds: found 60; expected 1 to 30"},
		{"MutatingWebhookConfiguration", "webhooks: [{name: a.b.c, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: 'https://a'}}, {name: a.b.c, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: 'https://a'}}]", `webhooks[1].name: found "a.b.c" twice; expected each name once`},
		{"ValidatingWebhookConfiguration", "webhooks: [{name: a.b.c, sideEffects: None, admissionReviewVersions: [v2], clientConfig: {url: 'https://a'}}]", `webhooks[0].admissionReviewVersions: found ["v2"]; expected a list with v1`},
		{"ValidatingWebhookConfiguration", "webhooks: [{name: a.b.c, sideEffects: None, admissionReviewVersions: [v2, v1beta1], clientConfig: {url: 'https://a'}}]", ""},
		{"ValidatingWebhookConfiguration", "webhooks: [{name: a.b.c, clientConfig: {url: 'https://a', service: {name: a, namespace: b}}}]", "webhooks[0].clientConfig: found service and url; expected one of them"},
		{"MutatingWebhookConfiguration", "webhooks: [{name: a.b.c, matchPolicy: exact}]", `webhooks[0].matchPolicy: found "exact"; expected Exact or Equivalent; did you mean Exact?`},
	} {
		version := map[string]string{
			"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "ReplicaSet": "apps/v1", "Job": "batch/v1",
			"PodDisruptionBudget": "policy/v1", "HorizontalPodAutoscaler": "autoscaling/v2", "PriorityClass": "scheduling.k8s.io/v1",
			"ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration": "admissionregistration.k8s.io/v1",
			"Ingress": "networking.k8s.io/v1", "NetworkPolicy": "networking.k8s.io/v1",
		}[test.kind]
		if strings.Contains(test.kind, "Role") {
			version = "rbac.authorization.k8s.io/v1"
		} else if version == "" {
			version = "v1"
		}
		_, err := readManifests(t.TempDir(), write(t, t.TempDir(), "m.yaml", manifestOf(version, test.kind, test.rest)))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s with %s: error\n got %v\nwant %s", test.kind, test.rest, err, test.want)
		}
	}
}

// TestSchedule checks which schedules of a CronJob are valid.
func TestSchedule(t *testing.T) {
	for _, test := range []struct{ schedule, want string }{
		{"* * * * *", ""}, {"*/5 0-6,12 1 JAN,2 MON-FRI", ""}, {"@hourly", ""}, {"@every 5m", ""}, {"0 0 ? * *", ""},
		{"* * * *", "five fields for minute"}, {"* * * * * *", "five fields"}, {"", "five fields"},
		{"60 * * * *", "numbers from 0 to 59, or *, as the minute"}, {"* * * * 7", "numbers from 0 to 6"},
		{"5-1 * * * *", "numbers from 0"}, {"*/0 * * * *", "numbers from 0"}, {"+1 * * * *", "numbers from 0"},
		{"@dayly", "did you mean @daily?"}, {"@every 5", "a duration after @every"}, {"TZ=UTC * * * * *", "the time zone in the field timeZone"},
	} {
		err := checkSchedule(test.schedule)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: got %v, want %s", test.schedule, err, test.want)
		}
	}
}

// TestIncomplete checks the mistakes of manifests that do not change a run.
func TestIncomplete(t *testing.T) {
	role := func(rule string) string {
		return manifestOf("rbac.authorization.k8s.io/v1", "ClusterRole", "rules: ["+rule+"]")
	}
	for _, test := range []struct{ manifest, want string }{
		{manifestOf("apps/v1", "Deployment", podsOf("{containers: [{name: m}]}")), "spec.template.spec.containers[0].image: found nothing; expected the image of the container; a run does not need"},
		{manifestOf("apps/v1", "Deployment", "spec: {template: {metadata: {labels: {a: b}}, spec: {containers: [{name: m, image: i}]}}}"), "spec.selector: found nothing; expected labels of the template such as {matchLabels: {a: b}}"},
		{manifestOf("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "roleRef: {kind: ClusterRole, name: x}\nsubjects: [{kind: ServiceAccount, name: x}]"), "subjects[0].namespace: found nothing; expected the namespace of the ServiceAccount x"},
		{manifestOf("networking.k8s.io/v1", "NetworkPolicy", "spec: {podSelector: {zone: b}}"), "unknown field spec.podSelector.zone; API servers of the version of this program ignore the field"},
		{manifestOf("apps/v1", "Deployment", podsOf("{containers: [{name: m, image: i}]}")), ""},
		{role("{apiGroups: [''], resources: [pods], verbs: [get, wacth]}"), `rules[0].verbs[1]: found "wacth"; expected a verb such as get, list, watch, create, update, patch, delete or deletecollection; did you mean watch?`},
		{role("{apiGroups: [''], resources: [pods], verbs: [lists]}"), "did you mean list?"},
		{role("{apiGroups: [apps], resources: [deployment], verbs: [get]}"), `rules[0].resources[0]: found "deployment"; expected a resource of the apiGroups in lower case and plural; did you mean deployments?`},
		{role("{apiGroups: [''], resources: [deployments], verbs: [get]}"), `rules[0].resources[0]: found "deployments"; expected a resource of the apiGroups; the group of deployments is "apps"`},
		{role("{apiGroups: [apps/v1], resources: [deployments], verbs: [get]}"), `rules[0].apiGroups[0]: found "apps/v1"; expected a group without the version v1: "apps"`},
		{role("{apiGroups: [core], resources: [pods], verbs: [get]}"), `rules[0].apiGroups[0]: found "core"; expected "", which is the group of kinds such as Pod`},
		{role("{apiGroups: [''], resources: [pods, deployments], verbs: [get]}"), `rules[0].resources[1]: found "deployments"`},
		{role("{apiGroups: [batch], resources: [cronjob, cronjobs, jobs], verbs: [get]}"), "did you mean cronjobs?; API servers accept this value, but it permits nothing"},
		{role(`{apiGroups: [example.com], resources: [widgets], verbs: ["get,list"]}`), "found \"get,list\"; expected one verb in each item"},
		{role("{apiGroups: [example.com], resources: [widgets.example.com], verbs: [get]}"), "expected widgets, with the group example.com in apiGroups"},
		{role("{apiGroups: [example.com], resources: [widgets/stauts], verbs: [get]}"), "such as widgets/status; did you mean status?"},
		{role("{apiGroups: [widgets], resources: [widgets], verbs: [get]}"), `rules[0].apiGroups[0]: found "widgets"; expected a group such as apps or example.com`},
		{role("{apiGroups: [''], resources: [pods], verbs: [GET]}"), "did you mean get?"},
		{role("{apiGroups: [policy], resources: [podsecuritypolicies], verbs: [use]}"), ""},
		{role("{nonResourceURLs: [metrics], verbs: [get]}"), `rules[0].nonResourceURLs[0]: found "metrics"; expected a path that begins with /, or *`},
		{role("{nonResourceURLs: [/metrics, '*'], verbs: [get]}"), ""},
		{manifestOf("apps/v1", "DaemonSet", podsOf("{nodeSelectors: {a: b}, containers: [{name: m, image: i}]}")), "unknown field spec.template.spec.nodeSelectors; did you mean nodeSelector?; API servers"},
		{manifestOf("v1", "Service", "spec: {Type: ClusterIP, ports: [{port: 80}]}"), "unknown field spec.Type; did you mean type?; API servers"},
		{manifestOf("apps/v1", "DaemonSet", podsOf(`{terminationGracePeriodSeconds: -1, volumes: [{name: v}], containers: [{name: m, image: i, volumeMounts: [{name: v, mountPath: 'C:\csi'}]}]}`)), ""},
	} {
		objects, err := readManifests(t.TempDir(), write(t, t.TempDir(), "m.yaml", test.manifest))
		if err != nil {
			t.Fatal(err)
		}
		err = incomplete(objects[0].Unstructured)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s\n got %v\nwant %s", test.manifest, err, test.want)
		}
	}
}

// TestUnmatchedTargets checks the notes about patches of a kustomization that apply to no object.
func TestUnmatchedTargets(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "base/kustomization.yaml", "resources: [widgets.yaml]\npatches: [{target: {kind: CustomResourceDefinitin}, patch: '- {op: remove, path: /spec}'}]\n")
	write(t, dir, "base/widgets.yaml", widgets)
	const remove = "patch: '- {op: add, path: /metadata/labels, value: {a: b}}'"
	write(t, dir, "kustomization.yaml", "resources: [base]\npatches:\n- {target: {kind: CustomResourceDefinition, name: 'widgetry.*'}, "+remove+"}\n- {target: {kind: CustomResourceDefinition, name: wdgetry.example.com}, "+remove+"}\n- {target: {kind: Pod, labelSelector: a=b}, "+remove+"}\npatchesJson6902:\n- {target: {version: v1, kind: CustomResourceDefinition, name: widgetries}, "+remove+"}\n")
	objects, err := readManifests(dir, dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		dir + `/kustomization.yaml: found patchesJson6902, which kustomize deprecates; expected the fields that replace them: run "kustomize edit fix" in the directory`,
		dir + `/kustomization.yaml: patches[1].target.name: found "wdgetry.example.com", so that kustomize ignores the patch; expected the name of a resource; did you mean widgetry.example.com?`,
		dir + `/kustomization.yaml: patchesJson6902[0].target.name: found "widgetries", so that kustomize ignores the patch; expected the name of a resource`,
		dir + `/base/kustomization.yaml: patches[0].target.kind: found "CustomResourceDefinitin", so that kustomize ignores the patch; expected the kind of a resource; did you mean CustomResourceDefinition?`,
	}
	if !slices.Equal(objects[0].notes, want) {
		t.Errorf("notes\n got %q\nwant %q", objects[0].notes, want)
	}
}

// TestAnnotations checks which annotations readManifests refuses.
func TestAnnotations(t *testing.T) {
	for _, test := range []struct{ key, value, want string }{
		{"example.com/A", "any text", ""},
		{"a/b/c", "", `metadata.annotations: found "a/b/c"; expected a key such as example.com/description`},
		{"a", strings.Repeat("x", 300_000), "metadata.annotations: found more than 262144 bytes; expected at most 262144"},
	} {
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {" + test.key + ": '" + test.value + "'}}\n"
		_, err := readManifests("", write(t, t.TempDir(), "m.yaml", text))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.key, err, test.want)
		}
	}
}

// TestLargeManifest checks that readManifests reads a file with many documents in seconds.
func TestLargeManifest(t *testing.T) {
	const documents = 1500
	text := manifestOf("v1", "ConfigMap", "data: {text: "+strings.Repeat("x", 1500)+"}") + "---\n"
	path := write(t, t.TempDir(), "m.yaml", strings.Repeat(text, documents))
	start := time.Now()
	objects, err := readManifests("", path)
	if err != nil || len(objects) != documents {
		t.Fatalf("found %d objects, error %v; want %d", len(objects), err, documents)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("readManifests took %s", took)
	}
}
