package embedded

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// definitionResource is the resource of CustomResourceDefinitions.
var definitionResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// createDefinitions creates CustomResourceDefinitions, and waits until the API server serves their custom
// resources.
func (c *Cluster) createDefinitions(ctx context.Context, definitions []*unstructured.Unstructured) error {
	if len(definitions) == 0 {
		return nil
	}
	client, err := dynamic.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return fmt.Errorf("creating a client for the API server: %w", err)
	}
	resource := client.Resource(definitionResource)
	for _, o := range definitions {
		if _, err := resource.Create(ctx, o, metav1.CreateOptions{}); err != nil {
			return cluster.CreateError(o, err)
		}
	}
	for _, o := range definitions {
		if err := cluster.AwaitEstablished(ctx, resource, o.GetName()); err != nil {
			return err
		}
	}
	return nil
}
