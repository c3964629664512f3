package environment_test

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
)

// ExampleStart starts a control plane with a fault proxy. A fault then makes a client's requests
// fail.
func ExampleStart() {
	ctx := context.Background()
	e, err := environment.Start(ctx, environment.Options{ControlPlane: providers.Options{Nodes: 1}})
	if err != nil {
		panic(err)
	}
	if err := errors.Join(failRequests(ctx, e), e.Stop(ctx)); err != nil {
		panic(err)
	}
	// Output:
	// with the fault: InternalError
	// healed: true
}

// failRequests lists nodes through the fault proxy, first with the fault api-error and then without
// the fault.
func failRequests(ctx context.Context, e *environment.Environment) error {
	if err := e.StartProxy(ctx, nil); err != nil {
		return err
	}
	config, err := e.ProxyConfig("client")
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	heal, err := e.Inject(ctx, environment.Injection{Fault: "api-error", Params: "{verb: list, resource: nodes, code: 500, every: 1}"})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	fmt.Println("with the fault:", apierrors.ReasonForError(err))
	if err := heal(ctx); err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	fmt.Println("healed:", err == nil)
	return nil
}
