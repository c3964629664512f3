package admission

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Quota is the fault type quota-exhausted: a ResourceQuota limits the number of pods in the
// namespace.
var Quota = faults.Type{
	Name: "quota-exhausted",
	Description: "A ResourceQuota limits the namespace to the pods that it has, plus a given number. The quota also limits pods that users create. " +
		"The API server refuses further creates of pods with 403 (Forbidden).",
	Healing: "The fault deletes the quota and waits until the API server admits pods.",
	Needs:   []cluster.Capability{cluster.ControlsAdmission},
	Params: []faults.Param{
		{Name: "left", Description: "The number of pods that can be created in addition to those that exist at the injection. A pod that has succeeded or failed does not count.", Bounds: "0 to 10000", Default: "0"},
	},
	New:    newQuota,
	Sample: sampleQuota,
}

// QuotaParams contains the parameters that a scenario sets for a quota-exhausted fault. The
// Params field of [Quota] documents each parameter.
type QuotaParams struct {
	Left int `yaml:"left"`
}

// leftMax is the largest permitted value of [QuotaParams.Left]. This parameter is the number of
// pods that the quota still admits when the fault begins.
const leftMax = 10_000

// newQuota returns a quota-exhausted fault with the given parameters, or an error if a
// parameter is invalid.
func newQuota(params faults.Params) (faults.Fault, error) {
	var p QuotaParams
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := faults.Between(params, "left", p.Left, 0, leftMax); err != nil {
		return nil, err
	}
	return &quota{params: p}, nil
}

// quota is a fault of type quota-exhausted. It limits the number of pods in the namespace of the
// test run.
type quota struct {
	params QuotaParams
	env    *faults.Env
	name   string // name of the ResourceQuota; "" before it is created
	hard   int64  // maximum number of pods in the namespace
}

// Inject creates the quota and returns when the quota's status contains the current number of
// pods. Until then, the API server refuses every create of a pod, even below the limit.
func (q *quota) Inject(ctx context.Context, env *faults.Env) error {
	q.env = env
	pods, err := env.Admin.CoreV1().Pods(env.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the pods of namespace %s: %w", env.Namespace, err)
	}
	q.hard = int64(countedPods(pods.Items) + q.params.Left)
	q.name = fmt.Sprintf("exhausted-%08x", env.Rand.Uint32())
	ref := &history.Ref{Resource: "resourcequotas", Namespace: env.Namespace, Name: q.name}
	if ref.UID, err = q.createQuota(ctx); err != nil {
		return errors.Join(err, q.Heal(context.WithoutCancel(ctx)))
	}
	env.Report.Fired(0, ref, fmt.Sprintf("limits the namespace to %d pods", q.hard))
	return nil
}

// countedPods returns the number of pods that count against a quota. Succeeded and Failed
// pods do not count.
func countedPods(pods []corev1.Pod) int {
	n := 0
	for i := range pods {
		if phase := pods[i].Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			n++
		}
	}
	return n
}

// createQuota creates the quota and waits until the quota's status contains the number of pods.
// It returns the UID of the quota.
func (q *quota) createQuota(ctx context.Context) (types.UID, error) {
	quotas := q.env.Admin.CoreV1().ResourceQuotas(q.env.Namespace)
	made, err := quotas.Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: q.name},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(q.hard, resource.DecimalSI)}},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("creating ResourceQuota %s/%s: %w", q.env.Namespace, q.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, inForceTimeout)
	defer cancel()
	return made.UID, cluster.Poll(ctx, inForceInterval, "the status of ResourceQuota "+q.env.Namespace+"/"+q.name, func(ctx context.Context) error {
		now, err := quotas.Get(ctx, q.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if _, known := now.Status.Used[corev1.ResourcePods]; !known {
			return errors.New("the field status.used.pods of the ResourceQuota is not set yet")
		}
		return nil
	})
}

// Heal deletes the quota and returns when the API server no longer enforces the quota.
func (q *quota) Heal(ctx context.Context) error {
	if q.name == "" {
		return nil
	}
	err := q.env.Admin.CoreV1().ResourceQuotas(q.env.Namespace).Delete(ctx, q.name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting ResourceQuota %s/%s: %w", q.env.Namespace, q.name, err)
	}
	return awaitRefused(ctx, q.env, probePod, q.name, false)
}

func (q *quota) Summary() string { return fmt.Sprintf("limited the namespace to %d pods", q.hard) }
