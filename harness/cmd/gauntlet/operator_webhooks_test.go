package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/internal/operator"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// TestNotebookWebhooksLive starts the small operator with its webhooks. The API server must call
// them, also after a restart of the operator and not while the operator is down.
func TestNotebookWebhooksLive(t *testing.T) {
	e := startNotebook(t, 2)
	notebooks := notebookClient{t, e.Dynamic}

	if size := notebooks.create("defaulted", "2"); size != "2Gi" {
		t.Errorf("the defaulting webhook changed spec.storage to %q; want 2Gi", size)
	}
	if _, err := notebooks.tryCreate("rejected", "much"); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "found much; expected a quantity") {
		t.Errorf("create of an invalid Notebook: error %v; want that of the validating webhook", err)
	}
	converted, err := e.Dynamic.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "notebooks"}).Namespace("default").Get(t.Context(), "defaulted", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if size, _, _ := unstructured.NestedString(converted.Object, "spec", "capacity"); size != "2Gi" {
		t.Errorf("the conversion webhook returned %v; want spec.capacity 2Gi", converted.Object["spec"])
	}

	for _, replica := range e.Subject.Replicas() {
		if _, err := e.Subject.Kill(t.Context(), replica); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := notebooks.tryCreate("down", "3"); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("create while the operator is down: error %v; want that the API server cannot call the webhook", err)
	}
	if err := e.Subject.Start(t.Context(), e.Subject.Replicas()[1]); err != nil {
		t.Fatal(err)
	}
	size := notebooks.create("restarted", "4")
	if size != "4Gi" {
		t.Errorf("after a restart, spec.storage is %q; want 4Gi", size)
	}
}

// startNotebook builds the small operator, and starts it on a control plane.
func startNotebook(t *testing.T, replicas int) *environment.Environment {
	t.Helper()
	tree, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	executable := filepath.Join(t.TempDir(), "notebook")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", executable, "./examples/operators/notebook")
	build.Dir = tree
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	loaded, err := operator.Load(t.Context(), notebookSubject(t, filepath.Join(tree, filepath.Dir(notebookSource)), "notebook-webhooks.yaml", executable))
	if err != nil {
		t.Fatal(err)
	}
	e, err := environment.Start(t.Context(), environment.Options{ControlPlane: providers.Options{Nodes: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if err := e.StartSubject(t.Context(), environment.SubjectOptions{Target: loaded.Target, Spec: scenario.Subject{Replicas: replicas}}); err != nil {
		t.Fatal(err)
	}
	return e
}

// notebookClient creates Notebooks in the namespace default.
type notebookClient struct {
	t      *testing.T
	client dynamic.Interface
}

// create creates a Notebook, and returns its spec.storage after admission. It tries again after an
// error, because the API server serves a new kind late.
func (c notebookClient) create(name, storage string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	var size string
	err := cluster.Poll(ctx, 50*time.Millisecond, "the create of a Notebook to succeed", func(context.Context) (err error) {
		size, err = c.tryCreate(name, storage)
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return size
}

// tryCreate does the same as create, but returns an error instead of trying again.
func (c notebookClient) tryCreate(name, storage string) (string, error) {
	made, err := c.client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "notebooks"}).Namespace("default").Create(c.t.Context(),
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Notebook",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"storage": storage},
		}}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	size, _, _ := unstructured.NestedString(made.Object, "spec", "storage")
	return size, nil
}
