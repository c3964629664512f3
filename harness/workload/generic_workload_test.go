package workload

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

var (
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	widgets      = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	definitions  = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

func newDynamicEnv(recorded *records) (Env, *dynamicfake.FakeDynamicClient) {
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		statefulSets: "StatefulSetList", widgets: "WidgetList", definitions: "CustomResourceDefinitionList",
	})
	return Env{Client: fake.NewClientset(), Dynamic: client, Namespace: namespace, Recorder: recorded, Clock: clock.RealClock{}}, client
}

// setStatus sets the status of an object in a fake client. The arguments of, in and name are the
// object's resource, namespace and name.
func setStatus(t *testing.T, client *dynamicfake.FakeDynamicClient, of schema.GroupVersionResource, in, name string, status map[string]any) {
	objects := client.Resource(of).Namespace(in)
	object, err := objects.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Error(err)
		return
	}
	object.Object["status"] = status
	if _, err := objects.UpdateStatus(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
}

// TestRunGeneric runs a workload with every operation that supports an object from a manifest.
func TestRunGeneric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorded := records{}
		env, client := newDynamicEnv(&recorded)
		go func() {
			time.Sleep(3 * time.Second)
			setStatus(t, client, statefulSets, namespace, "web", map[string]any{"readyReplicas": int64(3)})
		}()
		started := time.Now()
		err := Run(t.Context(), env, steps(t, `
  - create: {kind: StatefulSet, name: web, manifest: {spec: {replicas: 3, serviceName: web, template: {metadata: {labels: {app: web}}}}}}
    await: {until: "jsonpath={.status.readyReplicas}=3"}
  - scale: {kind: StatefulSet, name: web, replicas: 5}
  - patch: {kind: StatefulSet, name: web, merge: {spec: {serviceName: null, minReadySeconds: 1}}}
  - label: {kind: StatefulSet, name: web, labels: {a: b}}
  - annotate: {kind: StatefulSet, name: web, annotations: {c: d}}
`))
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(started); took != 3*time.Second {
			t.Errorf("the steps took %s; want 3s", took)
		}
		got, err := client.Resource(statefulSets).Namespace(namespace).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		spec := got.Object["spec"].(map[string]any)
		delete(spec, "template")
		want := map[string]any{
			"apiVersion": "apps/v1", "kind": "StatefulSet",
			"metadata": map[string]any{"name": "web", "namespace": namespace, "labels": map[string]any{"a": "b"}, "annotations": map[string]any{"c": "d"}},
			"spec":     map[string]any{"replicas": int64(5), "minReadySeconds": int64(1)},
			"status":   map[string]any{"readyReplicas": int64(3)},
		}
		if diff := cmp.Diff(want, got.Object); diff != "" {
			t.Errorf("object (-want +got):\n%s", diff)
		}
		web := &history.Ref{Resource: "statefulsets.apps", Namespace: namespace, Name: "web"}
		if diff := cmp.Diff(web, recorded[len(recorded)-1].Object); diff != "" {
			t.Errorf("recorded object (-want +got):\n%s", diff)
		}
		if err := Run(t.Context(), env, steps(t, `
  - create: {kind: StatefulSet, name: other, manifest: {}}
  - delete: {kind: StatefulSet, name: other, propagation: foreground}
    await: {until: gone}
`)); err != nil {
			t.Error(err)
		}
	})
}

