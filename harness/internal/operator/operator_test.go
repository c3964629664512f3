package operator

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

const widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgetry.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgetry}
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1]}}
  versions:
    - {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
    - name: v1
      schema: {openAPIV3Schema: {type: object}}
      served: true
      storage: true
`

const roles = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager}
rules:
  - {apiGroups: [example.com], resources: [widgetry, widgetry/finalizers], verbs: [get, list, watch]}
  - {apiGroups: [example.com], resources: [widgetry/status], verbs: [update]}
  - {apiGroups: ["", apps], resources: [pods, secrets, nodes, events, statefulsets], verbs: [create, delete]}
  - {apiGroups: [""], resources: [configmaps, pods/exec], verbs: [get]}
  - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: widget-editor} # no binding names this role
rules:
  - {apiGroups: [""], resources: [services], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manager}
subjects: [{kind: ServiceAccount, name: manager, namespace: system}]
`

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: widgets-system}
spec:
  selector: {matchLabels: {app: manager}}
  template:
    metadata: {labels: {app: manager}}
    spec:
      containers:
        - name: kube-rbac-proxy
          image: proxy
          args: [--upstream=http://127.0.0.1:8080/]
        - name: manager
          image: manager
          command: [/manager, --zap-devel]
          args: ["--metrics-bind-address=:8443", --leader-elect, "--watch=$(WATCH)"]
          env:
            - {name: WATCH, value: all}
            - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
            - {name: TOKEN, valueFrom: {secretKeyRef: {name: token, key: token}}}
---
apiVersion: v1
kind: Service
metadata: {name: webhook}
spec: {ports: [{port: 443}]}
`

// TestLoad checks the result of Load for a subject file with manifests.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, dir, "manager")
	write(t, dir, "config/crd/widgets.yaml", strings.ReplaceAll(widgets, "{type: object}", "{type: object, properties: {size: {type: integer, minimum: 1}}}"))
	write(t, dir, "config/crd/kustomization.yaml", "resources: [widgets.yaml]\n") // decodes numbers in its own way
	write(t, dir, "config/crd/notes.txt", "no manifest")
	write(t, dir, "config/rbac/roles.yaml", roles)
	write(t, dir, "config/default/kustomization.yaml", "namePrefix: my-\nresources: [deployment.yaml]\n")
	write(t, dir, "config/default/deployment.yaml", deployment)
	path := write(t, dir, "subject.yaml", `subject:
  exec: ./manager
  env: {WATCH: one}
  manifests: [config/crd, config/rbac/roles.yaml, config/default]
`)
	loaded, err := Load(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	definition := loaded.Target.Definition()
	var installed []string
	for _, o := range definition.Objects {
		installed = append(installed, o.GetKind()+" "+o.GetName())
	}
	for _, test := range []struct {
		what      string
		want, got any
	}{
		{"target", path, loaded.Target.String()},
		{"executable", filepath.Join(dir, "manager"), definition.Executable},
		{"namespace", "widgets-system", definition.Namespace},
		{"arguments", []string{"--zap-devel", "--metrics-bind-address={{.Address}}:8443", "--leader-elect", "--watch=one"}, definition.Args},
		{"environment", map[string]string{"WATCH": "one", "POD_NAMESPACE": "{{.Namespace}}"}, definition.Env},
		{"installed", []string{"CustomResourceDefinition widgetry.example.com", "ClusterRole manager", "ClusterRole widget-editor", "ClusterRoleBinding manager"}, installed},
		{"ignored", []string{"Service"}, loaded.Ignored},
		{"webhooks", true, definition.HasWebhooks()}, // the conversion webhook
		{"kinds", []scenario.ExternalKind{
			{APIVersion: "example.com/v1", Kind: "Widget", Plural: "widgetry"}, {APIVersion: "v1", Kind: "Secret", Plural: "secrets"},
		}, loaded.Scenario.Kinds},
		{"controllers", []scenario.ExternalController{
			{Name: "widget", Kind: "Widget", Watches: []string{"Widget"}, Writes: []string{"Pod", "Secret", "StatefulSet", "Widget"}},
		}, loaded.Scenario.Controllers},
		{"all permissions", false, definition.GrantsAll()},
	} {
		if diff := cmp.Diff(test.want, test.got, cmpopts.IgnoreUnexported(scenario.ExternalKind{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.what, diff)
		}
	}
}

// TestLoadNamesake checks that a custom kind with the name of a built-in kind gets no controller. The
// controller would seem to reconcile the built-in kind.
func TestLoadNamesake(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, dir, "manager")
	write(t, dir, "crds.yaml", widgets+"---\n"+strings.NewReplacer("Widget", "DaemonSet", "widgetry", "daemonsets").Replace(widgets))
	loaded, err := Load(t.Context(), write(t, dir, "subject.yaml", "subject: {exec: manager, manifests: [crds.yaml]}"))
	if err != nil {
		t.Fatal(err)
	}
	if all := loaded.Scenario.Controllers; len(all) != 1 || all[0].Kind != "Widget" {
		t.Errorf("controllers %v; want one, of the kind Widget", all)
	}
}

// TestLoadAggregatedRoles checks that the program may write what the roles permit that a bound role
// aggregates.
func TestLoadAggregatedRoles(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, dir, "manager")
	write(t, dir, "crd.yaml", widgets)
	write(t, dir, "roles.yaml", `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: all}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {aggregate: "true"}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager, labels: {aggregate: "true"}}
