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

// action is something that a fault does to a pod, such as deleting the pod. Some actions can be
// undone.
type action struct {
	// detail returns the text for the fault's "fired" record in the history, such as "evicted".
	detail func(*churn) string
	// applicable reports whether the fault may perform the action on an active pod (not
	// terminating, Succeeded or Failed). If applicable is nil, the fault may choose every active
	// pod.
	applicable func(*corev1.Pod) bool
	// do performs the action on a pod. It returns the resourceVersion of the pod after the action, or
	// 0 if this version is unknown. A conflict error means that another client changed or replaced
	// the pod after the fault had read it.
	do func(*churn, context.Context, *corev1.Pod) (history.Version, error)
	// undo reverts the action; its pod argument is the current version of the pod. If undo is
	// nil, the action is permanent.
	undo func(*churn, context.Context, *corev1.Pod) error
	// needs lists the capabilities that the provider must have for the action, such as simulated
	// kubelets.
	needs []cluster.Capability
}

// fixedDetail returns a function for the field action.detail that always returns the given
// words, such as "evicted".
func fixedDetail(words string) func(*churn) string { return func(*churn) string { return words } }

// These are capabilities that some actions need. An action that writes a pod status needs
// simulated kubelets, because a real kubelet would overwrite the status at once. An action that
// sends requests to the stand-in, gauntlet's container in the workload's pods, cannot run on an
// existing cluster. There, pods do not run this container.
var (
	simulatedKubelets    = []cluster.Capability{cluster.SimulatedKubelets}
	controlledContainers = []cluster.Capability{cluster.ControlsContainers}
)

// actions maps the name of each action of pod-churn, pod-relabel and pod-disown to the action.
var actions = map[string]action{
	actionDelete: {detail: deleteDetail, do: (*churn).delete},
	actionEvict:  {detail: fixedDetail("evicted"), do: (*churn).evict},
	actionFail: {
		detail:     failDetail,
		applicable: func(p *corev1.Pod) bool { return p.Spec.ActiveDeadlineSeconds == nil }, // a pod with activeDeadlineSeconds fails anyway
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

// These are the names of the actions. The three groups belong to pod-churn, pod-relabel and
// pod-disown, in this order.
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

// churnActions lists the permitted values of [ChurnParams.Action].
var churnActions = []string{actionDelete, actionEvict, actionFail, actionCollapse, actionSucceed, actionUnready, actionRestart, actionLinger}

// evict creates an Eviction of a pod, as kubectl drain does. The API server may refuse the
// Eviction because of a PodDisruptionBudget. The returned version is 0, because the response does
// not contain the pod.
func (c *churn) evict(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	return 0, c.env.Admin.CoreV1().Pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))},
	})
}

// collapse sets a pod's phase to Failed, but leaves the pod ready and its IP address set. No
// kubelet writes such a status, but another client can. collapse returns the pod's new
// resourceVersion.
func (c *churn) collapse(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	failed := pod.DeepCopy()
	failed.Status.Phase = corev1.PodFailed
	failed.Status.Reason = cluster.PodCollapsed
	return c.writeStatus(ctx, failed)
}

// succeed sets a pod's phase to Succeeded and the pod's Ready condition to False. A kubelet writes
// this status after all containers have exited with code 0. succeed returns the pod's new
// resourceVersion.
func (c *churn) succeed(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	ended := pod.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	now := metav1.NewTime(c.env.Clock.Now())
	setCondition(&ended.Status, corev1.PodReady, corev1.ConditionFalse, "PodCompleted", now)
	setCondition(&ended.Status, corev1.ContainersReady, corev1.ConditionFalse, "PodCompleted", now)
	return c.writeStatus(ctx, ended)
}

// restart restarts the containers of a pod. With real kubelets, restart makes the stand-in
// container exit, so that the kubelet restarts the container. The returned version is then 0.
//
// With simulated kubelets, restart only writes a pod status: it increments the restart counts and
// makes the pod not ready. It then returns the pod's new resourceVersion.
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

// restartsMax is the highest restart count at which the fault restarts a container once more.
//
// A real kubelet restarts a container at once the first time, and after 10 s the second time.
// The kubelet doubles this back-off with each further restart, so more restarts would take too
// long.
const restartsMax = 1

// restartable reports whether a pod is ready, and none of its containers has been restarted
// more than restartsMax times.
func restartable(pod *corev1.Pod) bool {
	return cluster.PodReady(pod) && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.RestartCount > restartsMax
	})
}

// afterRestart makes a pod ready again, to undo the action restart. With real kubelets it does
// nothing, because real kubelets write the pod status themselves.
func (c *churn) afterRestart(ctx context.Context, pod *corev1.Pod) error {
	if c.env.Capabilities.Has(cluster.RealKubelets) {
		return nil
	}
	return c.makeReady(ctx, pod)
}

// lingerFinalizer is the finalizer that the action linger adds to a pod before it deletes the
// pod. The pod stays terminating until the fault removes the finalizer, which undoes the action.
const lingerFinalizer = "gauntlet/linger"

// deleteWithFinalizer adds lingerFinalizer to a pod and then deletes the pod, which remains
// terminating. The returned version is 0, as for the method delete.
func (c *churn) deleteWithFinalizer(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	changed := pod.DeepCopy()
	changed.Finalizers = append(changed.Finalizers, lingerFinalizer)
	if _, err := c.write(ctx, changed); err != nil {
		return 0, err
	}
	return c.delete(ctx, pod)
}

// removeFinalizer removes lingerFinalizer from a pod, so that the API server can remove the
// terminating pod.
func (c *churn) removeFinalizer(ctx context.Context, pod *corev1.Pod) error {
	changed := pod.DeepCopy()
	changed.Finalizers = slices.DeleteFunc(changed.Finalizers, func(f string) bool { return f == lingerFinalizer })
	_, err := c.write(ctx, changed)
	return err
}

// write updates a pod and returns the new resourceVersion. The API server refuses the update
// with a conflict if the pod has changed since the fault read it.
func (c *churn) write(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	written, err := c.env.Admin.CoreV1().Pods(pod.Namespace).Update(ctx, pod, metav1.UpdateOptions{})
	if err != nil {
		return 0, err
	}
	return history.ParseVersion(written.ResourceVersion)
}

// controlled reports whether a pod has a controllerRef, so that pod-disown can remove or replace
// it.
func controlled(pod *corev1.Pod) bool { return metav1.GetControllerOf(pod) != nil }

// failOrExpire makes a pod fail. With simulated kubelets, it writes the status of a failed pod.
// With real kubelets, it sets activeDeadlineSeconds; the kubelet then makes the pod fail.
// failOrExpire returns the resourceVersion of its own update.
func (c *churn) failOrExpire(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	if !c.env.Capabilities.Has(cluster.SimulatedKubelets) {
		return c.expire(ctx, pod)
	}
	return c.fail(ctx, pod)
}
