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

	// inForceTimeout bounds how long it takes until the API server goes by what was
	// made, or removed.
	inForceTimeout  = time.Minute
	inForceInterval = 20 * time.Millisecond
)

// probes ask the API server whether it would let something in, without making it:
// it goes by what was made or removed only when it has heard of that.
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

// probeMeta is that of an object which a controller would make.
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

// awaitRefused returns when the API server refuses a probe for the sake of an obstacle
// of a name, or no longer for the sake of that one. There may be others.
func awaitRefused(ctx context.Context, env *faults.Env, probe func(context.Context, *faults.Env) error, name string, refused bool) error {
	ctx, cancel := context.WithTimeout(ctx, inForceTimeout)
	defer cancel()
	what := map[bool]string{true: name + " to be in force", false: name + " to be in force no more"}[refused]
	return cluster.Poll(ctx, inForceInterval, what, func(ctx context.Context) error {
		err := probe(ctx, env)
		switch found := err != nil && strings.Contains(err.Error(), name); {
		case cluster.Unavailable(err):
			return err
		case found == refused:
			return nil
		case err == nil:
			return errors.New("it is let in")
		default:
			return err
		}
	})
}
