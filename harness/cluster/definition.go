package cluster

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// AwaitEstablished waits until the API server serves the custom resources of a CustomResourceDefinition.
// The argument definitions is a client for CustomResourceDefinitions.
func AwaitEstablished(ctx context.Context, definitions dynamic.ResourceInterface, name string) error {
	const interval = 20 * time.Millisecond
	return Poll(ctx, interval, "CustomResourceDefinition "+name+" to be Established", func(ctx context.Context) error {
		found, err := definitions.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return established(found)
	})
}

// established returns nil if a CustomResourceDefinition has the condition Established=True. The API
// server then serves its custom resources. Otherwise, the error contains the current conditions.
func established(definition *unstructured.Unstructured) error {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		if fields["type"] == "Established" && fields["status"] == "True" {
			return nil
		}
		if fields["type"] == "NamesAccepted" && fields["status"] == "False" {
			return fmt.Errorf("the API server does not accept the names of CustomResourceDefinition %s: %v", definition.GetName(), fields["message"])
		}
	}
	return fmt.Errorf("CustomResourceDefinition %s has the conditions %v; expected Established=True", definition.GetName(), conditions)
}
