package existing

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// probeTimeout is the time that an active controller has to react to its probe.
// A running controller reacts within milliseconds. Just after a leader change it may
// take longer than probeTimeout, and is then not detected.
const probeTimeout = 5 * time.Second

// probe is an object that shows whether a controller is active.
// An active controller reacts to the object by setting a field.
type probe struct {
	controller string // name in kube-controller-manager
	resource   schema.GroupVersionResource
	kind       string
	spec       map[string]any
	// resultResource is the resource of the object that the controller writes. The
	// object has the same name as the probe.
	resultResource schema.GroupVersionResource
	// resultField is the path of the field that the controller sets.
	resultField []string
}

var (
	core = schema.GroupVersion{Version: "v1"}
	apps = schema.GroupVersion{Group: "apps", Version: "v1"}
)

// probes contains one probe for each of the four controllers. No probe causes a
// controller to create a pod.
var probes = []probe{
	workloadProbe("replicationcontroller-controller", core, "ReplicationController", "replicationcontrollers", probeLabels),
	workloadProbe("replicaset-controller", apps, "ReplicaSet", "replicasets", map[string]any{"matchLabels": probeLabels}),
	workloadProbe("deployment-controller", apps, "Deployment", "deployments", map[string]any{"matchLabels": probeLabels}),
	{
		controller: "endpoints-controller",
		resource:   core.WithResource("services"), kind: "Service",
		spec:           map[string]any{"selector": probeLabels, "clusterIP": "None"},
		resultResource: core.WithResource("endpoints"), resultField: []string{"metadata", "uid"},
	},
}

var probeLabels = map[string]any{"gauntlet": "probe"}

// workloadProbe returns the probe of a workload controller: an object with 0 replicas.
func workloadProbe(controller string, group schema.GroupVersion, kind, resource string, selector map[string]any) probe {
	gvr := group.WithResource(resource)
	return probe{
		controller: controller, resource: gvr, kind: kind,
		spec: map[string]any{
			"replicas": int64(0),
			"selector": selector,
			"template": map[string]any{
				"metadata": map[string]any{"labels": probeLabels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "none", "image": "none"}}},
			},
		},
		resultResource: gvr, resultField: []string{"status", "observedGeneration"},
	}
}

// activeControllers returns the names of the controllers under test that are active on the
// cluster. They are in the order of [cluster.SubjectControllers].
func activeControllers(ctx context.Context, client dynamic.Interface) (controllers []string, err error) {
	name := "probe-" + utilrand.String(5)
	for _, p := range probes {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": p.resource.GroupVersion().String(), "kind": p.kind,
			"metadata": map[string]any{"name": name},
			"spec":     p.spec,
		}}
		objects := client.Resource(p.resource).Namespace(Namespace)
		if _, err := objects.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("existing cluster: creating %s %s/%s to probe the %s: %w", p.kind, Namespace, name, p.controller, err)
		}
		defer func() {
			deleteErr := objects.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{})
			if deleteErr != nil && !apierrors.IsNotFound(deleteErr) {
				err = errors.Join(err, fmt.Errorf("existing cluster: deleting %s %s/%s: %w", p.kind, Namespace, name, deleteErr))
			}
		}()
	}
	waiting, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for _, p := range probes {
		err := cluster.Poll(waiting, pollInterval, "the "+p.controller, func(ctx context.Context) error {
			return p.checkResult(ctx, client, name)
		})
		if err == nil {
			controllers = append(controllers, p.controller)
		}
	}
	return controllers, ctx.Err()
}

// checkResult returns nil if a controller has reacted to the probe, and an error
// otherwise.
func (p probe) checkResult(ctx context.Context, client dynamic.Interface, name string) error {
	object, err := client.Resource(p.resultResource).Namespace(Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if _, found, _ := unstructured.NestedFieldNoCopy(object.Object, p.resultField...); !found {
		return errors.New("no controller has reacted to the probe")
	}
	return nil
}
