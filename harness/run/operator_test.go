package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/internal/operator"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// operatorVariable is an environment variable. If it is set, the test binary runs an operator,
// which creates a PersistentVolumeClaim for each Widget.
const operatorVariable = "GAUNTLET_RUN_TEST_OPERATOR"

var widgetResource = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

const widgetManifests = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: widget-operator}
rules:
  - {apiGroups: [example.com], resources: [widgets, widgets/status], verbs: [list, watch, update]}
  - {apiGroups: [""], resources: [persistentvolumeclaims], verbs: [create, get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: widget-operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: widget-operator}
subjects: [{kind: ServiceAccount, name: widget-operator, namespace: system}]
`

const widgetScenario = `
name: widgets
description: Widgets are created and deleted, and the operator restarts.
workload:
  - create: {kind: Widget, apiVersion: example.com/v1, name: one, manifest: {spec: {size: 1}}}
    await: {until: 'jsonpath={.status.phase}=Bound', within: 30s}
  - create: {kind: Widget, apiVersion: example.com/v1, name: two, manifest: {spec: {size: 1}}}
    await: {until: 'jsonpath={.status.phase}=Bound', within: 30s}
  - delete: {kind: Widget, name: one}
    await: {until: gone, within: 30s}
faults:
  - restart: {how: kill, replica: leader}
    when: {request: {verb: create, resource: persistentvolumeclaims, nth: 2, phase: committed}}
settle: {within: 30s, quiet: 1s}
`

// TestOperator runs an operator that a subject file describes. The operator has only the
// permissions of its roles, and its claims are bound to simulated volumes. Where the machine permits
// it, the operator uses the configuration that a program in a cluster has.
func TestOperator(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"manifests.yaml": widgetManifests,
		"subject.yaml":   fmt.Sprintf("subject:\n  exec: %s\n  env: {%s: 'yes'}\n  manifests: [manifests.yaml]\n", os.Args[0], operatorVariable),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loaded, err := operator.Load(t.Context(), filepath.Join(dir, "subject.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// Without the operator, gauntlet does not know the resource in the trigger.
	text := strings.Replace(widgetScenario, "workload:", "operator: {kinds: [{apiVersion: v1, kind: PersistentVolumeClaim}]}\nworkload:", 1)
	s, err := scenario.Parse("widgets", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s.Operator = &loaded.Scenario
	result, err := Run(t.Context(), options(s, loaded.Target, t.TempDir(), func(message string) { t.Log(message) }))
	if err != nil {
		t.Fatal(err)
	}
	if result.Verdict != check.Pass {
		t.Errorf("verdict %s: %s", result.Verdict, result.Reason)
	}
	exercised := map[string]bool{}
	for _, r := range result.Results {
		exercised[r.Check] = r.Verdict == check.Pass
	}
	for _, id := range []string{"process-alive", "no-writes-when-settled", "needless-writes"} {
		if !exercised[id] {
			t.Errorf("check %s did not pass", id)
		}
	}
}

// operatorMain runs the operator until the process ends.
func operatorMain(ctx context.Context) error {
	config, err := rest.InClusterConfig()
	if process.MountsSupported() != nil {
		config, err = clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	}
	if err != nil {
		return err
	}
	widgets, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	client := widgets.Resource(widgetResource)
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if err := reconcileWidget(ctx, config, client, &list.Items[i]); err != nil {
			return err
		}
	}
	watch, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return err
	}
	for event := range watch.ResultChan() {
		if widget, ok := event.Object.(*unstructured.Unstructured); ok && event.Type == "ADDED" {
			if err := reconcileWidget(ctx, config, client, widget); err != nil {
				return err
			}
		}
	}
	return errors.New("the watch has ended")
}

// reconcileWidget creates a Widget's claim, waits until the claim is bound, and writes the Widget's
// status.
func reconcileWidget(ctx context.Context, config *rest.Config, widgets dynamic.NamespaceableResourceInterface, widget *unstructured.Unstructured) error {
	if phase, _, _ := unstructured.NestedString(widget.Object, "status", "phase"); phase == "Bound" {
		return nil
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	claims := core.CoreV1().PersistentVolumeClaims(widget.GetNamespace())
	_, err = claims.Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:            widget.GetName(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(widget, widgetResource.GroupVersion().WithKind("Widget"))},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	for bound := false; !bound; {
		claim, err := claims.Get(ctx, widget.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		bound = claim.Status.Phase == corev1.ClaimBound
	}
	widget = widget.DeepCopy()
	if err := unstructured.SetNestedField(widget.Object, "Bound", "status", "phase"); err != nil {
		return err
	}
	_, err = widgets.Namespace(widget.GetNamespace()).UpdateStatus(ctx, widget, metav1.UpdateOptions{})
	return err
}
