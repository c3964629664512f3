package admission

import (
	"context"
	"errors"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

const (
	podResource = "pods"
	setResource = "replicasets.apps"

	// inForceTimeout limits the wait until the API server enforces a new policy or quota. It
	// also limits the wait after a deletion, until the API server no longer enforces the
	// policy or quota.
	inForceTimeout  = time.Minute
	inForceInterval = 20 * time.Millisecond
)

// probes contains a dry-run create for each resource. The creates show when the API
// server enforces a new policy or quota: only after its informer has received the
// object.
var probes = map[string]func(context.Context, *faults.Env) error{
	podResource: func(ctx context.Context, env *faults.Env) error {
		_, err := env.Admin.CoreV1().Pods(env.Namespace).Create(ctx,
			&corev1.Pod{ObjectMeta: probeMeta(), Spec: probeTemplate().Spec}, dryRun)
		return err
	},
	setResource: func(ctx context.Context, env *faults.Env) error {
		template := probeTemplate()
		_, err := env.Admin.AppsV1().ReplicaSets(env.Namespace).Create(ctx, &appsv1.ReplicaSet{
			ObjectMeta: probeMeta(),
			Spec:       appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
		}, dryRun)
		return err
	},
}

var dryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// probeMeta returns the metadata of a probe's object, with a controllerRef like the
// objects that the subject creates.
func probeMeta() metav1.ObjectMeta {
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "probe", UID: "probe", Controller: ptr.To(true)}
	return metav1.ObjectMeta{GenerateName: "probe-", OwnerReferences: []metav1.OwnerReference{owner}}
}

func probeTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"probe": "yes"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "probe"}}},
	}
}

// awaitRefused waits until the API server refuses a probe because of the named policy or
// quota. If refused is false, it waits until the API server no longer refuses the probe
// because of it. Other policies may refuse the probe in either case.
func awaitRefused(ctx context.Context, env *faults.Env, probe func(context.Context, *faults.Env) error, name string, refused bool) error {
	ctx, cancel := context.WithTimeout(ctx, inForceTimeout)
	defer cancel()
	state := map[bool]string{true: "the API server to enforce " + name, false: "the API server to no longer enforce " + name}[refused]
	return cluster.Poll(ctx, inForceInterval, state, func(ctx context.Context) error {
		err := probe(ctx, env)
		switch found := err != nil && strings.Contains(err.Error(), name); {
		case cluster.Unavailable(err):
			return err
		case found == refused:
			return nil
		case err == nil:
			return errors.New("the API server admits the probe")
		default:
			return err
		}
	})
}
