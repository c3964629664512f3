package workload

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// StandInImage is the name that manifests use for the image of the workload's pods, which is
// [Pods.Image]. That image runs the program standin, which becomes ready and terminates after given
// delays. On a kind cluster, each node has the image under this name.
const StandInImage = "localhost/gauntlet/standin:run"

// buildGeneric returns the object that a create operation of a generic kind creates. A generic
// kind is one whose create operation needs a manifest. Fields that the manifest's pod templates
// lack come from the argument pod, as [scenario.Create] describes.
func buildGeneric(create *scenario.Create, of kind, name string, pod corev1.PodSpec) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{Object: create.Manifest.Copy()}
	object.SetGroupVersionKind(of.GVK())
	object.SetName(name)
	if of.namespace != "" {
		object.SetNamespace(of.namespace)
	}
	if err := completePodTemplates(object, of.Builtin(), pod); err != nil {
		return nil, fmt.Errorf("filling in the defaults of the pod template of %s: %w", of.describe(name), err)
	}
	return object, nil
}

// Manifest returns the object that a create operation with a manifest creates, for checks before a run. The object has
// no namespace. Containers without an image have the image [StandInImage].
func Manifest(create *scenario.Create) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{Object: create.Object()}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "standin", Image: StandInImage}}}
	return object, completePodTemplates(object, kube.Generic(object.GroupVersionKind()).Builtin(), pod)
}

// completePodTemplates adds missing fields to the pod templates of an object; see completePodTemplate.
func completePodTemplates(object *unstructured.Unstructured, builtin bool, pod corev1.PodSpec) error {
	for _, path := range podTemplates {
		template, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
		if fields, ok := template.(map[string]any); ok && err == nil {
			if err := completePodTemplate(fields, builtin, pod); err != nil {
				return err
			}
		}
	}
	return nil
}

// podTemplates are the paths of the pod templates in objects of built-in kinds. Custom resources
// often use the same paths.
var podTemplates = [][]string{{"spec", "template"}, {"spec", "jobTemplate", "spec", "template"}}

// completePodTemplate adds missing fields to a pod template of a manifest. With these fields,
// gauntlet can control the pods.
//
//   - In a built-in kind, a template without containers gets the container of the workload's pods.
//   - Each container for which [hasStandIn] returns true gets the image of the workload's pods. It
//     also gets those fields of their container that it lacks, such as the readiness probe.
//   - If a container changed, the template also gets those fields of the pod spec that it lacks,
//     such as the tolerations.
//
// A custom resource (builtin is false) may have another value at a path in podTemplates.
// completePodTemplate therefore changes it only if a container has the image [StandInImage].
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
// pods. The image of such a container is [StandInImage]. In a built-in kind, the image may also
// be missing.
func hasStandIn(container map[string]any, builtin bool) bool {
	image, _ := container["image"].(string)
	return image == StandInImage || image == "" && builtin
}

// addMissing copies fields into a JSON object. It copies only fields that the object does not
// have.
func addMissing(object, fields map[string]any) {
	for name, value := range runtime.DeepCopyJSON(maps.Clone(fields)) {
		if _, has := object[name]; !has {
			object[name] = value
		}
	}
}
