package existing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// probeTimeout is how long Start waits for controllers to react to their probe objects. A
// controller that does not react in this time counts as inactive.
//
// A running controller usually reacts within milliseconds. Just after a change of the leader, a
// controller may need longer than probeTimeout. Start then wrongly considers the controller
// inactive.
const probeTimeout = 5 * time.Second

// probe describes an object that shows whether a controller is active, the probe object. gauntlet
// creates the object. An active controller then sets a field of the object, or creates another
// object.
type probe struct {
	controller string         // name of the controller, as in the flag --controllers
	kind       kube.Kind      // Kind of the probe object
	spec       map[string]any // spec of the probe object
	// resultKind is the Kind of the object that the controller writes when it reacts. That object
	// has the same name as the probe object.
	resultKind kube.Kind
	// resultField is the path of a field in the object of Kind resultKind. The field exists as soon
	// as the controller has reacted.
	resultField []string
}

// probes lists one probe for each controller that gauntlet can probe. Probe objects have 0
// replicas, so that no controller creates a pod.
var probes = []probe{
	workloadProbe("replicationcontroller-controller", kube.ReplicationController, map[string]any{
		"replicas": int64(0), "selector": probeLabels, "template": podTemplate,
	}),
	workloadProbe("replicaset-controller", kube.ReplicaSet, map[string]any{
		"replicas": int64(0), "selector": labelSelector, "template": podTemplate,
	}),
	workloadProbe("deployment-controller", kube.Deployment, map[string]any{
		"replicas": int64(0), "selector": labelSelector, "template": podTemplate,
	}),
	workloadProbe("statefulset-controller", "StatefulSet", map[string]any{
		"replicas": int64(0), "selector": labelSelector, "template": podTemplate, "serviceName": "probe",
	}),
	{
		controller: "endpoints-controller",
		kind:       kube.MustNamed(kube.Service),
		spec:       map[string]any{"selector": probeLabels, "clusterIP": "None"},
		resultKind: kube.MustNamed(kube.Endpoints), resultField: []string{"metadata", "uid"},
	},
}

// The labels, label selector and pod template of all probe objects. From the reactions to these
// objects, Start learns which controllers are active.
var (
	probeLabels   = map[string]any{"gauntlet": "probe"}
	labelSelector = map[string]any{"matchLabels": probeLabels}
	podTemplate   = map[string]any{
		"metadata": map[string]any{"labels": probeLabels},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "none", "image": "none"}}},
	}
)

// workloadProbe returns a probe for a controller that sets status.observedGeneration. Its probe
// object has the given Kind and spec.
func workloadProbe(controller, kind string, spec map[string]any) probe {
	k := kube.MustNamed(kind)
	return probe{
		controller: controller, kind: k, spec: spec,
		resultKind: k, resultField: []string{"status", "observedGeneration"},
	}
}

// probesFor returns the probes of the given controllers, in the same order. Nil controllers mean
// [kube.DefaultControllers].
//
// If a controller has no probe, probesFor returns an error, because gauntlet cannot find out
// whether the cluster runs that controller.
func probesFor(controllers []kube.Controller) ([]probe, error) {
	var found []probe
	for _, c := range kube.OrDefault(controllers) {
		i := slices.IndexFunc(probes, func(p probe) bool { return p.controller == c.Name })
		if i < 0 {
			var known []string
			for _, p := range probes {
				known = append(known, p.controller)
			}
			return nil, fmt.Errorf("existing cluster: cannot find out whether the cluster runs %s; test only controllers among %s, or use a provider with a control plane of its own, such as --provider=embedded",
				c.Name, strings.Join(known, ", "))
		}
		found = append(found, probes[i])
	}
	return found, nil
}

// activeControllers returns the names of the controllers that react to their probe objects, in the
// order of probes. It creates all probe objects, waits at most [probeTimeout] for the reactions,
// and deletes the probe objects.
func activeControllers(ctx context.Context, client dynamic.Interface, probes []probe) (controllers []string, err error) {
	name := "probe-" + utilrand.String(5)
	for _, p := range probes {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": p.kind.APIVersion(), "kind": p.kind.Name,
			"metadata": map[string]any{"name": name},
			"spec":     p.spec,
		}}
		objects := client.Resource(p.kind.GVR).Namespace(Namespace)
		if _, err := objects.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("existing cluster: creating %s %s/%s to probe the %s: %w", p.kind.Name, Namespace, name, p.controller, err)
		}
		defer func() {
			deleteErr := objects.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{})
			if deleteErr != nil && !apierrors.IsNotFound(deleteErr) {
				err = errors.Join(err, fmt.Errorf("existing cluster: deleting %s %s/%s: %w", p.kind.Name, Namespace, name, deleteErr))
			}
		}()
	}
	waiting, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	reacted := make([]bool, len(probes))
	// Ignore the error of a timeout: controllers that have not reacted by then are inactive.
	_ = cluster.Poll(waiting, pollInterval, "all controllers", func(ctx context.Context) error {
		for i, p := range probes {
			reacted[i] = reacted[i] || p.checkResult(ctx, client, name) == nil
		}
		if slices.Contains(reacted, false) {
			return errors.New("not all controllers of the cluster have reacted to their probe objects")
		}
		return nil
	})
	for i, p := range probes {
		if reacted[i] {
			controllers = append(controllers, p.controller)
		}
	}
	return controllers, ctx.Err()
}

// checkResult returns nil if the controller has reacted to the probe object with the given name.
// Otherwise the error says which field the controller has not set yet.
func (p probe) checkResult(ctx context.Context, client dynamic.Interface, name string) error {
	object, err := client.Resource(p.resultKind.GVR).Namespace(Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if _, found, _ := unstructured.NestedFieldNoCopy(object.Object, p.resultField...); !found {
		return fmt.Errorf("%s has not set field %s of %s %s/%s, with which gauntlet probes the controller", p.controller, strings.Join(p.resultField, "."), p.resultKind.Name, Namespace, name)
	}
	return nil
}
