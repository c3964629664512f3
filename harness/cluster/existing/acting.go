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

// idleFor is how long a controller may leave work undone and still be there. One
// that runs answers in milliseconds; one that has just lost its leader takes
// longer, so that nobody should ask in such a moment.
const idleFor = 5 * time.Second

// job is a little work for a controller, by which it shows itself: an object, and
// a sign that somebody saw to it.
type job struct {
	controller string // as kube-controller-manager names it
	resource   schema.GroupVersionResource
	kind       string
	spec       map[string]any
	// sign is the resource of the same name that is then there, with something in
	// its field.
	sign  schema.GroupVersionResource
	field []string
}

var (
	core = schema.GroupVersion{Version: "v1"}
	apps = schema.GroupVersion{Group: "apps", Version: "v1"}
)

// jobs is one for each of the four controllers. None of them makes a pod.
var jobs = []job{
	workloadJob("replicationcontroller-controller", core, "ReplicationController", "replicationcontrollers", probeLabels),
	workloadJob("replicaset-controller", apps, "ReplicaSet", "replicasets", map[string]any{"matchLabels": probeLabels}),
	workloadJob("deployment-controller", apps, "Deployment", "deployments", map[string]any{"matchLabels": probeLabels}),
	{
		controller: "endpoints-controller",
		resource:   core.WithResource("services"), kind: "Service",
		spec: map[string]any{"selector": probeLabels, "clusterIP": "None"},
		sign: core.WithResource("endpoints"), field: []string{"metadata", "uid"},
	},
}

var probeLabels = map[string]any{"gauntlet": "probe"}

// workloadJob is that of an owner of pods that asks for none.
func workloadJob(controller string, group schema.GroupVersion, kind, resource string, selector map[string]any) job {
	gvr := group.WithResource(resource)
	return job{
		controller: controller, resource: gvr, kind: kind,
		spec: map[string]any{
			"replicas": int64(0),
			"selector": selector,
			"template": map[string]any{
				"metadata": map[string]any{"labels": probeLabels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "none", "image": "none"}}},
			},
		},
		sign: gvr, field: []string{"status", "observedGeneration"},
	}
}

// acting are those of the four controllers that act on the cluster, whoever runs
// them, in the order of [cluster.SubjectControllers].
func acting(ctx context.Context, client dynamic.Interface) (controllers []string, err error) {
	name := "probe-" + utilrand.String(5)
	for _, j := range jobs {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": j.resource.GroupVersion().String(), "kind": j.kind,
			"metadata": map[string]any{"name": name},
			"spec":     j.spec,
		}}
		objects := client.Resource(j.resource).Namespace(Namespace)
		if _, err := objects.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("existing cluster: asking the %s for work: %w", j.controller, err)
		}
		defer func() {
			drop := objects.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{})
			if drop != nil && !apierrors.IsNotFound(drop) {
				err = errors.Join(err, fmt.Errorf("existing cluster: taking back the %s's work: %w", j.controller, drop))
			}
		}()
	}
	waiting, cancel := context.WithTimeout(ctx, idleFor)
	defer cancel()
	for _, j := range jobs {
		err := cluster.Poll(waiting, pollInterval, "the "+j.controller, func(ctx context.Context) error {
			return j.done(ctx, client, name)
		})
		if err == nil {
			controllers = append(controllers, j.controller)
		}
	}
	return controllers, ctx.Err()
}

// done is nil when the sign is there that somebody did the job.
func (j job) done(ctx context.Context, client dynamic.Interface, name string) error {
	object, err := client.Resource(j.sign).Namespace(Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if _, there, _ := unstructured.NestedFieldNoCopy(object.Object, j.field...); !there {
		return errors.New("nobody has seen to it")
	}
	return nil
}
