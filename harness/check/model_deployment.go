package check

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

const (
	deploymentResource        = "deployments.apps"
	replicaSetResource        = "replicasets.apps"
	deploymentKind            = "Deployment"
	revisionAnnotation        = "deployment.kubernetes.io/revision"
	desiredReplicasAnnotation = "deployment.kubernetes.io/desired-replicas"
	maxReplicasAnnotation     = "deployment.kubernetes.io/max-replicas"
	revisionHistoryAnnotation = "deployment.kubernetes.io/revision-history"
	lastAppliedAnnotation     = "kubectl.kubernetes.io/last-applied-configuration"
)

// rollbackAnnotation requests a rollback to a revision; 0 means the previous one.
const rollbackAnnotation = "deprecated.deployment.rollback.to"

// Reasons of the condition Progressing.
const (
	newReplicaSetAvailable = "NewReplicaSetAvailable"
	replicaSetUpdated      = "ReplicaSetUpdated"
	replicaSetCreateError  = "ReplicaSetCreateError"
	deadlineExceeded       = "ProgressDeadlineExceeded"
	deploymentPaused       = "DeploymentPaused"
	deploymentResumed      = "DeploymentResumed"
)

// notInheritedAnnotations are the annotations that a ReplicaSet does not copy from its
// Deployment. The new ReplicaSet has all other annotations of the Deployment (contract
// Deployment 19).
var notInheritedAnnotations = []string{
	revisionAnnotation, desiredReplicasAnnotation, maxReplicasAnnotation, revisionHistoryAnnotation, lastAppliedAnnotation, rollbackAnnotation,
}

// inheritedAnnotations returns all annotations except notInheritedAnnotations; nil if
// there are none.
func inheritedAnnotations(annotations map[string]string) map[string]string {
	var inherited map[string]string
	for key, value := range annotations {
		if slices.Contains(notInheritedAnnotations, key) {
			continue
		}
		if inherited == nil {
			inherited = map[string]string{}
		}
		inherited[key] = value
	}
	return inherited
}

// deployment contains the fields of one version of a Deployment that checkers read. It is
// immutable.
type deployment struct {
	history.Ref
	generation  int64
	terminating bool
	paused      bool
	recreate    bool // the strategy is Recreate, otherwise RollingUpdate
	replicas    int  // spec.replicas
	selector    labels.Selector
	template    *template
	annotations map[string]string // that its new ReplicaSet must have
	minReady    time.Duration
	// surge is maxSurge, and unavailable is maxUnavailable, with percentages resolved.
	surge, unavailable int
	historyLimit       int
	// rollback is the revision in rollbackAnnotation: 0 for the previous one, -1 if there
	// is no annotation.
	rollback int64
	// deadline is spec.progressDeadlineSeconds. 0 means that there is none, and that the
	// condition Progressing is not set.
	deadline time.Duration
	status   deploymentStatus
}

// deploymentStatus is the status of a Deployment.
type deploymentStatus struct {
	ObservedGeneration  int64 `json:"observedGeneration"`
	Replicas            int   `json:"replicas"`
	UpdatedReplicas     int   `json:"updatedReplicas"`
	ReadyReplicas       int   `json:"readyReplicas"`
	AvailableReplicas   int   `json:"availableReplicas"`
	UnavailableReplicas int   `json:"unavailableReplicas"`
	CollisionCount      int   `json:"collisionCount"`
	Conditions          []deploymentConditionWithTime
}

type deploymentCondition struct{ Type, Status, Reason string }

// deploymentConditionWithTime is a condition with its lastUpdateTime.
type deploymentConditionWithTime struct {
	deploymentCondition
	LastUpdateTime time.Time
}

// failure reports whether the condition is ReplicaFailure=True.
func (c deploymentCondition) failure() bool { return c.Type == "ReplicaFailure" && c.Status == "True" }