rules: [{apiGroups: [extensions, apps, networking.k8s.io], resources: [statefulsets, ingresses], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: other, labels: {aggregate: "false"}}
rules: [{apiGroups: [""], resources: [services], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all}
`)
	loaded, err := Load(t.Context(), write(t, dir, "subject.yaml", "subject: {exec: manager, manifests: [crd.yaml, roles.yaml]}"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Ingress", "StatefulSet", "Widget"}, loaded.Scenario.Controllers[0].Writes); diff != "" {
		t.Errorf("kinds that the controller writes (-want +got):\n%s", diff)
	}
}

// TestLoadWebhooks checks the port and the certificate of the webhooks in manifests.
func TestLoadWebhooks(t *testing.T) {
	const manager = `apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: widgets-system}
spec:
  selector: {matchLabels: {app: manager}}
  template:
    metadata: {labels: {app: manager}}
    spec:
      containers:
        - name: manager
          image: manager
          args: [--webhook-cert-path=/tmp/k8s-webhook-server/serving-certs, --webhook-port=9443, --token=/token/t]
          env: [{name: CERT, value: /tmp/k8s-webhook-server/serving-certs/tls.crt}]
          ports: [{name: webhook-server, containerPort: 10250}]
          volumeMounts:
            - {name: token, mountPath: /token}
            - {name: certificate, mountPath: /tmp/k8s-webhook-server/serving-certs}
      volumes:
        - {name: token, secret: {secretName: token}}
        - {name: certificate, secret: {secretName: webhook-server-cert}}
---
apiVersion: v1
kind: Service
metadata: {name: webhook, namespace: widgets-system}
spec: {ports: [{port: 443, targetPort: webhook-server}]}
---
apiVersion: v1
kind: Service
metadata: {name: metrics, namespace: widgets-system}
spec: {clusterIP: None}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: default}
webhooks: [{name: a.b.c, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {name: webhook, namespace: widgets-system}}}]
`
	const secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: webhook-server-cert, namespace: widgets-system}\n"
	for _, test := range []struct {
		name, manifests string
		secret          types.NamespacedName
	}{
		{"gauntlet creates the certificate", manager, types.NamespacedName{}},
		{"the program creates the certificate", manager + secret, types.NamespacedName{Namespace: "widgets-system", Name: "webhook-server-cert"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			writeProgram(t, dir, "manager")
			write(t, dir, "manager.yaml", test.manifests)
			write(t, dir, "crd.yaml", widgets)
			loaded, err := Load(t.Context(), write(t, dir, "subject.yaml", "subject: {exec: manager, manifests: [manager.yaml, crd.yaml]}"))
			if err != nil {
				t.Fatal(err)
			}
			d := loaded.Target.Definition()
			for _, value := range []struct {
				what      string
				want, got any
			}{
				{"arguments", []string{"--webhook-cert-path={{.Certificates}}", "--webhook-port={{.WebhookPort}}", "--token=/token/t"}, d.Args},
				{"environment", map[string]string{"CERT": "{{.Certificates}}/tls.crt"}, d.Env},
				{"port", 10250, d.WebhookPort},
				{"Secret", test.secret, d.CertificateSecret},
				{"ignored", []string{"Service"}, loaded.Ignored}, // the Service of the metrics
			} {
				if diff := cmp.Diff(value.want, value.got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", value.what, diff)
				}
			}
		})
	}
}

// TestLoadVolumes checks the variables of the program from ConfigMaps and Secrets. It also checks
// which files the program finds at the paths where its container has volumes.
func TestLoadVolumes(t *testing.T) {
	existing := t.TempDir()
	dir := t.TempDir()
	writeProgram(t, dir, "manager")
	write(t, dir, "crd.yaml", widgets)
	write(t, dir, "manager.yaml", `apiVersion: v1
kind: ConfigMap
metadata: {name: config, namespace: others}
data: {other: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: config, namespace: widgets-system}
data:
  config.yaml: |
    metrics:
      bindAddress: :8080
    webhook: {port: 9443}
    text: "{{ .Name }}"
  other: "1"
  metrics: ":8080"
binaryData: {binary: AQI=}
---
apiVersion: v1
kind: Secret
metadata: {name: token}
data: {token: YWJj}
stringData: {user: me}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: widgets-system}
spec:
  selector: {matchLabels: {app: manager}}
  template:
    metadata: {labels: {app: manager}}
    spec:
      containers:
        - name: manager
          image: manager
          volumeMounts:
            - {name: config, mountPath: /config.yaml, subPath: config.yaml}
            - {name: config, mountPath: /etc/all/}
            - {name: some, mountPath: /etc/some}
            - {name: token, mountPath: /token}
            - {name: certificate, mountPath: /certs}
            - {name: certificate, mountPath: /etc/tls.crt, subPath: tls.crt}
            - {name: client, mountPath: /client-certs}
            - {name: data, mountPath: /gauntlet-data}
            - {name: temporary, mountPath: `+existing+`}
            - {name: missing, mountPath: /missing}
            - {name: optional, mountPath: /optional}
          envFrom:
            - {prefix: ALL_, secretRef: {name: token}}
            - {configMapRef: {name: elsewhere}}
            - {configMapRef: {name: elsewhere, optional: true}}
          args: ["--other=$(OTHER)", "--metrics-bind-address=$(METRICS)", --kubeconfig, /root/.kube/config, "--master=https://10.0.0.1"]
          env:
            - {name: KUBECONFIG, value: /root/.kube/config}
            - {name: OTHER, valueFrom: {configMapKeyRef: {name: config, key: other}}}
            - {name: USER_NAME, valueFrom: {secretKeyRef: {name: token, key: user}}}
            - {name: ABSENT, valueFrom: {secretKeyRef: {name: elsewhere, key: a}}}
            - {name: OPTIONAL, valueFrom: {secretKeyRef: {name: elsewhere, key: a, optional: true}}}
            - {name: METRICS, valueFrom: {configMapKeyRef: {name: config, key: metrics}}}
            - {name: LAST, valueFrom: {configMapKeyRef: {name: config, key: other}}}
            - {name: LAST, value: last}
            - {name: SET, valueFrom: {configMapKeyRef: {name: config, key: absent}}}
            - {name: LEVEL, valueFrom: {configMapKeyRef: {name: config, key: metrcs}}}
      volumes:
        - {name: optional, secret: {secretName: elsewhere, optional: true}}
        - {name: config, configMap: {name: config}}
        - {name: some, configMap: {name: config, items: [{key: other, path: renamed}]}}
        - {name: token, secret: {secretName: token}}
        - {name: certificate, secret: {secretName: serving}}
        - {name: client, secret: {secretName: token}}
        - {name: data, emptyDir: {}}
        - {name: temporary, emptyDir: {}}
        - {name: missing, configMap: {name: cnfig}}
