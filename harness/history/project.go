package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Project returns an API object in the form in which histories store it. It neither keeps nor
// changes the API object.
//
// The observer, which records committed versions, and the fault proxy both use Project. Both
// therefore write the same record for the same version. Both decode objects of client-go's kinds
// to Go types, and other objects to unstructured objects.
//
// If objects of the resource can contain credentials, the result has neither annotations nor body.
// An annotation of kubectl apply contains the whole object.
func Project(resource string, obj runtime.Object) (Object, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return Object{}, fmt.Errorf("reading the metadata of an object of resource %s: %w", resource, err)
	}
	object, err := ProjectMeta(resource, m)
	if err != nil {
		return Object{}, err
	}
	if HoldsCredentials(resource) {
		object.Annotations = nil
		return object, nil
	}
	if object.Body, err = body(obj); err != nil {
		return Object{}, fmt.Errorf("encoding the body of %s: %w", object.Ref, err)
	}
	return object, nil
}

// HoldsCredentials reports whether objects of a resource can contain credentials: Secrets and
// TokenReviews.
func HoldsCredentials(resource string) bool {
	return resource == "secrets" || resource == "tokenreviews.authentication.k8s.io"
}

// ProjectMeta returns the metadata of an API object in the form in which histories store it. The
// result has no body.
func ProjectMeta(resource string, m metav1.Object) (Object, error) {
	version, err := ParseVersion(m.GetResourceVersion())
	if err != nil {
		return Object{}, fmt.Errorf("reading the metadata of %s %s/%s: %w", resource, m.GetNamespace(), m.GetName(), err)
	}
	object := Object{
		Ref: Ref{
			Resource:  resource,
			Namespace: m.GetNamespace(),
			Name:      m.GetName(),
			UID:       m.GetUID(),
			Version:   version,
		},
		GenerateName: m.GetGenerateName(),
		Generation:   m.GetGeneration(),
		Created:      utc(m.GetCreationTimestamp().Time),
		Labels:       m.GetLabels(),
		Annotations:  m.GetAnnotations(),
		Finalizers:   m.GetFinalizers(),
	}
	if t := m.GetDeletionTimestamp(); t != nil {
		object.Deleting = utc(t.Time)
	}
	for _, owner := range m.GetOwnerReferences() {
		object.Owners = append(object.Owners, Owner{
			Kind:         owner.Kind,
			Name:         owner.Name,
			UID:          owner.UID,
			Controller:   owner.Controller != nil && *owner.Controller,
			DoesNotBlock: owner.BlockOwnerDeletion == nil || !*owner.BlockOwnerDeletion,
		})
	}
	return object, nil
}

// utc converts a time to UTC, so that times of different sources are comparable. A zero time
// stays zero.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

// withoutMetadata returns a shallow copy of an API object with empty kind, apiVersion and metadata.
// If the object's Go type has no fields TypeMeta and ObjectMeta, withoutMetadata returns the object
// itself. An example of such a type is unstructured.Unstructured.
func withoutMetadata(obj runtime.Object) any {
	object := reflect.ValueOf(obj).Elem()
	if object.Kind() != reflect.Struct || !object.FieldByName("TypeMeta").IsValid() || !object.FieldByName("ObjectMeta").IsValid() {
		return obj
	}
	bare := reflect.New(object.Type()).Elem()
	bare.Set(object)
	bare.FieldByName("TypeMeta").SetZero()
	bare.FieldByName("ObjectMeta").SetZero()
	return bare.Addr().Interface()
}

// body returns the fields of an API object as JSON, without kind, apiVersion and metadata. For a
// pod, it returns only the fields that checks read.
func body(obj runtime.Object) (json.RawMessage, error) {
	if pod, ok := obj.(*corev1.Pod); ok { // fast path: most objects are pods
		return json.Marshal(struct {
			Spec   corev1.PodSpec   `json:"spec"`
			Status corev1.PodStatus `json:"status"`
		}{trimPodSpec(&pod.Spec), trimPodStatus(&pod.Status)})
	}
	encoded, err := json.Marshal(withoutMetadata(obj))
	if err != nil {
		return nil, err
	}
	rest, bare := bytes.CutPrefix(encoded, []byte(`{"metadata":{}`))
	switch {
	case bare && string(rest) == "}":
		return nil, nil
	case bare: // fast path: nothing is decoded
		return append([]byte("{"), bytes.TrimPrefix(rest, []byte(","))...), nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return nil, err
	}
	for _, name := range []string{"kind", "apiVersion", "metadata"} {
		delete(fields, name)
	}
	if len(fields) == 0 {
		return nil, nil
	}
	return json.Marshal(fields)
}

// trimPodSpec returns a pod's spec with only the fields that checks read: node, hostname,
// subdomain, and parts of the containers. Otherwise thousands of pods would repeat the whole
// template in the history.
func trimPodSpec(spec *corev1.PodSpec) corev1.PodSpec {
	kept := corev1.PodSpec{NodeName: spec.NodeName, Hostname: spec.Hostname, Subdomain: spec.Subdomain}
	for i := range spec.Containers {
		kept.Containers = append(kept.Containers, trimContainer(&spec.Containers[i]))
	}
	for i := range spec.InitContainers {
		kept.InitContainers = append(kept.InitContainers, trimContainer(&spec.InitContainers[i]))
	}
	return kept
}

// trimContainer returns a container with only the fields that checks read, such as the image and
// the ports.
func trimContainer(c *corev1.Container) corev1.Container {
	return corev1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports, RestartPolicy: c.RestartPolicy}
}

// trimPodStatus returns a pod's status with only the fields that checks read, such as the phase
// and the conditions.
func trimPodStatus(status *corev1.PodStatus) corev1.PodStatus {
	kept := corev1.PodStatus{
		Phase:      status.Phase,
		Conditions: status.Conditions,
		Reason:     status.Reason,
		PodIP:      status.PodIP,
		PodIPs:     status.PodIPs,
	}
	for i := range status.ContainerStatuses {
		c := &status.ContainerStatuses[i]
		kept.ContainerStatuses = append(kept.ContainerStatuses,
			corev1.ContainerStatus{Name: c.Name, Ready: c.Ready, RestartCount: c.RestartCount})
	}
	return kept
}
