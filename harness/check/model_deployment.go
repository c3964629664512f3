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

// rollbackAnnotation asks for a rollback to a revision, 0 for the last one.
const rollbackAnnotation = "deprecated.deployment.rollback.to"

// oldestOf is the oldest ReplicaSet of a template, nil if there is none.
func oldestOf(sets []*owner, pods *template) (oldest *owner) {
	for _, set := range sets {
		if set.template.same(pods) && (oldest == nil || set.before(oldest)) {
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

// Reasons of the condition Progressing.
const (
	setAvailable     = "NewReplicaSetAvailable"
	setUpdated       = "ReplicaSetUpdated"
	setCreateError   = "ReplicaSetCreateError"
	deadlineExceeded = "ProgressDeadlineExceeded"
	deploymentPaused = "DeploymentPaused"
	resumed          = "DeploymentResumed"
)

// split tells the ReplicaSets that have the Deployment's template from the others.
func (d *deployment) split(sets []*owner) (current, old []*owner) {
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
	return total(sets, actual) == d.replicas && now.status.Replicas == d.replicas && now.status.AvailableReplicas == d.replicas
}

// mayRoll is the same for a rolling update.
func (d *deployment) mayRoll(sets []*owner, now *owner, old []*owner) bool {
	specs, left := total(sets, asked), total(old, asked)
	switch {
	case now.replicas > d.replicas, now.replicas < d.replicas && specs < d.mostPods():
		return true
	case left == 0:
		return false
	}
	spare := specs - d.fewestAvailable() - max(0, now.replicas-now.status.AvailableReplicas)
	unhealthy := total(old, func(set *owner) int { return max(0, set.replicas-set.status.AvailableReplicas) })
	return spare > 0 && (unhealthy > 0 || total(sets, available) > d.fewestAvailable())
}

// What a ReplicaSet counts, for total.
func asked(set *owner) int { return set.replicas }

func actual(set *owner) int { return set.status.Replicas }

func available(set *owner) int { return set.status.AvailableReplicas }

// total adds up something over ReplicaSets.
func total(sets []*owner, of func(*owner) int) int {
	sum := 0
	for _, set := range sets {
		sum += of(set)
	}
	return sum
}

// ended reports whether the rollout is at its end, by its status or by its
// ReplicaSets.
func (d *deployment) ended(sets []*owner, now *owner) bool {
	s := &d.status
	reported := s.Replicas == d.replicas && s.UpdatedReplicas == d.replicas && s.AvailableReplicas == d.replicas && s.ObservedGeneration >= d.generation
	return reported || now != nil && d.complete(sets, now)
}

const (
	deploymentResource = "deployments.apps"
	setResource        = "replicasets.apps"
	deploymentKind     = "Deployment"
	revisionAnnotation = "deployment.kubernetes.io/revision"
	desiredAnnotation  = "deployment.kubernetes.io/desired-replicas"
	mostAnnotation     = "deployment.kubernetes.io/max-replicas"
	historyAnnotation  = "deployment.kubernetes.io/revision-history"
	appliedAnnotation  = "kubectl.kubernetes.io/last-applied-configuration"
)

// ownAnnotations are those that a Deployment and its ReplicaSets each have for
// themselves; its new ReplicaSet gets all others of the Deployment (contract
// Deployment 19).
var ownAnnotations = []string{
	revisionAnnotation, desiredAnnotation, mostAnnotation, historyAnnotation, appliedAnnotation, rollbackAnnotation,
}

// inheritable is all but ownAnnotations; nil where that is nothing.
func inheritable(annotations map[string]string) map[string]string {
	var rest map[string]string
	for key, value := range annotations {
		if slices.Contains(ownAnnotations, key) {
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
	Conditions          []datedCondition
}

type deploymentCondition struct{ Type, Status, Reason string }

// datedCondition is a condition with when it was last renewed.
type datedCondition struct {
	deploymentCondition
	LastUpdateTime time.Time
}

// failure reports whether a condition says that pods could not be made or deleted.
func (c deploymentCondition) failure() bool { return c.Type == "ReplicaFailure" && c.Status == "True" }

// condition returns the condition of that type, a zero one if there is none.
func (s *deploymentStatus) condition(name string) deploymentCondition {
	return s.dated(name).deploymentCondition
}

// dated returns the same with its date.
func (s *deploymentStatus) dated(name string) datedCondition {
	for _, c := range s.Conditions {
		if c.Type == name {
			return c
		}
	}
	return datedCondition{}
}

// String is how evidence names the Deployment.
func (d *deployment) String() string { return deploymentKind + " " + d.Namespace + "/" + d.Name }

// mostPods is what the specs of its ReplicaSets may add up to.
func (d *deployment) mostPods() int { return d.replicas + d.surge }

// fewestAvailable is how many pods a rolling update must leave available.
func (d *deployment) fewestAvailable() int { return d.replicas - d.unavailable }

// owns reports whether a ReplicaSet counts as this Deployment's.
func (d *deployment) owns(set *owner) bool {
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
	selector, err := d.selectors[kindByResource(setResource)].read(spec.Selector, labelSelector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	pods, err := d.templates.read(spec.Template, readTemplate)
	if err != nil {
		return nil, fmt.Errorf("spec.template: %w", err)
	}
	result := &deployment{
		Ref:          o.Ref,
		generation:   o.Generation,
		terminating:  o.Terminating(),
		paused:       spec.Paused,
		recreate:     spec.Strategy.Type == "Recreate",
		replicas:     orOne(spec.Replicas),
		selector:     selector,
		template:     pods,
		annotations:  inheritable(o.Annotations),
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

// highest is the highest revision of some ReplicaSets, 0 of none.
func highest(sets []*owner) (revision int64) {
	for _, set := range sets {
		revision = max(revision, set.revision)
	}
	return revision
}

// beingScaled reports whether one of the ReplicaSets was last scaled for another
// number of replicas, so that all are scaled in proportion before a rollout goes
// on (contract Deployment 11).
func (d *deployment) beingScaled(sets []*owner) bool {
	for _, set := range sets {
		if set.replicas > 0 && set.desired >= 0 && set.desired != d.replicas {
			return true
		}
	}
	return false
}
