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

// rollbackAnnotation asks for a rollback to a revision, 0 for the last one.
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

// notInheritedAnnotations are those that a Deployment and its ReplicaSets each have for
// themselves; its new ReplicaSet gets all others of the Deployment (contract
// Deployment 19).
var notInheritedAnnotations = []string{
	revisionAnnotation, desiredReplicasAnnotation, maxReplicasAnnotation, revisionHistoryAnnotation, lastAppliedAnnotation, rollbackAnnotation,
}

// inheritedAnnotations is all but notInheritedAnnotations; nil where that is nothing.
func inheritedAnnotations(annotations map[string]string) map[string]string {
	var rest map[string]string
	for key, value := range annotations {
		if slices.Contains(notInheritedAnnotations, key) {
			continue
		}
		if rest == nil {
			rest = map[string]string{}
		}
		rest[key] = value
	}
	return rest
}

// deployment is what the checks need of one version of a Deployment. It never
// changes.
type deployment struct {
	history.Ref
	generation  int64
	terminating bool
	paused      bool
	recreate    bool // its strategy is Recreate, else RollingUpdate
	replicas    int  // spec.replicas
	selector    labels.Selector
	template    *template
	annotations map[string]string // that its ReplicaSets get
	minReady    time.Duration
	// surge is how many more pods than replicas there may be in a rolling update,
	// unavailable how many fewer may be available: percentages are resolved.
	surge, unavailable int
	historyLimit       int
	// rollback is the revision that is to be gone back to, 0 for the last one; -1:
	// none is.
	rollback int64
	// deadline is in what time a rollout must make progress; 0: there is none, and
	// progress is not reported.
	deadline time.Duration
	status   deploymentStatus
}

// deploymentStatus is what the controller says of a Deployment.
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

// deploymentConditionWithTime is a condition with when it was last renewed.
type deploymentConditionWithTime struct {
	deploymentCondition
	LastUpdateTime time.Time
}

// failure reports whether a condition says that pods could not be made or deleted.
func (c deploymentCondition) failure() bool { return c.Type == "ReplicaFailure" && c.Status == "True" }

// condition returns the condition of that type, a zero one if there is none.
func (s *deploymentStatus) condition(name string) deploymentCondition {
	return s.conditionWithTime(name).deploymentCondition
}

// conditionWithTime returns the same with its date.
func (s *deploymentStatus) conditionWithTime(name string) deploymentConditionWithTime {
	for _, c := range s.Conditions {
		if c.Type == name {
			return c
		}
	}
	return deploymentConditionWithTime{}
}

// String is how evidence names the Deployment.
func (d *deployment) String() string { return deploymentKind + " " + d.Namespace + "/" + d.Name }

// maxPods is what the specs of its ReplicaSets may add up to.
func (d *deployment) maxPods() int { return d.replicas + d.surge }

// minAvailable is how many pods a rolling update must leave available.
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

// fenceposts resolves what a rolling update may add and take away (contract
// Deployment 8). Both at zero would never move, so one may be unavailable.
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

// highestRevision is the highest revision of some ReplicaSets, 0 of none.
func highestRevision(sets []*owner) (revision int64) {
	for _, set := range sets {
		revision = max(revision, set.revision)
	}
	return revision
}

// scalingPending reports whether one of the ReplicaSets was last scaled for another
// number of replicas, so that all are scaled in proportion before a rollout goes
// on (contract Deployment 11).
func (d *deployment) scalingPending(sets []*owner) bool {
	for _, set := range sets {
		if set.replicas > 0 && set.desiredReplicas >= 0 && set.desiredReplicas != d.replicas {
			return true
		}
	}
	return false
}

// oldestOf is the oldest ReplicaSet of a template, nil if there is none.
func oldestOf(sets []*owner, pods *template) (oldest *owner) {
	for _, set := range sets {
		if set.template.same(pods) && (oldest == nil || set.olderThan(oldest)) {
			oldest = set
		}
	}
	return oldest
}

// availability is the condition Available of a Deployment of which enough
// replicas are available, or not.
func availability(enough bool) deploymentCondition {
	if enough {
		return deploymentCondition{"Available", "True", "MinimumReplicasAvailable"}
	}
	return deploymentCondition{"Available", "False", "MinimumReplicasUnavailable"}
}

// splitByTemplate tells the ReplicaSets that have the Deployment's template from the others.
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

// complete reports whether nothing but the new ReplicaSet's pods is left, and
// all of them are available.
func (d *deployment) complete(sets []*owner, now *owner) bool {
	return sumOf(sets, statusReplicas) == d.replicas && now.status.Replicas == d.replicas && now.status.AvailableReplicas == d.replicas
}

// canRoll is the same for a rolling update.
func (d *deployment) canRoll(sets []*owner, now *owner, old []*owner) bool {
	specs, left := sumOf(sets, specReplicas), sumOf(old, specReplicas)
	switch {
	case now.replicas > d.replicas, now.replicas < d.replicas && specs < d.maxPods():
		return true
	case left == 0:
		return false
	}
	spare := specs - d.minAvailable() - max(0, now.replicas-now.status.AvailableReplicas)
	unhealthy := sumOf(old, func(set *owner) int { return max(0, set.replicas-set.status.AvailableReplicas) })
	return spare > 0 && (unhealthy > 0 || sumOf(sets, availableReplicas) > d.minAvailable())
}

// What a ReplicaSet counts, for total.
func specReplicas(set *owner) int { return set.replicas }

func statusReplicas(set *owner) int { return set.status.Replicas }

func availableReplicas(set *owner) int { return set.status.AvailableReplicas }

// sumOf adds up something over ReplicaSets.
func sumOf(sets []*owner, of func(*owner) int) int {
	sum := 0
	for _, set := range sets {
		sum += of(set)
	}
	return sum
}

// rolloutEnded reports whether the rollout is at its end, by its status or by its
// ReplicaSets.
func (d *deployment) rolloutEnded(sets []*owner, now *owner) bool {
	s := &d.status
	reported := s.Replicas == d.replicas && s.UpdatedReplicas == d.replicas && s.AvailableReplicas == d.replicas && s.ObservedGeneration >= d.generation
	return reported || now != nil && d.complete(sets, now)
}