// TestRunClusterScoped creates a CustomResourceDefinition, waits for its condition, and creates
// an object of the new kind. The fake API server does not serve the new resource at once.
func TestRunClusterScoped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorded := records{}
		env, client := newDynamicEnv(&recorded)
		var served time.Time
		client.PrependReactor("create", "widgets", func(kubetesting.Action) (bool, runtime.Object, error) {
			if time.Now().Before(served) {
				return true, nil, apierrors.NewGenericServerResponse(404, "create", widgets.GroupResource(), "", "404 page not found", 0, true)
			}
			return false, nil, nil
		})
		go func() {
			time.Sleep(time.Second)
			served = time.Now().Add(time.Second)
			setStatus(t, client, definitions, "", "widgets.example.com", map[string]any{
				"conditions": []any{map[string]any{"type": "Established", "status": "True"}},
			})
		}()
		started := time.Now()
		err := Run(t.Context(), env, steps(t, `
  - create: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: widgets.example.com, manifest: {spec: {group: example.com}}}
    await: {until: condition=established}
  - create: {apiVersion: example.com/v1, kind: Widget, name: one, manifest: {spec: {size: 3}}}
  - delete: {kind: CustomResourceDefinition, name: widgets.example.com}
    await: {until: gone}
`))
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(started); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("the steps took %s; want about 2s", took)
		}
		if got := recorded[len(recorded)-1].Object; got.Namespace != "" || got.Resource != "customresourcedefinitions.apiextensions.k8s.io" {
			t.Errorf("recorded %+v; want a cluster-scoped object", got)
		}
		if _, err := client.Resource(widgets).Namespace(namespace).Get(t.Context(), "one", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func TestGenericAwaitUnmet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorded := records{}
		env, _ := newDynamicEnv(&recorded)
		err := Run(t.Context(), env, steps(t, `
  - create: {kind: StatefulSet, name: web, manifest: {}}
    await: {until: condition=Ready, within: 20s}
`))
		const want = "step 0 (create StatefulSet web, then await StatefulSet web condition=Ready within 20s): " +
			"StatefulSet chaos/web: expected condition=Ready within 20s, found no condition Ready"
		if err == nil || err.Error() != want || !errors.Is(err, ErrUnmet) {
			t.Errorf("error\n got %v\nwant %s", err, want)
		}
	})
}

// TestGenericErrors verifies the errors of Run if Env lacks the dynamic client or the kind of an
// object.
func TestGenericErrors(t *testing.T) {
	all := steps(t, `
  - create: {apiVersion: example.com/v1, kind: Widget, name: one, manifest: {}}
  - delete: {kind: Widget, name: one}
`)
	for _, test := range []struct {
		name  string
		steps []scenario.Step
		env   func(*Env)
		want  string
	}{
		{"no dynamic client", all, func(env *Env) { env.Dynamic = nil }, "kind Widget needs a dynamic client, but workload.Env.Dynamic is nil; set workload.Env.Dynamic"},
		{"no description", all[1:], func(*Env) {}, "found unknown kind Widget; add the kind to workload.Env.Kinds, or the field apiVersion to a create step of the kind"},
		{"no object", all[1:], func(env *Env) {
			env.Kinds = []kube.Kind{kube.CustomResource(kube.SplitGVK("example.com/v1", "Widget"), "widgets", false)}
		}, `widgets.example.com "one" not found`},
	} {
		recorded := records{}
		env, _ := newDynamicEnv(&recorded)
		test.env(&env)
		if err := Run(t.Context(), env, test.steps); err == nil || !strings.HasSuffix(err.Error(), test.want) {
			t.Errorf("%s: error %v; want %s", test.name, err, test.want)
		}
	}
}

