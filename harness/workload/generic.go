package workload

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// StandInImage is the image that manifests name for the container of the workload's pods.
// It is also the image reference of the stand-in on nodes of a kind cluster.
const StandInImage = "localhost/gauntlet/standin:run"

// buildGeneric returns the object of the given name that a create of a generic kind
// creates. Its pod templates get the container of the given pod spec; see
// [scenario.Create].
func buildGeneric(create *scenario.Create, of kind, name string, pod corev1.PodSpec) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{Object: create.Manifest.Copy()}
	object.SetGroupVersionKind(of.GVK())
	object.SetName(name)
	if of.namespace != "" {
		object.SetNamespace(of.namespace)
	}
	for _, path := range podTemplates {
		template, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
		if fields, ok := template.(map[string]any); ok && err == nil {
			if err := completePodTemplate(fields, of.Builtin(), pod); err != nil {
				return nil, fmt.Errorf("completing the pod template of %s: %w", of.describe(name), err)
			}
		}
	}
	return object, nil
}

// podTemplates are the paths of pod templates in the objects of Kubernetes. Custom resources
// often use them too.
var podTemplates = [][]string{{"spec", "template"}, {"spec", "jobTemplate", "spec", "template"}}

// completePodTemplate adds the container of the workload's pods to a template without
// containers. It also completes containers that have no image of their own. If it changes a
// container, it adds those fields of the pod spec that the template lacks.
//
// The template of a custom resource may be something else than a pod template. There, only
// containers with the image StandInImage are completed.
func completePodTemplate(template map[string]any, builtin bool, pod corev1.PodSpec) error {
	own, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod)
	if err != nil {
		return err
	}
	container := own["containers"].([]any)[0].(map[string]any)
	delete(own, "containers")

	spec, _ := template["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	changed := false
	if len(containers) == 0 && builtin {
		if spec == nil {
			spec = map[string]any{}
			template["spec"] = spec
		}
		spec["containers"], changed = []any{container}, true
	}
	for _, found := range containers {
		if fields, ok := found.(map[string]any); ok && hasStandIn(fields, builtin) {
			delete(fields, "image")
			addMissing(fields, container)
			changed = true
		}
	}
	if changed {
		addMissing(spec, own)
	}
	return nil
}

// hasStandIn reports whether a container of a manifest must run the image of the workload's
// pods.
func hasStandIn(container map[string]any, builtin bool) bool {
	image, _ := container["image"].(string)
	return image == StandInImage || image == "" && builtin
}

// addMissing adds a copy of those fields that the object lacks.
func addMissing(object, fields map[string]any) {
	for name, value := range runtime.DeepCopyJSON(maps.Clone(fields)) {
		if _, has := object[name]; !has {
			object[name] = value
		}
	}
}
