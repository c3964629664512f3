package deployment

import (
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/templatehash"
)

var (
	deploymentResource = schema.GroupResource{Group: "apps", Resource: deploymentsResource}
	setResource        = schema.GroupResource{Group: "apps", Resource: replicaSetsResource}
	errTooManyRequests = apierrors.NewTooManyRequests("slow down", 1)
	errNotFound        = apierrors.NewNotFound(setResource, "gone")
)

func namespaceTerminating() error {
	err := apierrors.NewForbidden(setResource, "", errors.New("the namespace is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

// newDeployment returns a Deployment with maxSurge 1, maxUnavailable 0 and no progress
// deadline.
func newDeployment(replicas int32, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "deployment", Generation: 1, ResourceVersion: "10"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0))},
			},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "v1"}}},
			},
		},
	}
	for _, c := range change {
		c(d)
	}
	return d
}

func image(name string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = name }
}

func surgeAndUnavailable(surge, unavailable int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &intstr.IntOrString{IntVal: surge}, MaxUnavailable: &intstr.IntOrString{IntVal: unavailable}}
	}
}

func scaled(replicas int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas }
}

func deadline(seconds int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = &seconds }
}

func historyLimit(n int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = &n }
}

func annotated(key, value string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Annotations = withEntries(d.Annotations, map[string]string{key: value}) }
}

func asRecreate(d *appsv1.Deployment) {
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
}

func asPaused(d *appsv1.Deployment) { d.Spec.Paused = true }

func deleting(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{Time: now} }

// progressing returns a change that gives a Deployment a progress deadline of 600 s and a
// condition Progressing. The condition's lastUpdateTime is the duration ago before now.
func progressing(reason string, ago time.Duration) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		deadline(600)(d)
		status := map[string]corev1.ConditionStatus{
			reasonProgressDeadlineExceeded: corev1.ConditionFalse, reasonPaused: corev1.ConditionUnknown, reasonResumed: corev1.ConditionUnknown,
		}[reason]
		if status == "" {
			status = corev1.ConditionTrue
		}
		then := metav1.NewTime(now.Add(-ago))
		d.Status.Conditions = withCondition(d.Status.Conditions, appsv1.DeploymentCondition{
			Type: appsv1.DeploymentProgressing, Status: status, Reason: reason, LastUpdateTime: then, LastTransitionTime: then,
		})
	}
}

// newSetOf returns a ReplicaSet with the template of d, except for the image. Its annotations
// desired-replicas and max-replicas match d. It is one minute newer for each revision. Its
// generation is observed, and it has no pods.
func newSetOf(d *appsv1.Deployment, imageName string, revision int64, replicas int32, change ...func(*appsv1.ReplicaSet) *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	d = d.DeepCopy()
	image(imageName)(d)
	l, err := limitsOf(d)
	if err != nil {
		panic(err)
	}
	set, err := newReplicaSet(d, l, int(replicas), revision)
	if err != nil {
		panic(err)
	}
	delete(set.Annotations, appsv1.DeprecatedRollbackTo)
	set.Name = "web-" + imageName
	set.UID = types.UID("uid-" + set.Name)
	set.ResourceVersion = "10"
	set.Generation = 1
	set.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(revision-100) * time.Minute))
	set.Status = appsv1.ReplicaSetStatus{ObservedGeneration: 1, TerminatingReplicas: new(int32(0))}
	for _, c := range change {
		set = c(set)
	}
	return set
}

// withAvailablePods returns a change that gives a ReplicaSet the status of n available pods.
func withAvailablePods(n int32) func(*appsv1.ReplicaSet) *appsv1.ReplicaSet {
	return func(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
		set.Status = appsv1.ReplicaSetStatus{
			Replicas: n, FullyLabeledReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
			ObservedGeneration: set.Generation, TerminatingReplicas: new(int32(0)),
		}
		return set
	}
}

// unobserved changes the spec of a ReplicaSet after its status was written.
func unobserved(set *appsv1.ReplicaSet) *appsv1.ReplicaSet { set.Generation++; return set }

func orphan(set *appsv1.ReplicaSet) *appsv1.ReplicaSet { set.OwnerReferences = nil; return set }

func controlledByAnother(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	set.OwnerReferences[0].UID = "another"
	return set
}

func relabeled(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	set.Labels = map[string]string{"app": "db"}
	return set
}

// podOf returns a pod in the given phase that the ReplicaSet controls.
func podOf(set *appsv1.ReplicaSet, name string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: name, UID: types.UID("uid-" + name), ResourceVersion: "10",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Status: corev1.PodStatus{Phase: phase},
	}
}

// newReplicaSetName returns the name of the ReplicaSet that the controller creates for d's
// template.
func newReplicaSetName(d *appsv1.Deployment) string {
	hash, err := templatehash.Of(&d.Spec.Template, d.Status.CollisionCount)
	if err != nil {
		panic(err)
	}
	return replicaSetName(d.Name, hash)
}
