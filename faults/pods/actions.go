package pods

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/standin"
)

// action is an action that a fault performs on a pod.
type action struct {
	// detail returns the text that describes the performed action in the fault's
	// record.
	detail func(*churn) string
	// applicable reports whether the action is possible for an active pod. If
	// applicable is nil, the action is always possible.
	applicable func(*corev1.Pod) bool
	// do performs the action unless the pod has changed since it was read. It returns
	// the pod's resourceVersion after the action, or 0 if that is unknown.
	do func(*churn, context.Context, *corev1.Pod) (history.Version, error)
	// undo reverts the action on the current version of the pod; nil means that it is
	// permanent.
	undo func(*churn, context.Context, *corev1.Pod) error
	// needs are the capabilities that the provider must have.
	needs []cluster.Capability
}

func fixedDetail(words string) func(*churn) string { return func(*churn) string { return words } }

// Some actions need capabilities, for two reasons. A real kubelet immediately overwrites a
// status that another client writes. The pods of an existing cluster do not run the
// stand-in container.
var (
	simulatedKubelets    = []cluster.Capability{cluster.SimulatedKubelets}
	controlledContainers = []cluster.Capability{cluster.ControlsContainers}
)

// actions contains the actions of all fault types in this package.
var actions = map[string]action{
	actionDelete: {detail: deleteDetail, do: (*churn).delete},
	actionEvict:  {detail: fixedDetail("evicted"), do: (*churn).evict},
	actionFail: {
		detail:     failDetail,
		applicable: func(p *corev1.Pod) bool { return p.Spec.ActiveDeadlineSeconds == nil }, // another deadline already fails the pod
		do:         (*churn).failOrExpire,
	},
	actionCollapse: {detail: fixedDetail("set to Failed, Ready condition unchanged"), applicable: cluster.PodReady, do: (*churn).collapse, needs: simulatedKubelets},
	actionSucceed:  {detail: fixedDetail("set to Succeeded"), do: (*churn).succeed, needs: simulatedKubelets},
	actionUnready:  {detail: fixedDetail("set to not ready"), applicable: cluster.PodReady, do: (*churn).makeUnready, undo: (*churn).makeReady, needs: controlledContainers},
	actionRestart:  {detail: fixedDetail("restarted its containers"), applicable: restartable, do: (*churn).restart, undo: (*churn).afterRestart, needs: controlledContainers},
	actionLinger:   {detail: fixedDetail("deleted with a finalizer"), do: (*churn).deleteWithFinalizer, undo: (*churn).removeFinalizer},
	actionRelabel:  {detail: (*churn).relabelDetail, applicable: nil, do: (*churn).relabel, undo: (*churn).restoreLabel},
	actionStrip:    {detail: fixedDetail("removed the controllerRef"), applicable: controlled, do: (*churn).removeControllerRef},
	actionGive:     {detail: fixedDetail("replaced the controllerRef"), applicable: controlled, do: (*churn).replaceControllerRef},
}

// The names of the actions: first those of pod-churn, then those of the other types.
const (
	actionDelete   = "delete"
	actionEvict    = "evict"
	actionFail     = "fail"
	actionCollapse = "collapse"
	actionSucceed  = "succeed"
	actionUnready  = "unready"
	actionRestart  = "restart"
	actionLinger   = "linger"

	actionRelabel = "relabel"

	actionStrip = "strip"
	actionGive  = "give"
)

var churnActions = []string{actionDelete, actionEvict, actionFail, actionCollapse, actionSucceed, actionUnready, actionRestart, actionLinger}

// evict creates an Eviction, as kubectl drain does. The API server may refuse it
// because of a PodDisruptionBudget.
func (c *churn) evict(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	return 0, c.env.Admin.CoreV1().Pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))},
	})
}

// collapse sets the phase Failed and leaves the Ready condition and the pod IP
// unchanged. No kubelet writes such a status, but other clients may write it.
func (c *churn) collapse(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	failed := pod.DeepCopy()
	failed.Status.Phase = corev1.PodFailed
	failed.Status.Reason = cluster.PodCollapsed
	return c.writeStatus(ctx, failed)
}

// succeed writes the status of a pod whose containers have all exited with code 0.
func (c *churn) succeed(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	ended := pod.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	now := metav1.NewTime(c.env.Clock.Now())
	setCondition(&ended.Status, corev1.PodReady, corev1.ConditionFalse, "PodCompleted", now)
	setCondition(&ended.Status, corev1.ContainersReady, corev1.ConditionFalse, "PodCompleted", now)
	return c.writeStatus(ctx, ended)
}

// restart makes the container exit if the kubelets are real. With simulated kubelets,
// it writes the status of a pod whose containers restart: a higher restart count, and
// not ready.
func (c *churn) restart(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	if c.env.Capabilities.Has(cluster.RealKubelets) {
		return 0, c.callStandin(ctx, pod, standin.Die)
	}
	restarted := pod.DeepCopy()
	for i := range restarted.Status.ContainerStatuses {
		restarted.Status.ContainerStatuses[i].RestartCount++
	}
	return c.makeUnready(ctx, restarted)
}

// restartsMax is the highest restart count at which the fault makes a real container exit
// once more. A real kubelet restarts a container at once the first time and after 10 s the
// second time. Then it doubles the back-off with each restart, which would take too long.
const restartsMax = 1

// restartable reports whether a pod is ready and its kubelet would restart its
// container without a long back-off.
func restartable(pod *corev1.Pod) bool {
	return cluster.PodReady(pod) && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.RestartCount > restartsMax
	})
}

// afterRestart writes the status of a pod whose containers run again. It does this
// only for simulated kubelets, because a real kubelet writes the status itself.
func (c *churn) afterRestart(ctx context.Context, pod *corev1.Pod) error {
	if c.env.Capabilities.Has(cluster.RealKubelets) {
		return nil
	}
	return c.makeReady(ctx, pod)
}

// lingerFinalizer is the finalizer that delays the removal of a deleted pod until the
// action is undone.
const lingerFinalizer = "gauntlet/linger"

// deleteWithFinalizer adds a finalizer to a pod and deletes the pod.
func (c *churn) deleteWithFinalizer(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	changed := pod.DeepCopy()
	changed.Finalizers = append(changed.Finalizers, lingerFinalizer)
	if _, err := c.write(ctx, changed); err != nil {
		return 0, err
	}
	return c.delete(ctx, pod)
}

func (c *churn) removeFinalizer(ctx context.Context, pod *corev1.Pod) error {
	changed := pod.DeepCopy()
	changed.Finalizers = slices.DeleteFunc(changed.Finalizers, func(f string) bool { return f == lingerFinalizer })
	_, err := c.write(ctx, changed)
	return err
}

// write updates a pod unless the pod has changed since it was read.
func (c *churn) write(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	written, err := c.env.Admin.CoreV1().Pods(pod.Namespace).Update(ctx, pod, metav1.UpdateOptions{})
	if err != nil {
		return 0, err
	}
	return history.ParseVersion(written.ResourceVersion)
}

func controlled(pod *corev1.Pod) bool { return metav1.GetControllerOf(pod) != nil }

// failOrExpire makes a pod fail. With a real kubelet it sets an expired deadline, and
// with a simulated kubelet it writes the status of a failed pod.
func (c *churn) failOrExpire(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	if !c.env.Capabilities.Has(cluster.SimulatedKubelets) {
		return c.expire(ctx, pod)
	}
	return c.fail(ctx, pod)
}