// describe returns the status and the reason as evidence names them.
func (c deploymentCondition) describe() string {
	if c == (deploymentCondition{}) {
		return "absent"
	}
	return c.Status + " (" + c.Reason + ")"
}

// condition returns the condition of the given type, or a zero value.
func (s *deploymentStatus) condition(name string) deploymentCondition {
	return s.conditionWithTime(name).deploymentCondition
}

// conditionWithTime returns the same with its lastUpdateTime.
func (s *deploymentStatus) conditionWithTime(name string) deploymentConditionWithTime {
	for _, c := range s.Conditions {
		if c.Type == name {
			return c
		}
	}
	return deploymentConditionWithTime{}
}

// String returns the Deployment as evidence names it.
func (d *deployment) String() string { return deploymentKind + " " + d.Namespace + "/" + d.Name }

// maxPods returns the maximum sum of spec.replicas of its ReplicaSets: replicas +
// maxSurge.
func (d *deployment) maxPods() int { return d.replicas + d.surge }

// minAvailable returns replicas - maxUnavailable.
func (d *deployment) minAvailable() int { return d.replicas - d.unavailable }

// counts reports whether a ReplicaSet counts as this Deployment's.
func (d *deployment) counts(set *owner) bool {
	return set.controller.UID == d.UID && !set.terminating && d.selector.Matches(set.labels)
}

func (d *decoder) decodeDeployment(o *history.Object) (*deployment, error) {
	var body struct {
		Spec struct {
			Replicas                *int
			MinReadySeconds         int
			Paused                  bool
			Selector                json.RawMessage
			Template                json.RawMessage
			RevisionHistoryLimit    *int
			ProgressDeadlineSeconds *int
			Strategy                struct {
				Type          string
				RollingUpdate struct{ MaxSurge, MaxUnavailable *intstr.IntOrString }
			}
		}
		Status deploymentStatus
	}
	if err := unmarshalSome(o.Body, &body); err != nil {
		return nil, err
	}
	spec := &body.Spec
	selector, err := d.selectors[kindByResource(replicaSetResource)].read(spec.Selector, labelSelector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	pods, err := d.templates.read(spec.Template, decodeTemplate)
	if err != nil {
		return nil, fmt.Errorf("spec.template: %w", err)
	}
	result := &deployment{
		Ref:          o.Ref,
		generation:   o.Generation,
		terminating:  o.Terminating(),
		paused:       spec.Paused,
		recreate:     spec.Strategy.Type == "Recreate",
		replicas:     replicasOrDefault(spec.Replicas),
		selector:     selector,
		template:     pods,
		annotations:  inheritedAnnotations(o.Annotations),
		minReady:     time.Duration(spec.MinReadySeconds) * time.Second,
		historyLimit: 10, // the API's default
		rollback:     wholeNumber(o.Annotations[rollbackAnnotation], -1),
		status:       body.Status,
	}
	if spec.RevisionHistoryLimit != nil {
		result.historyLimit = *spec.RevisionHistoryLimit
	}
	if seconds := spec.ProgressDeadlineSeconds; seconds != nil && *seconds != math.MaxInt32 {
		result.deadline = time.Duration(*seconds) * time.Second
	}
	if result.recreate {
		return result, nil
	}
	rolling := spec.Strategy.RollingUpdate
	result.surge, result.unavailable, err = fenceposts(rolling.MaxSurge, rolling.MaxUnavailable, result.replicas)
	return result, err
}

// fenceposts resolves maxSurge and maxUnavailable (contract Deployment 8). If both are 0,
// no rollout could proceed, so maxUnavailable is 1.
func fenceposts(maxSurge, maxUnavailable *intstr.IntOrString, replicas int) (surge, unavailable int, err error) {
	zero := intstr.FromInt32(0)
	if surge, err = intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(maxSurge, zero), replicas, true); err != nil {
		return 0, 0, fmt.Errorf("spec.strategy.rollingUpdate.maxSurge: %w", err)
	}
	if unavailable, err = intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(maxUnavailable, zero), replicas, false); err != nil {
		return 0, 0, fmt.Errorf("spec.strategy.rollingUpdate.maxUnavailable: %w", err)
	}
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, min(unavailable, replicas), nil
}