// TestBuildGeneric verifies which pod templates of a manifest get the container of the
// workload's pods. It also verifies which containers get the image of these pods.
func TestBuildGeneric(t *testing.T) {
	pods := Pods{Image: "standin:1"}
	for _, test := range []struct {
		name, create string
		path         []string
		wantImages   []string
		wantSpec     bool // the template also has the tolerations
	}{
		{"no template", "kind: ConfigMap, name: a, manifest: {data: {a: b}}", nil, nil, false},
		{"no pod spec", "kind: StatefulSet, name: a, manifest: {spec: {template: {metadata: {}}}}", []string{"spec", "template"}, []string{"pause standin:1 8080"}, true},
		{"no containers", "kind: Job, name: a, manifest: {spec: {template: {spec: {restartPolicy: Never}}}}", []string{"spec", "template"}, []string{"pause standin:1 8080"}, true},
		{"a template in a template", "kind: CronJob, apiVersion: batch/v1, name: a, manifest: {spec: {jobTemplate: {spec: {template: {}}}}}",
			[]string{"spec", "jobTemplate", "spec", "template"}, []string{"pause standin:1 8080"}, true},
		{"the image of the stand-in", "kind: StatefulSet, name: a, manifest: {spec: {template: {spec: {containers: [{name: main, image: 'localhost/gauntlet/standin:run'}, {name: own, image: x}]}}}}",
			[]string{"spec", "template"}, []string{"main standin:1 8080", "own x"}, true},
		{"no image", "kind: DaemonSet, name: a, manifest: {spec: {template: {spec: {containers: [{name: main, ports: [{containerPort: 7}]}]}}}}",
			[]string{"spec", "template"}, []string{"main standin:1 7"}, true},
		{"another image", "kind: StatefulSet, name: a, manifest: {spec: {template: {spec: {containers: [{name: own, image: x}]}}}}",
			[]string{"spec", "template"}, []string{"own x"}, false},
		{"a custom resource", "apiVersion: example.com/v1, kind: Machine, name: a, manifest: {spec: {template: {spec: {size: 3}}}}",
			[]string{"spec", "template"}, nil, false},
		{"a custom resource with the stand-in", "apiVersion: example.com/v1, kind: Rollout, name: a, manifest: {spec: {template: {spec: {containers: [{name: main, image: 'localhost/gauntlet/standin:run'}, {name: own}]}}}}",
			[]string{"spec", "template"}, []string{"main standin:1 8080", "own "}, true},
	} {
		create := steps(t, "  - create: {"+test.create+"}\n")[0].Operation.(*scenario.Create)
		before := create.Manifest.Copy()
		of := kind{Kind: kube.Generic(kube.SplitGVK(create.APIVersion, string(create.Kind))), namespace: namespace}
		object, err := buildGeneric(create, of, "a", pods.spec())
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if diff := cmp.Diff(before, create.Manifest.Copy()); diff != "" {
			t.Errorf("%s: the manifest changed (-before +after):\n%s", test.name, diff)
		}
		if object.GetName() != "a" || object.GetNamespace() != namespace || object.GetKind() != string(create.Kind) || object.GetAPIVersion() != create.APIVersion {
			t.Errorf("%s: %s %s %s/%s", test.name, object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName())
		}
		fields, _, _ := unstructured.NestedMap(object.Object, test.path...)
		var template corev1.PodTemplateSpec
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &template); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		var images []string
		for _, c := range template.Spec.Containers {
			words := c.Name + " " + c.Image
			if len(c.Ports) > 0 {
				words += fmt.Sprintf(" %d", c.Ports[0].ContainerPort)
			}
			images = append(images, words)
			if c.Image == "standin:1" && c.ReadinessProbe == nil {
				t.Errorf("%s: container %s has no probe", test.name, c.Name)
			}
		}
		if diff := cmp.Diff(test.wantImages, images); diff != "" {
			t.Errorf("%s: containers (-want +got):\n%s", test.name, diff)
		}
		if got := len(template.Spec.Tolerations) > 0; got != test.wantSpec {
			t.Errorf("%s: tolerations %t; want %t", test.name, got, test.wantSpec)
		}
	}
}

