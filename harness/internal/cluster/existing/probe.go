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

// probeTimeout is the time in which an active controller must react to the object that probes
// it.
//
// A running controller reacts within milliseconds. Just after a change of the leader, a
// reaction may take longer than probeTimeout. Start then wrongly considers the controller
// inactive.
const probeTimeout = 5 * time.Second

// probe describes an object that gauntlet creates to find out whether a controller is active. An
// active controller reacts to the object: it sets a field, or creates another object.
type probe struct {
	controller string         // name of the controller, as in the flag --controllers
	kind       kube.Kind      // of the object that gauntlet creates
	spec       map[string]any // of that object
	// resultKind is the kind of the object that the controller writes when it reacts. This
	// object has the same name as the object that gauntlet creates.
	resultKind kube.Kind
	// resultField is the path of a field that exists as soon as the controller has reacted.
	resultField []string
}

// probes lists one probe for each controller that gauntlet can probe. The workload objects of the
// probes have 0 replicas, so that no controller creates a pod for them.
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

// The labels, selector and pod template of the objects that probes create.
var (
	probeLabels   = map[string]any{"gauntlet": "probe"}
	labelSelector = map[string]any{"matchLabels": probeLabels}
	podTemplate   = map[string]any{
		"metadata": map[string]any{"labels": probeLabels},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "none", "image": "none"}}},
	}
)

// workloadProbe returns the probe for a controller that reacts to a new object by setting its
// status.observedGeneration.
func workloadProbe(controller, kind string, spec map[string]any) probe {
	k := kube.MustNamed(kind)
	return probe{
		controller: controller, kind: k, spec: spec,
		resultKind: k, resultField: []string{"status", "observedGeneration"},
	}
}

// probesFor returns the probes of the given controllers, in the same order. If controllers is
// empty, it returns the probes of the default controllers.
//
// It returns an error if a controller has no probe: gauntlet then cannot find out whether the
// cluster runs that controller.
func probesFor(controllers []kube.Controller) ([]probe, error) {
	var found []probe
	for _, c := range kube.OrDefault(controllers) {
		i := slices.IndexFunc(probes, func(p probe) bool { return p.controller == c.Name })
		if i < 0 {
			var known []string
			for _, p := range probes {
				known = append(known, p.controller)
			}
			return nil, fmt.Errorf("existing cluster: cannot find out whether the cluster runs %s: expected controllers under test among %s; run the scenario on a control plane of its own instead",
				c.Name, strings.Join(known, ", "))
		}
		found = append(found, probes[i])
	}
	return found, nil
}

// activeControllers returns the names of the controllers that react to their probes. It creates the
// objects of all probes, waits at most [probeTimeout] for the reactions, and deletes the objects.
// The names are in the order of the probes.
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
	// The error is ignored: controllers that have not reacted before the timeout are inactive.
	_ = cluster.Poll(waiting, pollInterval, "all controllers", func(ctx context.Context) error {
		for i, p := range probes {
			reacted[i] = reacted[i] || p.checkResult(ctx, client, name) == nil
		}
		if slices.Contains(reacted, false) {
			return errors.New("a controller has not reacted to its probe")
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

// checkResult returns nil if the controller has reacted to the probe object with this name.
func (p probe) checkResult(ctx context.Context, client dynamic.Interface, name string) error {
	object, err := client.Resource(p.resultKind.GVR).Namespace(Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if _, found, _ := unstructured.NestedFieldNoCopy(object.Object, p.resultField...); !found {
		return fmt.Errorf("%s has not set field %s of the probe object", p.controller, strings.Join(p.resultField, "."))
	}
	return nil
}