`)
	loaded, err := Load(t.Context(), write(t, dir, "subject.yaml", "subject: {exec: manager, manifests: [manager.yaml, crd.yaml], files: {user: you}, env: {SET: here}}"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"variables of envFrom (ConfigMap elsewhere is not in the manifests)", "variable ABSENT (Secret elsewhere is not in the manifests)", "variable LEVEL (ConfigMap config has no key metrcs; did you mean metrics?)", "volume certificate at /etc/tls.crt (Secret serving is not in the manifests)", "volume missing at /missing (ConfigMap cnfig is not in the manifests; did you mean config?)"}; !slices.Equal(loaded.Missing, want) {
		t.Errorf("missing %q, want %q", loaded.Missing, want)
	}
	definition := loaded.Target.Definition()
	if want := map[string]string{"OTHER": "1", "USER_NAME": "me", "SET": "here", "METRICS": ":8080", "LAST": "last", "ALL_token": "abc", "ALL_user": "me"}; !maps.Equal(definition.Env, want) || !slices.Equal(definition.Args, []string{"--other=1", "--metrics-bind-address={{.Address}}:8080", "--kubeconfig={{.Kubeconfig}}"}) {
		t.Errorf("variables %q and arguments %q, want %q, --other=1 and --kubeconfig", definition.Env, definition.Args, want)
	}
	config := "metrics:\n  bindAddress: \"{{.Address}}:8080\"\nwebhook: {port: 9443}\ntext: \"{{\"{{\"}} .Name }}\"\n"
	all := map[string]string{"config.yaml": config, "other": "1", "metrics": ":8080", "binary": "\x01\x02"}
	want := []subject.Volume{
		{Path: "/config.yaml", Files: all, File: "config.yaml"},
		{Path: "/etc/all", Files: all},
		{Path: "/etc/some", Files: map[string]string{"renamed": "1"}},
		{Path: "/token", Files: map[string]string{"token": "abc", "user": "you"}},
		{Path: "/certs", Certificates: true},
		{Path: "/client-certs", Files: map[string]string{"token": "abc", "user": "you"}},
		{Path: "/gauntlet-data"},
	}
	if diff := cmp.Diff(want, loaded.Target.Definition().Volumes); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
}

// TestErrors checks the errors of Load for invalid subject files.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "manager", "")
	writeProgram(t, dir, "run")
	write(t, dir, "widgets.yaml", widgets)
	write(t, dir, "other.yaml", strings.ReplaceAll(widgets, "example.com", "example.org"))
	write(t, dir, "text.yaml", "just text")
	write(t, dir, "nothing.yaml", "spec: {}")
	write(t, dir, "unnamed.yaml", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {}}")
	write(t, dir, "empty/notes.txt", "")
	write(t, dir, "old/kustomization.yaml", "patches: [patch.yaml]\n")
	write(t, dir, "missing/kustomization.yaml", "resources: [none.yaml]\n")
	write(t, dir, "remote/kustomization.yaml", "resources: [https://example.invalid/x.yaml]\n")
	write(t, dir, "chart/kustomization.yaml", "helmCharts: [{name: a, repo: 'http://127.0.0.1:1'}]\n")
	write(t, dir, "cut/kustomization.yaml", "resources: [a.yaml]\n")
	write(t, dir, "cut/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a\n")
	write(t, dir, "itself/kustomization.yaml", "resources: [../itself]\n")
	write(t, dir, "inner/kustomization.yaml", "resources: [none.yaml]\n")
	write(t, dir, "unknown/kustomization.yaml", "resorces: [none.yaml]\n")
	for _, name := range []string{"inner", "unknown", "unpatched", "twice", "cut"} {
		write(t, dir, "of-"+name+"/kustomization.yaml", "resources: [../"+name+"]\n")
	}
	write(t, dir, "twice/kustomization.yaml", "resources: [../widgets.yaml, ../widgets.yaml]\n")
	write(t, dir, "hollow/kustomization.yaml", "resources: []\n")
	write(t, dir, "patched/kustomization.yaml", "resources: [../widgets.yaml]\npatches: [{path: none.yaml}]\n")
	write(t, dir, "unpatched/kustomization.yaml", "resources: [../widgets.yaml]\npatches: [{patch: '{apiVersion: v1, kind: Pod, metadata: {name: none}}'}]\n")
	write(t, dir, "other/kustomization.yaml", "resources: [other.yaml]\n")
	write(t, dir, "other/other.yaml", "metadata: {name: a}\n")
	write(t, dir, "misspelled/kustomization.yaml", "resorces: [none.yaml]\n")
	write(t, dir, "manifest/kustomization.yaml", "apiVersion: v1\nkind: ConfigMap\nresources: [../widgets.yaml]\n")
	write(t, dir, "bare/kustomization.yaml", "resources: [../empty]\n")
	for name, patch := range map[string]string{
		"list": "[{op: remove, path: /spec}]", "flow": "'[{op: remove, path: /spec}]'", "one": "'{op: remove, path: /spec}'",
		"op": "'- {op: repalce, path: /spec, value: x}'", "path": "'- {op: replace, path: /spec/foo/bar, value: x}'",
	} {
		write(t, dir, "patch-"+name+"/kustomization.yaml", "resources: [../widgets.yaml]\npatches: [{target: {kind: CustomResourceDefinition}, patch: "+patch+"}]\n")
	}
	write(t, dir, "misfiled/kustomization.yaml", "resources: [a.yml]\n")
	write(t, dir, "misfiled/a.yaml", widgets)
	for _, test := range []struct{ name, text, want string }{
		{"no program", "subject: {args: [x]}", ":1:10: subject: found neither exec nor module; expected exec, the path of a program, or module, a Go main package with a version"},
		{"fields without indentation", "subject:\nexec: x\nmanifests: [y]\n", ":2:7: exec: found the field exec at the top of the file; expected it inside the field subject, with more indentation"},
		{"subject file as a manifest", "subject: {exec: run, manifests: [subject.yaml]}", "/subject.yaml: found a subject file; expected a Kubernetes manifest (pass it with the flag --subject)"},
		{"image", "subject: {image: a}\n", "subject.image: found the field image; expected exec, the path of the program, because a run starts it"},
		{"variables as a list", "subject: {exec: run, env: [A=b]}\n", "subject.env: found a list; expected a mapping such as {name: value}"},
		{"template without its end", "subject: {exec: run, manifests: [widgets.yaml], args: ['--a={{.Kubeconfig}']}", "{{.Files}}: the closing }} is missing"},
		{"two programs", "subject: {exec: x, module: y}", "subject: found both exec and module; expected one of them"},
		{"unknown field", "subject:\n  binary: x\n", `:2:3: subject: unknown field "binary"; expected exec, module, args, env, files, namespace or manifests`},
		{"namespace", "subject: {exec: run, namespace: Bad_NS, manifests: [widgets.yaml]}", `:1:33: subject.namespace: found "Bad_NS"; expected a DNS label`},
		{"environment variables", "subject: {exec: run, env: {'A=B': c, '': d}, manifests: [widgets.yaml]}", `found the key "A=B"; expected the name of an environment variable`},
		{"environment variable with a line break", `subject: {exec: run, env: {"A\nB": c}, manifests: [widgets.yaml]}`, `found the key "A\nB"; expected the name of an environment variable`},
		{"argument with a NUL", `subject: {exec: run, args: ["b\0c"], manifests: [widgets.yaml]}`, `subject.args[0]: found "b\x00c"; expected a text without NUL characters`},
		{"environment variable with a NUL", `subject: {exec: run, env: {A: "b\0c"}, manifests: [widgets.yaml]}`, `found the value "b\x00c" of "A"; expected a text without NUL characters`},
		{"long name of a file", "subject: {exec: run, manifests: [widgets.yaml], files: {" + strings.Repeat("a", 300) + ": x}}", "of 300 bytes; expected the name of a file: at most 255 bytes"},
		{"program with a line break", `subject: {exec: "./a\nb", manifests: [widgets.yaml]}`, "subject.exec: " + dir + `/a\nb: no such file`},
		{"manifest with a line break", `subject: {exec: run, manifests: ["a\nb"]}`, dir + `/a\nb: no such file`},
		{"not executable", "subject: {exec: manager, manifests: [widgets.yaml]}", "found a file of mode -rw"},
		{"module without version", "subject:\n  module: example.com/operator\n", `:2:11: subject.module: found "example.com/operator"; expected the path of a main package and a version`},
		{"missing manifest", "subject: {exec: run, manifests: [none.yaml]}", ":1:34: subject.manifests[0]: " + dir + "/none.yaml: no such file or directory; expected a file or directory with manifests"},
		{"empty manifest", `subject: {exec: run, manifests: [""]}`, ":1:34: subject.manifests[0]: found an empty text; expected the path of a file or directory"},
		{"definition without name", "subject: {exec: run, manifests: [unnamed.yaml]}", "subject.manifests: " + dir + "/unnamed.yaml:1:1: found a CustomResourceDefinition without metadata.name; expected a name"},
		{"plural unlike the definition", "subject: {exec: run, manifests: [widgets.yaml]}\noperator:\n  kinds: [{apiVersion: example.com/v1, kind: Widget, plural: widgetz}]\n", `operator.kinds[0].plural: found "widgetz"; expected widgetry, as in the CustomResourceDefinition of Widget`},
		{"scope unlike the definition", "subject: {exec: run, manifests: [widgets.yaml]}\noperator:\n  kinds: [{apiVersion: example.com/v1, kind: Widget, plural: widgetry, clusterScoped: true}]\n", `operator.kinds[0].clusterScoped: found true, but the CustomResourceDefinition of Widget has the scope Namespaced; remove the field`},
		{"definition twice", "subject: {exec: run, manifests: [widgets.yaml, widgets.yaml]}", "widgets.yaml:1:1: found CustomResourceDefinition widgetry.example.com twice; expected each object once; the first is in " + dir + "/widgets.yaml:1"},
		{"two definitions of a kind", "subject: {exec: run, manifests: [widgets.yaml, other.yaml]}",
			":1:33: subject.manifests: found the kind Widget in the CustomResourceDefinitions widgetry.example.com and widgetry.example.org; expected one of them, or the controllers in the section operator of the subject file"},
		{"kustomization of a missing file", "subject: {exec: run, manifests: [missing]}", ":1:34: subject.manifests[0]: building the kustomization in " + dir + "/missing: " + dir + "/missing/none.yaml: no such file or directory"},
		{"kustomization of itself", "subject: {exec: run, manifests: [itself]}", "found a cycle: the resources of the kustomization in " + dir + "/itself lead back to it"},
		{"kustomization of a directory without one", "subject: {exec: run, manifests: [bare]}", "found the directory " + dir + "/empty without a kustomization; expected a file, or a directory with a kustomization"},
		{"kustomization with a patch that is a list", "subject: {exec: run, manifests: [patch-list]}", "/patch-list: the field patches: found a list in the field patch; expected a text: write patch: |- and"},
		{"kustomization with a patch in flow style", "subject: {exec: run, manifests: [patch-flow]}", `/patch-flow: the field patches: found "[{op: remove, path: /spec}]"; expected a list of operations in JSON, or in YAML with each operation in a line`},
		{"kustomization with one operation", "subject: {exec: run, manifests: [patch-one]}", `found "{op: remove, path: /spec}"; expected a list of operations: begin the text with -`},
		{"kustomization with a misspelled operation", "subject: {exec: run, manifests: [patch-op]}", `/patch-op: the field patches: found the op "repalce"; expected add, copy, move, remove, replace or test`},
		{"kustomization with a patch of a missing path", "subject: {exec: run, manifests: [patch-path]}", "/patch-path: the field patches: found the path /spec/foo/bar, which the object does not have"},
		{"kustomization with a misspelled file", "subject: {exec: run, manifests: [misfiled]}", "/misfiled/a.yml: no such file or directory; expected a file or directory that the kustomization names; did you mean a.yaml?"},
		{"inner kustomization with a missing file", "subject: {exec: run, manifests: [of-inner]}", "/of-inner: " + dir + "/inner/none.yaml: no such file or directory"},
		{"inner kustomization with an unknown field", "subject: {exec: run, manifests: [of-unknown]}", "/of-unknown: " + dir + `/unknown: invalid Kustomization: unknown field "resorces"`},
		{"inner kustomization with a patch of no object", "subject: {exec: run, manifests: [of-unpatched]}", "/of-unpatched: " + dir + "/unpatched: the field patches: found a patch of Pod.v1/none"},
		{"inner kustomization with an object twice", "subject: {exec: run, manifests: [of-twice]}", "/of-twice: " + dir + "/twice: ../widgets.yaml: found CustomResourceDefinition"},
		{"inner kustomization with a damaged file", "subject: {exec: run, manifests: [of-cut]}", "/of-cut: " + dir + "/cut: a.yaml: line 2: found no end of the mapping in braces"},
		{"kustomization with an object twice", "subject: {exec: run, manifests: [twice]}", "/twice: ../widgets.yaml: found CustomResourceDefinition.v1.apiextensions.k8s.io/widgetry.example.com for the second time"},
		{"empty kustomization", "subject: {exec: run, manifests: [hollow]}", "/hollow: found no object; expected files with manifests in the field resources"},
		{"kustomization with a missing patch", "subject: {exec: run, manifests: [patched]}", "/patched: " + dir + "/patched/none.yaml: no such file or directory"},
		{"kustomization with a patch of no object", "subject: {exec: run, manifests: [unpatched]}", "/unpatched: the field patches: found a patch of Pod.v1/none, but no such object in the resources"},
		{"kustomization of an object without a kind", "subject: {exec: run, manifests: [other]}", "/other: other.yaml: found an object without the field kind"},
		{"kustomization of a Helm chart", "subject: {exec: run, manifests: [chart]}", `/chart: found helmCharts, which gauntlet does not support; render the charts with "helm template", and name the results in resources`},
		{"kustomization of a URL", "subject: {exec: run, manifests: [remote]}", "/remote: found the URL of a remote resource; expected files on this machine"},
		{"damaged file of a kustomization", "subject: {exec: run, manifests: [cut]}", "/cut: a.yaml: line 2: found no end of the mapping in braces; expected ',' or '}'"},
		{"unknown field of a kustomization", "subject: {exec: run, manifests: [misspelled]}", `/misspelled: invalid Kustomization: unknown field "resorces"; did you mean resources?`},
		{"kustomization of another kind", "subject: {exec: run, manifests: [manifest]}", "/manifest: found another kind in the kustomization; expected Kustomization or Component"},
		{"invalid module", "subject: {module: a b@v1}", `:1:19: subject.module: found "a b@v1"; expected the path of a main package and a version`},
		{"invalid version of a module", "subject: {module: example.com/x@../../z}", `:1:19: subject.module: found "example.com/x@../../z"; expected the path of a main package and a version`},
		{"missing program", "subject: {exec: none, manifests: [widgets.yaml]}", ":1:17: subject.exec: " + dir + "/none: no such file or directory; expected an executable file"},
		{"misspelled program", "subject: {exec: rnu, manifests: [widgets.yaml]}", dir + "/rnu: no such file or directory; expected an executable file; did you mean run?"},
		{"program with a prefix", "subject: {exec: 'exec:run', manifests: [widgets.yaml]}", "; the field has only the path, without exec:"},
		{"program relative to the working directory", "subject: {exec: operator_test.go, manifests: [widgets.yaml]}", "/operator_test.go? A relative path begins at the directory of the subject file"},
		{"misspelled manifest", "subject: {exec: run, manifests: [empty/../widget.yaml]}", "; did you mean widgets.yaml?"},
		{"no manifest", "subject: {exec: run, manifests: [text.yaml]}", "text.yaml:1: expected a manifest: found string at the top; expected an object"},
		{"program with arguments", "subject: {exec: run --v=2, manifests: [widgets.yaml]}", "no such file or directory; expected an executable file; the field has only the path, without arguments, ~ and variables"},
		{"pattern of manifests", "subject: {exec: run, manifests: ['*.yaml']}", "*.yaml: no such file or directory; expected a path without patterns, ~ and variables: to read all files of a directory, name the directory"},
		{"manifest at a URL", "subject: {exec: run, manifests: ['https://example.com/a.yaml']}", ":1:34: subject.manifests[0]: found the URL https://example.com/a.yaml; expected a path"},
		{"own KUBECONFIG", "subject: {exec: run, env: {KUBECONFIG: /root/.kube/config}}", `:1:40: subject.env.KUBECONFIG: found "/root/.kube/config"; expected a template such as {{.Kubeconfig}}, or no value`},
		{"own kubeconfig", "subject: {exec: run, args: [--v=2, --kubeconfig=/root/.kube/config]}", `subject.args[1]: found "--kubeconfig=/root/.kube/config"; expected only --kubeconfig={{.Kubeconfig}}`},
		{"own kubeconfig in two arguments", "subject: {exec: run, args: [--kubeconfig, /root/.kube/config]}", `subject.args[0]: found "--kubeconfig"; expected only`},
		{"own API server", "subject: {exec: run, args: ['--master=https://10.0.0.1']}", `subject.args[0]: found "--master=https://10.0.0.1"`},
		{"merge conflict", "<<<<<<< HEAD\nsubject: {exec: a}\n=======\nsubject: {exec: b}\n>>>>>>> x\n", "subject.yaml:1:1: found a marker of a merge conflict in git; resolve the conflict first"},
		{"baseline", "effects: {}\nend: {}\nformat: 3\n", ": found a baseline; expected a subject file; pass the baseline with the flag --baseline"},
		{"manifest", "# of our operator\n---\napiVersion: v1\nkind: ConfigMap\n---\napiVersion: apps/v1\n", ": found the manifest of a ConfigMap; expected a subject file; list the manifest in subject.manifests of a subject file"},
		{"scenario", "name: a\nworkload: []\n", ": found a scenario; expected a subject file; pass the scenario as an argument"},
		{"manifest without kind", "subject: {exec: run, manifests: [nothing.yaml]}", "nothing.yaml:1:1: found an object without the field kind"},
		{"directory without manifests", "subject: {exec: run, manifests: [empty]}", "found no object in the files of " + dir + "/empty"},
		{"kustomization that is too old", "subject: {exec: run, manifests: [old]}", "list its files in subject.manifests instead"},
		{"no controller", "subject: {exec: run}", "operator.controllers: found no controller here, and no CustomResourceDefinition of a namespaced kind in subject.manifests"},
		{"unknown template", "subject: {exec: run, manifests: [widgets.yaml], args: ['{{.Port}}']}", ":1:56: subject.args[0]: found \"{{.Port}}\"; expected no template fields other than {{.Kubeconfig}}"},
		{"unknown template in a file", "subject: {exec: run, manifests: [widgets.yaml], files: {a.yaml: '{{.Port}}'}}", ":1:56: subject.files: a.yaml: found \"{{.Port}}\""},
		{"file with a directory", "subject: {exec: run, manifests: [widgets.yaml], files: {../a.yaml: x}}", ":1:56: subject.files: found the name \"../a.yaml\"; expected the name of a file without a directory"},
		{"unknown kind", "subject: {exec: run}\noperator:\n  controllers: [{name: widget, kind: Widget}]\n", `:3:38: operator.controllers[0].kind: found "Widget"; expected a kind of operator.kinds`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Load(t.Context(), write(t, dir, "subject.yaml", test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error\n     %v\nwant %s", err, test.want)
			}
		})
	}
}

// TestInvalidManifests checks which objects of manifests Load refuses before a run starts. An empty error
// means that it accepts the object.
func TestInvalidManifests(t *testing.T) {
	const (
		configMap  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
		secret     = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"
		webhook    = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: a}\n"
		deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: "
		binding    = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: a}\n"
		role       = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"
		definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgets.a.b}\n" +
			"spec: {group: a.b, scope: Cluster, names: {kind: Gadget, plural: gadgets}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: SCHEMA}}]}\n"
	)
	for _, test := range []struct{ name, manifest, want string }{
		{"null", configMap + "data: {a: null}\nimmutable: null\n", ""},
		{"unknown field", configMap + "dta: {a: b}\n", "m.yaml:4:1: ConfigMap a: unknown field dta; did you mean data?"},
		{"field in upper case", configMap + "DATA: 5\n", "ConfigMap a: unknown field DATA; did you mean data?"},
		{"unknown field of an item", role + "metadata: {name: a}\nrules: [{verbs: [get], apiGroups: [''], resource: [pods]}]\n", "ClusterRole a: unknown field rules[0].resource; did you mean resources?"},
		{"unknown field of the metadata", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, label: {a: b}}\n", "ConfigMap a: unknown field metadata.label; did you mean labels?"},
		{"unknown field without a similar one", configMap + "xyzxyz: 6\n", "ConfigMap a: unknown field xyzxyz"},
		{"number in data", configMap + "data: {x: 5}\n", "m.yaml:4:8: ConfigMap a: data.x: found 5; expected a text in quotes"},
		{"data as a list", configMap + "data: [x]\n", "ConfigMap a: data: found a list; expected an object"},
		{"name", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: A_B}\n", `ConfigMap A_B: metadata.name: found "A_B"; expected a DNS subdomain`},
		{"name of a Namespace", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a.b}\n", `Namespace a.b: metadata.name: found "a.b"; expected a DNS label`},
		{"name of a namespace", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: A b}\n", `ConfigMap a: metadata.namespace: found "A b"; expected a DNS label`},
		{"name of a role", role + "metadata: {name: 'System:A_b'}\n", ""},
		{"slash in the name of a role", role + "metadata: {name: a/b}\n", `ClusterRole a/b: metadata.name: found "a/b"; expected a name other than . and .., without / and %`},
		{"number as a kind", strings.NewReplacer("kind: Gadget", "kind: 5", "SCHEMA", "{type: object}").Replace(definition), "CustomResourceDefinition gadgets.a.b: spec.names.kind: found 5; expected a text"},
		{"binding of an unknown role", binding + "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: managr}\n---\n" + role + "metadata: {name: manager}\n",
			`m.yaml:4:67: ClusterRoleBinding a: roleRef.name: found "managr"; expected a ClusterRole of subject.manifests, or a default one such as cluster-admin; did you mean manager?`},
		{"binding of an unknown role for another program", binding + "subjects: [{kind: ServiceAccount, name: prometheus, namespace: b}]\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: prometheus}\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: manager}\n", ""},
		{"binding of a default role", binding + "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:auth-delegator}\n", ""},
		{"binding of a Role in another namespace", strings.NewReplacer("ClusterRole", "Role", "name: a", "name: a, namespace: b").Replace(binding + "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}\n---\n" + role + "metadata: {name: r, namespace: c}\n"),
			`RoleBinding a: roleRef.name: found "r"; expected a Role of subject.manifests in the namespace of the RoleBinding`},
		{"binding of no account", binding + "subjects: []\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: manager}\n", `ClusterRoleBinding a: roleRef.name: found "r"`},
		{"rules as text", role + "metadata: {name: a}\nrules: x\n", "ClusterRole a: rules: found \"x\"; expected a list"},
		{"Secret with text", secret + "data: {x: '%%%'}\n", "Secret a: data.x: found a text that is not base64; expected base64"},
		{"Secret with base64", secret + "data: {x: YWJj, y: ''}\n", ""},
		{"binaryData with text", configMap + "binaryData: {x: '%'}\n", "ConfigMap a: binaryData.x: found a text that is not base64; expected base64"},
		{"item that is a number", "apiVersion: v1\nkind: List\nitems: [5]\n", "m.yaml:3:9: items[0]: found 5; expected an object"},
		{"item of a list", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Namespace, metadata: {name: A}}]\n", `m.yaml:3:54: items[0]: Namespace A: metadata.name: found "A"`},
		{"item without apiVersion", "apiVersion: v1\nkind: List\nitems: [{kind: ConfigMap, metadata: {name: a}}]\n", "m.yaml:3:9: items[0]: found an object without the field apiVersion"},
		{"apiVersion of three parts", "apiVersion: v1/v2/v3\nkind: ConfigMap\nmetadata: {name: a}\n", `m.yaml:1:1: ConfigMap a: apiVersion: found "v1/v2/v3"; expected a group and a version such as apps/v1, or v1`},
		{"Helm template", configMap + "data: {x: {{ .Values.x }}}\n", `m.yaml:1: expected a manifest: found a Helm template; render it with "helm template" first (found a key that is a list or a mapping; expected a text)`},
		{"Helm template in the second document", configMap + "---\n{{- if .Values.x }}\n" + secret + "{{- end }}\n", "m.yaml:4: expected a manifest: found a Helm template"},
		{"template in a text", configMap + "data: {x: '{{ .Values.x }}'}\n", ""},
		{"definition of v1beta1", strings.Replace(definition, "k8s.io/v1", "k8s.io/v1beta1", 1), `CustomResourceDefinition gadgets.a.b: apiVersion: found "apiextensions.k8s.io/v1beta1"; expected apiextensions.k8s.io/v1`},
		{"webhooks as text", webhook + "webhooks: x\n", "ValidatingWebhookConfiguration a: webhooks: found \"x\"; expected a list"},
		{"no sideEffects", webhook + "webhooks: [{name: a.b.c, clientConfig: {service: {name: a, namespace: b}}}]\n", "webhooks[0].sideEffects: found nothing; expected None or NoneOnDryRun"},
		{"sideEffects of v1beta1", webhook + "webhooks: [{name: a.b.c, clientConfig: {service: {name: a, namespace: b}}, sideEffects: Some}]\n", `webhooks[0].sideEffects: found "Some"; expected None or NoneOnDryRun`},
		{"no clientConfig", webhook + "webhooks: [{name: a.b.c, sideEffects: None}]\n", "webhooks[0].clientConfig: found neither service nor url"},
		{"unknown version of a built-in kind", "apiVersion: v2\nkind: ConfigMap\nmetadata: {name: a}\n", "ConfigMap a: apiVersion: found v2; expected v1, because API servers do not serve"},
		{"unknown version of a kind that a run ignores", "apiVersion: autoscaling/v3\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\n", ""},
		{"Ingress without a name", "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {}\n", "found an Ingress without metadata.name; expected a name"},
		{"kind of an older version", "apiVersion: policy/v1beta1\nkind: PodSecurityPolicy\nmetadata: {name: a}\n", ""},
		{"webhook without TLS", webhook + "webhooks: [{name: a.b.c, clientConfig: {url: 'http://a/b'}}]\n", `webhooks[0].clientConfig.url: found "http://a/b"; expected a URL that begins with https://`},
		{"unknown template in the Deployment", deployment + "{containers: [{name: a, image: i, args: ['{{.Port}}']}]}}}\n", "m.yaml:1: Deployment a: args[0]: found \"{{.Port}}\""},
		{"unknown template in a variable of the Deployment", deployment + "{containers: [{name: a, image: i, env: [{name: A, value: '{{.Port}}'}]}]}}}\n", "m.yaml:1: Deployment a: env.A: found \"{{.Port}}\""},
		{"variable with two values", deployment + "{containers: [{name: a, image: i, env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}}}\n", "Deployment a: spec.template.spec.containers[0].env[0]: found fieldRef and value; expected value, or one source in valueFrom"},
		{"variable without a value", deployment + "{containers: [{name: a, image: i, env: [{name: A, valueFrom: {}}, {name: B}]}]}}}\n", "Deployment a: spec.template.spec.containers[0].env[0]: found an empty valueFrom; expected value, or one source in valueFrom"},
		{"variable without a value and a source", deployment + "{containers: [{name: a, image: i, env: [{name: B}]}]}}}\n", ""},
		{"volume with two sources", deployment + "{containers: [{name: a, image: i}], volumes: [{name: v, configMap: {name: a}, secret: {secretName: a}}]}}}\n", "Deployment a: spec.template.spec.volumes[0]: found secret and configMap; expected one of them"},
		{"mount at the root", deployment + "{containers: [{name: m, image: i, volumeMounts: [{name: x, mountPath: /}]}], volumes: [{name: x}]}}}\n", `spec.template.spec.containers[0].volumeMounts[0].mountPath: found "/"; expected an absolute path other than /`},
		{"role of an old version", "apiVersion: rbac.authorization.k8s.io/v1beta1\nkind: ClusterRole\nmetadata: {name: a}\n", "ClusterRole a: apiVersion: found rbac.authorization.k8s.io/v1beta1; expected rbac.authorization.k8s.io/v1, because Kubernetes 1.22 removed this version of the kind"},
		{"role of another group", "apiVersion: v1\nkind: ClusterRole\nmetadata: {name: a}\n", "ClusterRole a: apiVersion: found v1; expected rbac.authorization.k8s.io/v1, because"},
		{"role without a name", binding + "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manager}\n---\n" + role + "metadata: {}\n", "m.yaml:6:1: found a ClusterRole without metadata.name; expected a name"},
		{"wrong separator", configMap + "----\n" + secret, "m.yaml:4: expected a manifest: found a line that begins with ---; expected only ---"},
		{"separator with a comment", configMap + "--- # second\n" + secret, ""},
		{"merge conflict", configMap + "<<<<<<< HEAD\ndata: {a: b}\n=======\ndata: {a: c}\n>>>>>>> main\n", "m.yaml:4: expected a manifest: found a marker of a merge conflict in git"},
		{"misspelled spec of a definition", strings.Replace(definition, "spec:", "sepc:", 1), "CustomResourceDefinition gadgets.a.b: unknown field sepc; did you mean spec?"},
		{"misspelled versions of a definition", strings.Replace(definition, "versions:", "version:", 1), "CustomResourceDefinition gadgets.a.b: unknown field spec.version; did you mean versions?"},
		{"plural in upper case", strings.Replace(definition, "plural: g", "plural: G", 1), `spec.names.plural: found "Gadgets"; expected lower-case letters`},
		{"group with an underscore", strings.Replace(definition, "group: a.b", "group: a_b", 1), `spec.group: found "a_b"; expected the domain of a group`},
		{"group of Kubernetes", strings.NewReplacer("group: a.b", "group: apps", "gadgets.a.b", "gadgets.apps").Replace(definition), `spec.group: found "apps", a group of Kubernetes; expected a group of your own`},
		{"protected group", strings.NewReplacer("group: a.b", "group: a.k8s.io", "gadgets.a.b", "gadgets.a.k8s.io").Replace(definition), `spec.group: found "a.k8s.io", which needs the annotation api-approved.kubernetes.io`},
		{"approved group", strings.NewReplacer("group: a.b", "group: a.k8s.io", "name: gadgets.a.b", "name: gadgets.a.k8s.io, annotations: {api-approved.kubernetes.io: unapproved}", "SCHEMA", "{type: object}").Replace(definition), ""},
		{"subresource of a wrong type", strings.Replace(definition, "served: true", "served: true, subresources: {status: true}", 1), "spec.versions[0].subresources.status: found true; expected an object"},
		{"version twice", strings.NewReplacer("versions: [", "versions: [{name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}, ", "SCHEMA", "{type: object}").Replace(definition), "spec.versions[1].name: found v1 twice; expected each version once"},
		{"two stored versions", strings.NewReplacer("versions: [", "versions: [{name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}, ", "SCHEMA", "{type: object}").Replace(definition), "spec.versions[1].storage: found true, as for the version v2; expected one version with storage: true"},
		{"schema without a type", strings.Replace(definition, "SCHEMA", "{properties: {}}", 1), "spec.versions[0].schema.openAPIV3Schema.type: found nothing; expected object"},
		{"property without a type", strings.Replace(definition, "SCHEMA", "{type: object, properties: {x: {minimum: 1}}}", 1), "openAPIV3Schema.properties.x.type: found nothing; expected array, boolean, integer, number, object or string"},
		{"reference in a schema", strings.Replace(definition, "SCHEMA", "{type: object, properties: {x: {$ref: \"#/definitions/X\"}}}", 1), "openAPIV3Schema.properties.x.$ref: found \"#/definitions/X\"; expected the schema itself"},
		{"misspelled kind", strings.Replace(definition, "kind: CustomResourceDefinition", "kind: CustomResourceDefinitions", 1), "kind: found \"CustomResourceDefinitions\"; expected CustomResourceDefinition"},
		{"property that is a text", strings.Replace(definition, "SCHEMA", "{type: object, properties: {x: string}}", 1), "openAPIV3Schema.properties.x: found \"string\"; expected a schema such as {type: string}"},
		{"properties as a list", strings.Replace(definition, "SCHEMA", "{type: object, properties: [x]}", 1), "openAPIV3Schema.properties: found [\"x\"]; expected an object with a schema for each field"},
		{"required of one property", strings.Replace(definition, "SCHEMA", "{type: object, properties: {x: {type: string, required: true}}}", 1), "openAPIV3Schema.properties.x.required: found true; expected a list of the names of required fields"},
		{"misspelled field of a schema", strings.Replace(definition, "SCHEMA", "{type: object, properties: {x: {type: string, nulable: true}}}", 1), "openAPIV3Schema.properties.x: unknown field nulable; did you mean nullable?"},
		{"additional properties", strings.Replace(definition, "SCHEMA", "{type: object, required: [x], properties: {x: {type: object, additionalProperties: {type: string}}}}", 1), ""},
		{"label with a space", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {a: b c}}\n", `ConfigMap a: metadata.labels: found "a" with the value "b c"; expected a label`},
		{"Secret with a number", secret + "data: {x: 5}\n", "Secret a: data.x: found 5; expected a text in base64"},
		{"apiVersion that is a number", "apiVersion: 1\nkind: ConfigMap\nmetadata: {name: a}\n", "m.yaml:1:1: apiVersion: found 1; expected a text such as v1 or ConfigMap"},
		{"list in a list", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}]\n", ""},
		{"short name of a webhook", webhook + "webhooks: [{name: a, clientConfig: {service: {name: a, namespace: b}}, sideEffects: None, admissionReviewVersions: [v1]}]\n", `webhooks[0].name: found "a"; expected a name with at least three parts`},
		{"path of a webhook", webhook + "webhooks: [{name: a.b.c, clientConfig: {service: {name: a, namespace: b, path: x}}, sideEffects: None, admissionReviewVersions: [v1]}]\n", `webhooks[0].clientConfig.service.path: found "x"; expected a path that begins with /`},
		{"operation of a webhook", strings.Replace(webhook, "Validating", "Mutating", 1) + "webhooks: [{name: a.b.c, clientConfig: {service: {name: a, namespace: b}}, sideEffects: None, admissionReviewVersions: [v1], rules: [{operations: [CREATED], apiGroups: [a.b], apiVersions: [v1], resources: [c]}]}]\n", `webhooks[0].rules[0].operations: found "CREATED"; expected CREATE, UPDATE, DELETE, CONNECT or *`},
		{"failure policy of a webhook", webhook + "webhooks: [{name: a.b.c, clientConfig: {service: {name: a, namespace: b}}, sideEffects: None, admissionReviewVersions: [v1], failurePolicy: Failed}]\n", `webhooks[0].failurePolicy: found "Failed"; expected Fail or Ignore`},
		{"limit in quotes", strings.Replace(definition, "SCHEMA", "{type: object, properties: {x: {type: integer, minimum: '1'}}}", 1), `openAPIV3Schema.properties.x.minimum: found "1"; expected a number without quotes`},
		{"invalid pattern", strings.Replace(definition, "SCHEMA", "{type: object, properties: {x: {type: string, pattern: '['}}}", 1), `openAPIV3Schema.properties[x].pattern: found "[", which the API server refuses: must be a valid regular expression`},
		{"list without items", strings.Replace(definition, "SCHEMA", "{type: object, properties: {x: {type: array}}}", 1), "openAPIV3Schema.properties.x.items: found nothing; expected the schema of the items"},
		{"misspelled kind", "apiVersion: apps/v1\nkind: Deploymnet\nmetadata: {name: a}\n", `m.yaml:2:1: Deploymnet a: kind: found "Deploymnet"; expected a kind of apps/v1; did you mean Deployment?`},
		{"service without a name", webhook + "webhooks: [{name: a.b.c, clientConfig: {service: {namespace: b}}}]\n", `webhooks[0].clientConfig.service: found name "" and namespace "b"; expected both`},
		{"caBundle that a run replaces", webhook + "webhooks: [{name: a.b.c, clientConfig: {caBundle: '%', service: {name: a, namespace: b}}, sideEffects: None, admissionReviewVersions: [v1]}]\n", ""},
		{"no admissionReviewVersions", webhook + "webhooks: [{name: a.b.c, clientConfig: {service: {name: a, namespace: b}}, sideEffects: None}]\n", "webhooks[0].admissionReviewVersions: found nothing; expected a list with v1"},
		{"nothing", "# nothing\n", "m.yaml: found no object in the file; expected manifests"},
		{"key twice", configMap + "data: {a: x}\ndata: {b: x}\n", `m.yaml:5: expected a manifest: found the key "data" twice; expected each key once`},
		{"key that replaces a merged one", configMap + "data: {<<: {a: x}, a: b}\n", ""},
		{"two documents of JSON", `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}} {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}`, "m.yaml:1:67: found a ConfigMap without metadata.name"},
		{"name that is a number", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 3}\n", "m.yaml:3:12: ConfigMap: metadata.name: found 3; expected a text (quote a value such as 7 or true)"},
		{"metadata that is a list", "apiVersion: v1\nkind: ConfigMap\nmetadata: [a]\n", "m.yaml:3:1: ConfigMap: metadata: found [\"a\"]; expected an object with a name"},
		{"template that is a number", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: 3}\n", "m.yaml:4:8: Deployment a: spec.template: found 3; expected an object"},
		{"no container", deployment + "{}}}\n", "m.yaml:4:80: Deployment a: spec.template.spec.containers: found no container; expected at least one"},
		{"mount without volume", deployment + "{containers: [{name: m, image: i, volumeMounts: [{name: x, mountPath: /x}]}]}}}\n", `spec.template.spec.containers[0].volumeMounts[0].name: found "x"; expected the name of one of the volumes of the pod`},
		{"mount at a relative path", deployment + "{containers: [{name: m, image: i, volumeMounts: [{name: x, mountPath: etc/x}]}], volumes: [{name: x}]}}}\n", `spec.template.spec.containers[0].volumeMounts[0].mountPath: found "etc/x"; expected an absolute path`},
		{"environment variable without name", deployment + "{containers: [{name: m, image: i, env: [{value: x}]}]}}}\n", "m.yaml:4:126: Deployment a: spec.template.spec.containers[0].env[0].name: found nothing; expected the name of an environment variable"},
		{"definition", strings.Replace(definition, "SCHEMA", "{type: object, x-kubernetes-new: 5, properties: {type: {type: string}, x: {x-kubernetes-int-or-string: true}}}", 1), ""},
		{"definition of a wrong name", strings.Replace(definition, "gadgets.a.b", "gadget.a.b", 1), `CustomResourceDefinition gadget.a.b: metadata.name: found "gadget.a.b"; expected gadgets.a.b, which is spec.names.plural and spec.group`},
		{"definition of a wrong scope", strings.Replace(definition, "Cluster", "Foo", 1), `spec.scope: found "Foo"; expected Namespaced or Cluster`},
		{"definition without a conversion webhook", strings.Replace(definition, "scope:", "conversion: {strategy: Webhook}, scope:", 1), "spec.conversion.webhook: found nothing; expected the webhook of the strategy Webhook, or the strategy None"},
		{"definition without a served version", strings.Replace(definition, "served: true", "served: false", 1), "CustomResourceDefinition gadgets.a.b: spec.versions: found no version with served: true; expected at least one"},
		{"definition without a schema", strings.Replace(definition, ", schema: {openAPIV3Schema: SCHEMA}", "", 1), "CustomResourceDefinition gadgets.a.b: spec.versions[0].schema.openAPIV3Schema: found nothing; expected a schema"},
		{"schema in an unknown field", strings.Replace(definition, "openAPIV3Schema: SCHEMA", "openAPISchema: {type: object}", 1),
			"spec.versions[0].schema.openAPIV3Schema: found nothing; expected a schema; the fields there are unknown: openAPISchema"},
		{"schema of a wrong type", strings.Replace(definition, "SCHEMA", "{type: object, properties: {x: {type: array, items: {type: strng}}}}", 1),
			`spec.versions[0].schema.openAPIV3Schema.properties.x.items.type: found "strng"; expected array, boolean, integer, number, object or string; did you mean string?`},
		{"kind of another group", "apiVersion: example.com/v1\nkind: Secret\nmetadata: {name: A_B}\ndata: 5\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			writeProgram(t, dir, "run")
			write(t, dir, "crd.yaml", widgets)
			write(t, dir, "m.yaml", test.manifest)
			_, err := Load(t.Context(), write(t, dir, "subject.yaml", "subject: {exec: run, manifests: [crd.yaml, m.yaml]}"))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error\n got %v\nwant %s", err, test.want)
			}
		})
	}
}

