package admission

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// setResource is the resource of ReplicaSets, which the controller under test creates for
// Deployments.
const setResource = "replicasets.apps"

const (
	// inForceTimeout is the maximum time until the API server enforces a new policy or quota. It is
	// also the maximum time until the API server no longer enforces a deleted policy or quota. To
	// find out, faults send a dry-run create after each inForceInterval.
	inForceTimeout  = time.Minute
	inForceInterval = 20 * time.Millisecond
)

// probePod sends a dry-run create of a pod. It returns the error with which the API server refuses
// the create. The error contains the name of a new policy or quota only if the API server already
// enforces the policy or quota. The API server does so only some time after the policy or quota
// was created.
func probePod(ctx context.Context, env *faults.Env) error {
	_, err := env.Admin.CoreV1().Pods(env.Namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: probeMeta(),
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "probe"}}},
	}, dryRun)
	return err
}

// probeConfigMap sends a dry-run create of a ConfigMap with the given name. It returns the error
// with which the API server refuses the create. The error contains the name of a new policy only
// if the API server already enforces the policy.
func probeConfigMap(ctx context.Context, env *faults.Env, name string) error {
	meta := probeMeta()
	meta.GenerateName, meta.Name = "", name
	_, err := env.Admin.CoreV1().ConfigMaps(env.Namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, dryRun)
	return err
}

// dryRun contains the options of a create request that the API server admits or refuses without
// storing the object.
var dryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// probeMeta returns the metadata of the object that a probe creates with dry-run. The object has a
// controllerRef, as the objects that the controller under test creates do.
func probeMeta() metav1.ObjectMeta {
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "probe", UID: "probe", Controller: ptr.To(true)}
	return metav1.ObjectMeta{GenerateName: "probe-", OwnerReferences: []metav1.OwnerReference{owner}}
}

// awaitRefused waits until the API server enforces a policy or quota, or no longer enforces it.
// The argument name is the name of the policy or quota. If the argument refused is true,
// awaitRefused waits for the enforcement, and otherwise for its end.
//
// The argument probe is a function that sends a dry-run create and returns the API server's error.
// If this error contains the name, the API server enforces the policy or quota. An error without
// the name does not count, because another policy may refuse the create.
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
			return fmt.Errorf("the API server still admits a dry-run create that the policy or quota %s must refuse", name)
		default:
			return err
		}
	})
}