// highestRevision returns the highest revision of the ReplicaSets, 0 if there are none.
func highestRevision(sets []*owner) (revision int64) {
	for _, set := range sets {
		revision = max(revision, set.revision)
	}
	return revision
}

// scalingPending reports whether a ReplicaSet was last scaled for another spec.replicas
// of the Deployment. The controller then scales all of them in proportion before it
// continues the rollout (contract Deployment 11).
func (d *deployment) scalingPending(sets []*owner) bool {
	for _, set := range sets {
		if set.replicas > 0 && set.desiredReplicas >= 0 && set.desiredReplicas != d.replicas {
			return true
		}
	}
	return false
}

// oldestOf returns the oldest ReplicaSet with the template, nil if there is none.
func oldestOf(sets []*owner, pods *template) (oldest *owner) {
	for _, set := range sets {
		if set.template.same(pods) && (oldest == nil || set.olderThan(oldest)) {
			oldest = set
		}
	}
	return oldest
}

// availability returns the condition Available of a Deployment. enough says whether
// minAvailable replicas are available.
func availability(enough bool) deploymentCondition {
	if enough {
		return deploymentCondition{"Available", "True", "MinimumReplicasAvailable"}
	}
	return deploymentCondition{"Available", "False", "MinimumReplicasUnavailable"}
}

// splitByTemplate separates the ReplicaSets with the Deployment's template from the old
// ones.
func (d *deployment) splitByTemplate(sets []*owner) (current, old []*owner) {
	for _, set := range sets {
		if set.template.same(d.template) {
			current = append(current, set)
		} else {
			old = append(old, set)
		}
	}
	return current, old
}

// complete reports whether only the new ReplicaSet has pods, and all of them are
// available.
func (d *deployment) complete(sets []*owner, newSet *owner) bool {
	return sumOf(sets, statusReplicas) == d.replicas && newSet.status.Replicas == d.replicas && newSet.status.AvailableReplicas == d.replicas
}

// canRoll reports whether a rolling update can scale a ReplicaSet now, without waiting
// for pods.
func (d *deployment) canRoll(sets []*owner, newSet *owner, old []*owner) bool {
	specs, oldSpecs := sumOf(sets, specReplicas), sumOf(old, specReplicas)
	switch {
	case newSet.replicas > d.replicas, newSet.replicas < d.replicas && specs < d.maxPods():
		return true
	case oldSpecs == 0:
		return false
	}
	spare := specs - d.minAvailable() - max(0, newSet.replicas-newSet.status.AvailableReplicas)
	unhealthy := sumOf(old, func(set *owner) int { return max(0, set.replicas-set.status.AvailableReplicas) })
	return spare > 0 && (unhealthy > 0 || sumOf(sets, availableReplicas) > d.minAvailable())
}

// specReplicas, statusReplicas and availableReplicas are arguments of sumOf.
func specReplicas(set *owner) int { return set.replicas }

func statusReplicas(set *owner) int { return set.status.Replicas }

func availableReplicas(set *owner) int { return set.status.AvailableReplicas }

// sumOf adds up a count over ReplicaSets.
func sumOf(sets []*owner, count func(*owner) int) int {
	sum := 0
	for _, set := range sets {
		sum += count(set)
	}
	return sum
}

// rolloutEnded reports whether the rollout is complete, by the Deployment's status or by
// its ReplicaSets.
func (d *deployment) rolloutEnded(sets []*owner, newSet *owner) bool {
	s := &d.status
	reported := s.Replicas == d.replicas && s.UpdatedReplicas == d.replicas && s.AvailableReplicas == d.replicas && s.ObservedGeneration >= d.generation
	return reported || newSet != nil && d.complete(sets, newSet)
}
