package pods

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// actOnPod performs the fault's action on a random pod and returns a reference to the pod.
//
// actOnPod returns a nil reference and a nil error if it did nothing. For example, no pod was
// suitable, or the pod's stand-in container did not answer. It also does nothing if another
// client has deleted or changed the chosen pod.
func (c *churn) actOnPod(ctx context.Context) (*history.Ref, error) {
	list, err := c.env.Admin.CoreV1().Pods(c.env.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector:   c.targets.Selector,
		ResourceVersion: "0", // lists from the watch cache; an action on an outdated pod then fails with a conflict
	})
	if err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %s: %w", c.env.Namespace, err)
	}
	active := candidates(list.Items, c.orphans)
	active = slices.DeleteFunc(active, func(p *corev1.Pod) bool { return !c.applicable(p) })
	if len(active) == 0 {
		return nil, nil
	}
	pod := active[c.env.Rand.IntN(len(active))]
	ref := &history.Ref{
		Resource: "pods", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
	}
	ref.Version, err = actions[c.action].do(c, ctx, pod)
	if actions[c.action].undo != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		c.pendingUndos = append(c.pendingUndos, pendingUndo{ // also after an error, because the API server may have committed the write
			namespace: pod.Namespace, name: pod.Name, uid: pod.UID, due: c.env.Clock.Now().Add(c.downtime),
		})
	}
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err) || isUnreachable(err):
		return nil, nil
	case err != nil:
		return ref, fmt.Errorf("performing action %s on %s: %w", c.action, ref, err)
	}
	return ref, nil
}

// candidates returns the active pods (not terminating, Succeeded or Failed) on which the fault may
// act. It includes pods without a controllerRef only if the argument orphans is true. It sorts the
// pods by name: with the same pod names, a seed therefore always chooses the same pod.
func candidates(pods []corev1.Pod, orphans bool) []*corev1.Pod {
	var active []*corev1.Pod
	for i := range pods {
		p := &pods[i]
		if p.DeletionTimestamp == nil && !isTerminal(p) && (orphans || metav1.GetControllerOf(p) != nil) {
			active = append(active, p)
		}
	}
	slices.SortFunc(active, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return active
}

// isTerminal reports whether a pod has the phase Succeeded or Failed.
func isTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// applicable reports whether the fault may perform its action on a pod in the pod's current
// state. For pod-relabel, the pod must have the label, and the fault must not have changed the
// label's value already.
func (c *churn) applicable(pod *corev1.Pod) bool {
	if c.label != "" && (pod.Labels[c.label] == "" || strings.HasPrefix(pod.Labels[c.label], changedLabelPrefix)) {
		return false
	}
	fits := actions[c.action].applicable
	return fits == nil || fits(pod)
}

// delete deletes a pod. The pod's UID is a precondition, so delete never deletes another pod that
// has the same name. The returned version is 0, because delete does not read the response.
func (c *churn) delete(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	return 0, c.env.Admin.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: c.grace,
		Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
	})
}

// fail writes the pod status that a kubelet writes when it evicts a pod: phase Failed and Ready
// condition False. A single update sets both fields, so no client sees only one of the changes.
// fail returns the pod's new resourceVersion.
func (c *churn) fail(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	changed := pod.DeepCopy()
	changed.Status.Phase = corev1.PodFailed
	changed.Status.Reason = "Evicted"
	changed.Status.Message = "The node was low on resource: memory (injected fault)."
	now := metav1.NewTime(c.env.Clock.Now())
	setCondition(&changed.Status, corev1.PodReady, corev1.ConditionFalse, "PodFailed", now)
	setCondition(&changed.Status, corev1.ContainersReady, corev1.ConditionFalse, "PodFailed", now)
	setCondition(&changed.Status, corev1.DisruptionTarget, corev1.ConditionTrue, corev1.PodReasonTerminationByKubelet, now)
	return c.writeStatus(ctx, changed)
}

// expire sets a pod's activeDeadlineSeconds to 1, so that a real kubelet makes the pod fail
// within about two seconds. The returned resourceVersion is that of the update, not that of the
// later failure.
func (c *churn) expire(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	changed := pod.DeepCopy()
	changed.Spec.ActiveDeadlineSeconds = ptr.To[int64](1) // the lowest permitted value
	return c.write(ctx, changed)
}

// writeStatus updates a pod's status and returns the new resourceVersion. The API server refuses
// the update with a conflict if the pod has changed since the fault read it.
func (c *churn) writeStatus(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	written, err := c.env.Admin.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	if err != nil {
		return 0, err
	}
	return history.ParseVersion(written.ResourceVersion)
}

// setCondition sets one condition in a pod status. The argument kind is the condition's type. If
// the status has no condition of this type, setCondition adds it.
func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, value corev1.ConditionStatus, reason string, now metav1.Time) {
	condition := corev1.PodCondition{Type: kind, Status: value, Reason: reason, LastTransitionTime: now}
	i := slices.IndexFunc(status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		status.Conditions = append(status.Conditions, condition)
		return
	}
	status.Conditions[i] = condition
}