// TestMeets verifies conditions on fields in the syntax of kubectl wait.
func TestMeets(t *testing.T) {
	object := func(fields map[string]any) runtime.Object { return &unstructured.Unstructured{Object: fields} }
	conditions := func(generation int64, condition map[string]any) runtime.Object {
		return object(map[string]any{
			"metadata": map[string]any{"generation": generation},
			"status":   map[string]any{"observedGeneration": int64(2), "conditions": []any{map[string]any{"type": "Other", "status": "True"}, condition}},
		})
	}
	ready := map[string]any{"type": "Ready", "status": "False"}
	status := object(map[string]any{"status": map[string]any{
		"phase": "Running", "replicas": int64(3), "empty": "", "null": nil, "ok": false,
		"list": []any{map[string]any{"a": "b", "c": "d"}, map[string]any{"a": "x"}},
	}})
	replaced := object(map[string]any{
		"metadata": map[string]any{"generation": int64(2)}, "spec": map[string]any{"size": int64(3)},
		"status": map[string]any{"observedGeneration": int64(1), "phase": "Running"},
	})
	for _, test := range []struct {
		name      string
		object    runtime.Object
		until     scenario.Until
		want      bool
		wantState string
		wantErr   string
	}{
		{"no object", nil, "condition=Ready", false, "no such object", ""},
		{"condition", conditions(2, ready), "condition=Ready=false", true, "condition Ready=False", ""},
		{"another case", conditions(2, ready), "condition=ready=FALSE", true, "condition Ready=False", ""},
		{"another status", conditions(2, ready), "condition=Ready", false, "condition Ready=False", ""},
		{"no condition", conditions(2, ready), "condition=Established", false, "no condition Established", ""},
		{"no status", object(map[string]any{}), "condition=Ready", false, "no condition Ready", ""},
		{"an old status", conditions(3, ready), "condition=Ready=false", false, "condition Ready=False, observedGeneration 2 of 3", ""},
		{"an old condition", conditions(2, map[string]any{"type": "Ready", "status": "True", "observedGeneration": int64(1)}), "condition=Ready", false, "condition Ready=True, observedGeneration 1 of 2", ""},
		{"text", status, "jsonpath={.status.phase}=Running", true, `"Running" at {.status.phase}`, ""},
		{"another text", status, "jsonpath={.status.phase}=Failed", false, `"Running" at {.status.phase}`, ""},
		{"number", status, "jsonpath={.status.replicas}=3", true, `"3" at {.status.replicas}`, ""},
		{"boolean", status, "jsonpath={.status.ok}=false", true, `"false" at {.status.ok}`, ""},
		{"missing", status, "jsonpath={.status.missing}=3", false, "nothing at {.status.missing}", ""},
		{"index of a number", status, "jsonpath={.status.replicas[0]}=3", false, "", "JSONPath {.status.replicas[0]} has an index, but found a value that is no list; expected the path of a list before ["},
		{"null", status, "jsonpath={.status.null}=3", false, "nothing at {.status.null}", ""},
		{"an old value", replaced, "jsonpath={.status.phase}=Running", false, `"Running" at {.status.phase}, observedGeneration 1 of 2`, ""},
		{"a value of the spec beside an old status", replaced, "jsonpath={.spec.size}=3", true, `"3" at {.spec.size}`, ""},
		{"any value", status, "jsonpath={.status.phase}", true, "a value at {.status.phase}", ""},
		{"any value of several", status, "jsonpath={.status.list}", true, "a value at {.status.list}", ""},
		{"any value, empty", status, "jsonpath={.status.empty}", false, "nothing at {.status.empty}", ""},
		{"any value, null", status, "jsonpath={.status.null}", false, "nothing at {.status.null}", ""},
		{"any value, missing", status, "jsonpath={.status.missing}", false, "nothing at {.status.missing}", ""},
		{"no value", status, "no jsonpath={.status.missing}", true, "nothing at {.status.missing}", ""},
		{"no value, empty", status, "no jsonpath={.status.empty}", true, "nothing at {.status.empty}", ""},
		{"no value, but there is one", status, "no jsonpath={.status.phase}", false, "a value at {.status.phase}", ""},
		{"no value in an old status", replaced, "no jsonpath={.status.missing}", false, "nothing at {.status.missing}, observedGeneration 1 of 2", ""},
		{"no value of several", status, "no jsonpath={.status.list[*].a}", false, "", "found 2 values at JSONPath {.status.list[*].a}; expected one"},
		{"filter", status, `jsonpath={.status.list[?(@.a=="b")].c}=d`, true, `"d" at {.status.list[?(@.a=="b")].c}`, ""},
		{"several values", status, "jsonpath={.status.list[*].a}=b", false, "", "found 2 values at JSONPath {.status.list[*].a}; expected one"},
		{"an object", status, "jsonpath={.status}=b", false, "", `found an object or a list at JSONPath {.status}; expected a text, number or boolean to compare with "b"`},
		{"a typed object", &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}, "jsonpath={.status.phase}=Running", true, `"Running" at {.status.phase}`, ""},
	} {
		condition, err := test.until.FieldCondition()
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		got, state, err := meets(test.object, condition)
		if got != test.want || state != test.wantState {
			t.Errorf("%s:\n got %t, %s\nwant %t, %s", test.name, got, state, test.want, test.wantState)
		}
		if (err == nil) != (test.wantErr == "") || err != nil && err.Error() != test.wantErr {
			t.Errorf("%s: error %v; want %q", test.name, err, test.wantErr)
		}
	}
}