// TestNotes checks the notes about files and permissions that a program probably needs.
func TestNotes(t *testing.T) {
	rule := func(verbs string) string {
		return "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{apiGroups: [example.com], resources: [widgetry], verbs: " + verbs + "}]}\n"
	}
	binding := func(role string) string {
		return "---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: " + role + "}, roleRef: {kind: ClusterRole, name: " + role + "}}\n"
	}
	for _, test := range []struct{ name, role, fields, note, want string }{
		{"all", rule("[get, list, watch]") + binding("a"), "", "", ""},
		{"verb *", rule("['*']") + binding("a"), "", "", ""},
		{"other role", rule("[get]") + binding("a") + binding("cluster-admin"), "", "", ""},
		{"no binding", rule("[get]"), "", "", ""},
		{"no watch", rule("[get, list, update]") + binding("a"), "", "the controller widget: found no bound role that permits it to watch widgetry.example.com", ""},
		{"no read", rule("[update]") + binding("a"), "", "permits it to list and watch widgetry.example.com", ""},
		{"file", rule("['*']"), "args: ['--config={{.Files}}/a.yaml', '--cert-dir={{.Files}}/tls/x'], files: {a.yaml: x}", "", ""},
		{"misspelled file", rule("['*']"), "args: ['--config={{.Files}}/confg.yaml'], files: {config.yaml: x}", "", `subject.args[0]: found the file "confg.yaml"; expected a name in subject.files; did you mean config.yaml?`},
		{"other file", rule("['*']"), "env: {LOG: '{{ .Files }}/log'}", `subject.env.LOG: found the file "log", which is not in subject.files`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			writeProgram(t, dir, "run")
			write(t, dir, "m.yaml", widgets+"---\n"+test.role)
			loaded, err := Load(t.Context(), write(t, dir, "subject.yaml", "subject: {exec: run, manifests: [m.yaml], "+test.fields+"}"))
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

// writeProgram writes a shell script, which is executable, in dir.
func writeProgram(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Chmod(write(t, dir, name, "#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// write writes a file in dir and returns the path of the file.
func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
