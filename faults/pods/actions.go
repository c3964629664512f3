package pods

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/standin"
)

// action is what a fault does to a pod.
type action struct {
	// detail what was done, in words.
	detail func(*churn) string
	// applicable says whether it can befall a live pod; nil is any.
	applicable func(*corev1.Pod) bool
	// do does it, if the pod is as given. The version is that of the pod afterwards,
	// 0 if that is not known.
	do func(*churn, context.Context, *corev1.Pod) (history.Version, error)
	// undo makes of a pod, as it is by then, what it would be without; nil is what
	// stays.
	undo func(*churn, context.Context, *corev1.Pod) error
	// providers are the providers on which it can be done; nil is all.
	providers []string
}

func fixedDetail(words string) func(*churn) string { return func(*churn) string { return words } }

// Where not everything can be done: a real kubelet writes its own opinion over
// anybody else's at once, and the pods of a cluster that somebody else made run no
// stand-in that could be told anything.
var (
	simulatedOnly = []string{faults.Simulated}
	standinPods   = faults.OwnClusters
)

// actions are all of them: the actions of a pod-churn, and what the other kinds do.
var actions = map[string]action{
	actionDelete: {detail: deleteDetail, do: (*churn).delete},
	actionEvict:  {detail: fixedDetail("evicted through the API"), do: (*churn).evict},
	actionFail: {
		detail:     failDetail,
		applicable: func(p *corev1.Pod) bool { return p.Spec.ActiveDeadlineSeconds == nil }, // or it is about to fail anyway
		do:         (*churn).failOrExpire,
	},
	actionCollapse: {detail: fixedDetail("failed, and still said to be ready"), applicable: cluster.PodReady, do: (*churn).collapse, providers: simulatedOnly},
	actionSucceed:  {detail: fixedDetail("succeeded"), do: (*churn).succeed, providers: simulatedOnly},
	actionUnready:  {detail: fixedDetail("made unready"), applicable: cluster.PodReady, do: (*churn).makeUnready, undo: (*churn).makeReady, providers: standinPods},
	actionRestart:  {detail: fixedDetail("restarted its containers"), applicable: restartable, do: (*churn).restart, undo: (*churn).afterRestart, providers: standinPods},
	actionLinger:   {detail: fixedDetail("deleted, and kept by a finalizer"), do: (*churn).deleteWithFinalizer, undo: (*churn).removeFinalizer},
	actionRelabel:  {detail: (*churn).relabelDetail, applicable: nil, do: (*churn).relabel, undo: (*churn).restoreLabel},
	actionStrip:    {detail: fixedDetail("stripped of its controller"), applicable: controlled, do: (*churn).removeControllerRef},
	actionGive:     {detail: fixedDetail("given to another controller"), applicable: controlled, do: (*churn).replaceControllerRef},
}

// The actions of a pod-churn, and the deeds of the other kinds.
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

// evict asks for an eviction, as a drain does. A disruption budget may refuse it.
func (c *churn) evict(ctx context.Context, victim *corev1.Pod) (history.Version, error) {
	return 0, c.env.Admin.CoreV1().Pods(victim.Namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: victim.Name, Namespace: victim.Namespace},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(victim.UID))},
	})
}

// collapse writes of a pod that it has failed, and nothing else: it is said to be ready,
// as before, and has its address. No kubelet does so, but others that write the status of
// pods may.
func (c *churn) collapse(ctx context.Context, victim *corev1.Pod) (history.Version, error) {
	failed := victim.DeepCopy()
	failed.Status.Phase = corev1.PodFailed
	failed.Status.Reason = cluster.PodCollapsed
	return c.writeStatus(ctx, failed)
}

// succeed writes the status of a pod whose containers have all ended well.
func (c *churn) succeed(ctx context.Context, victim *corev1.Pod) (history.Version, error) {
	ended := victim.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	now := metav1.NewTime(c.env.Clock.Now())
	setCondition(&ended.Status, corev1.PodReady, corev1.ConditionFalse, "PodCompleted", now)
	setCondition(&ended.Status, corev1.ContainersReady, corev1.ConditionFalse, "PodCompleted", now)
	return c.writeStatus(ctx, ended)
}

// restart has the container of a pod die where there is a real kubelet, and else
// writes what one does when it has to start every container again: one restart more,
// and not ready until they are.
func (c *churn) restart(ctx context.Context, victim *corev1.Pod) (history.Version, error) {
	if c.env.Provider == faults.Kubelets {
		return 0, c.callStandin(ctx, victim, standin.Die)
	}
	restarted := victim.DeepCopy()
	for i := range restarted.Status.ContainerStatuses {
		restarted.Status.ContainerStatuses[i].RestartCount++
	}
	return c.makeUnready(ctx, restarted)
}

// restartsMax is how often the containers of a pod have been started again when a
// real kubelet is last given reason to: it does so at once, then after 10 s, and then
// after twice as long each time.
const restartsMax = 1

// restartable are pods that are ready, and of which a kubelet will not lose patience.
func restartable(pod *corev1.Pod) bool {
	return cluster.PodReady(pod) && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.RestartCount > restartsMax
	})
}

// afterRestart writes that the containers are started again, which a real kubelet does
// itself in its own time.
func (c *churn) afterRestart(ctx context.Context, pod *corev1.Pod) error {
	if c.env.Provider == faults.Kubelets {
		return nil
	}
	return c.makeReady(ctx, pod)
}

// lingerFinalizer keeps a pod that is deleted.
const lingerFinalizer = "gauntlet/linger"

// deleteWithFinalizer deletes a pod that takes its time to go: a finalizer holds it.
func (c *churn) deleteWithFinalizer(ctx context.Context, victim *corev1.Pod) (history.Version, error) {
	kept := victim.DeepCopy()
	kept.Finalizers = append(kept.Finalizers, lingerFinalizer)
	if _, err := c.write(ctx, kept); err != nil {
		return 0, err
	}
	return c.delete(ctx, victim)
}

func (c *churn) removeFinalizer(ctx context.Context, pod *corev1.Pod) error {
	free := pod.DeepCopy()
	free.Finalizers = slices.DeleteFunc(free.Finalizers, func(f string) bool { return f == lingerFinalizer })
	_, err := c.write(ctx, free)
	return err
}

// write writes a pod, if it has not changed.
func (c *churn) write(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	written, err := c.env.Admin.CoreV1().Pods(pod.Namespace).Update(ctx, pod, metav1.UpdateOptions{})
	if err != nil {
		return 0, err
	}
	return history.ParseVersion(written.ResourceVersion)
}

func controlled(pod *corev1.Pod) bool { return metav1.GetControllerOf(pod) != nil }

// failOrExpire has the kubelet fail the pod where there is a real one.
func (c *churn) failOrExpire(ctx context.Context, victim *corev1.Pod) (history.Version, error) {
	if c.env.Provider != faults.Simulated {
		return c.expire(ctx, victim)
	}
	return c.fail(ctx, victim)
}
