package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestProjectGeneric requires that Project converts objects without a Go type. From objects that
// can contain credentials, it must remove annotations and body.
func TestProjectGeneric(t *testing.T) {
	widget := map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{
			"name": "w", "namespace": "n", "uid": "u", "resourceVersion": "42", "generation": int64(2),
			"creationTimestamp": "2026-01-02T04:04:05+01:00", "deletionTimestamp": "2026-01-02T03:04:06Z",
			"labels": map[string]any{"app": "web"}, "finalizers": []any{"example.com/hold"},
			"ownerReferences": []any{map[string]any{"apiVersion": "example.com/v1", "kind": "Gadget", "name": "g", "uid": "v", "controller": true}},
			"managedFields":   []any{map[string]any{"manager": "m"}},
		},
		"spec": map[string]any{"size": int64(3), "ratio": 0.5},
		"data": "text",
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "n", Annotations: map[string]string{"last-applied": "password"}, Labels: map[string]string{"app": "web"}},
		Data:       map[string][]byte{"password": []byte("password")},
	}
	untypedSecret, err := runtime.DefaultUnstructuredConverter.ToUnstructured(secret)
	if err != nil {
		t.Fatal(err)
	}
	wantSecret := Object{Ref: Ref{Resource: "secrets", Namespace: "n", Name: "s"}, Labels: map[string]string{"app": "web"}}
	tests := []struct {
		name, resource string
		object         runtime.Object
		want           Object
	}{
		{"a custom resource", "widgets.example.com", &unstructured.Unstructured{Object: widget}, Object{
			Ref:        Ref{Resource: "widgets.example.com", Namespace: "n", Name: "w", UID: "u", Version: 42},
			Generation: 2,
			Created:    epoch,
			Deleting:   epoch.Add(1e9),
			Labels:     map[string]string{"app": "web"},
			Finalizers: []string{"example.com/hold"},
			Owners:     []Owner{{Kind: "Gadget", Name: "g", UID: "v", Controller: true, DoesNotBlock: true}},
			Body:       json.RawMessage(`{"data":"text","spec":{"ratio":0.5,"size":3}}`),
		}},
		{"a custom resource with metadata only", "widgets.example.com", &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "w"}}},
			Object{Ref: Ref{Resource: "widgets.example.com", Name: "w"}}},
		{"a Secret", "secrets", secret, wantSecret},
		{"a Secret without a Go type", "secrets", &unstructured.Unstructured{Object: untypedSecret}, wantSecret},
	}
	for _, test := range tests {
		got, err := Project(test.resource, test.object)
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: error %v (-want +got):\n%s", test.name, err, diff)
		}
	}
	if _, found := widget["metadata"]; !found {
		t.Error("Project changed the object")
	}
}

// TestBodyOfTypes verifies the body of Go types: all fields except kind, apiVersion and metadata.
// Project must not change the object.
func TestBodyOfTypes(t *testing.T) {
	metadata := metav1.ObjectMeta{Name: "a", Namespace: "n", ResourceVersion: "1", CreationTimestamp: metav1.Now(), Labels: map[string]string{"metadata": "x"}}
	replicas := int32(3)
	for _, object := range []runtime.Object{
		&appsv1.Deployment{TypeMeta: metav1.TypeMeta{Kind: "Deployment"}, ObjectMeta: metadata, Spec: appsv1.DeploymentSpec{Replicas: &replicas}},
		&corev1.ConfigMap{ObjectMeta: metadata, Data: map[string]string{"metadata": "x"}, BinaryData: map[string][]byte{"b": {1}}},
		&corev1.Event{ObjectMeta: metadata, Reason: "Started", InvolvedObject: corev1.ObjectReference{Kind: "Pod"}},
		&metav1.PartialObjectMetadata{ObjectMeta: metadata},
	} {
		before := object.DeepCopyObject()
		projected, err := Project("things", object)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, object); diff != "" {
			t.Errorf("%T: Project changed the object (-before +after):\n%s", object, diff)
		}
		want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"kind", "apiVersion", "metadata"} {
			delete(want, field)
		}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got := string(projected.Body)
		if got == "" {
			got = "{}"
		}
		equal(t, fmt.Sprintf("%T", object), got, string(text))
	}
}

// equal fails the test if two JSON texts differ in more than the order of fields.
func equal(t *testing.T, name, got, want string) {
	t.Helper()
	var a, b any
	if err := errors.Join(json.Unmarshal([]byte(got), &a), json.Unmarshal([]byte(want), &b)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if diff := cmp.Diff(b, a); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
