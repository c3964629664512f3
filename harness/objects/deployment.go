package objects

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

// notInheritedAnnotations are the annotations of a Deployment that the Deployment controller
// does not copy to the new ReplicaSet. It copies all other annotations; see the statement
// Deployment 19 in controllers/CONTRACT.md.
var notInheritedAnnotations = []string{
	RevisionAnnotation, DesiredReplicasAnnotation, MaxReplicasAnnotation, RevisionHistoryAnnotation, LastAppliedAnnotation, RollbackAnnotation,
}

// inheritedAnnotations returns the annotations that the Deployment controller copies from a
// Deployment to its new ReplicaSet. It returns nil if there are none.
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

// Deployment contains the decoded fields of one version of a Deployment. It is immutable.
type Deployment struct {
	history.Ref
	Generation  int64
	Terminating bool
	Paused      bool
	Recreate    bool // the strategy is Recreate, otherwise RollingUpdate
	Replicas    int  // spec.replicas
	Selector    labels.Selector
	Template    *Template
	Annotations map[string]string // the Deployment's annotations that its new ReplicaSet must also have
	LastApplied string            // value of LastAppliedAnnotation
	MinReady    time.Duration     // spec.minReadySeconds
	// MaxSurge and MaxUnavailable are numbers of pods. A percentage in the spec is converted to
	// a number of pods. Both fields are 0 for the strategy Recreate.
	MaxSurge, MaxUnavailable int
	RevisionHistoryLimit     int
	Revision                 int64 // value of RevisionAnnotation; 0 if the annotation is absent
	// RollbackTo is the revision in RollbackAnnotation, to which the user wants to return. 0
	// means the previous revision. -1 means that the annotation is missing or is not an integer.
	RollbackTo int64
	// ProgressDeadline is spec.progressDeadlineSeconds. 0 means that the Deployment has no
	// deadline. The Deployment controller then does not set the condition Progressing.
	ProgressDeadline time.Duration
	Status           DeploymentStatus
}

// DeploymentStatus contains the decoded status of a Deployment.
type DeploymentStatus struct {
	ObservedGeneration  int64 `json:"observedGeneration"`
	Replicas            int   `json:"replicas"`
	UpdatedReplicas     int   `json:"updatedReplicas"`
	ReadyReplicas       int   `json:"readyReplicas"`
	AvailableReplicas   int   `json:"availableReplicas"`
	UnavailableReplicas int   `json:"unavailableReplicas"`
	CollisionCount      int   `json:"collisionCount"`
	Conditions          []ConditionWithTime
}

// Condition is a condition in the status of an object.
//
// Its fields have JSON names, because the decoder finds a field without one more slowly.
type Condition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
	Reason string `json:"reason"`
}

// ConditionWithTime is a condition with its lastUpdateTime and lastTransitionTime.
type ConditionWithTime struct {
	Condition
	LastUpdateTime     time.Time `json:"lastUpdateTime"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}

// IsReplicaFailure reports whether the condition is ReplicaFailure=True.
func (c Condition) IsReplicaFailure() bool {
	return c.Type == ReplicaFailureCondition && c.Status == "True"
}

// Condition returns the condition with the given type, such as "Progressing". It returns the
// zero value if the status does not have this condition.
func (s *DeploymentStatus) Condition(name string) Condition {
	return s.ConditionWithTime(name).Condition
}

// ConditionWithTime returns the condition with the given type and its times. It returns the zero
// value if the status does not have this condition.
func (s *DeploymentStatus) ConditionWithTime(name string) ConditionWithTime {
	for _, c := range s.Conditions {
		if c.Type == name {
			return c
		}
	}
	return ConditionWithTime{}
}

// String returns "Deployment namespace/name".
func (d *Deployment) String() string { return DeploymentKind + " " + d.Namespace + "/" + d.Name }

// MaxPods returns spec.replicas + maxSurge of the Deployment. During a rollout, the sum of
// spec.replicas of the Deployment's ReplicaSets must not exceed this number.
func (d *Deployment) MaxPods() int { return d.Replicas + d.MaxSurge }

// MinAvailable returns spec.replicas - maxUnavailable of the Deployment. This is the number of
// pods that a rolling update must leave available.
func (d *Deployment) MinAvailable() int { return d.Replicas - d.MaxUnavailable }

// Complete reports whether the rollout is complete according to the Deployment's status. The
// controller must have observed the latest spec, and all replicas must be updated and available.
func (d *Deployment) Complete() bool {
	s := &d.Status
	return s.ObservedGeneration >= d.Generation && s.Replicas == d.Replicas && s.UpdatedReplicas == d.Replicas && s.AvailableReplicas == d.Replicas
}

// Counts reports whether the Deployment controller counts a ReplicaSet as a ReplicaSet of the
// Deployment. The Deployment must control the ReplicaSet, and the ReplicaSet's labels must match
// the Deployment's selector. The ReplicaSet must not be terminating.
func (d *Deployment) Counts(set *Owner) bool {
	return set.Controller.UID == d.UID && !set.Terminating && d.Selector.Matches(set.Labels)
}

// DecodeDeployment returns a Deployment in decoded form, without using the cache of versions.
// Callers use it for objects in requests, which etcd has not committed.
func (d *Decoder) DecodeDeployment(o *history.Object) (*Deployment, error) {
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
		Status DeploymentStatus
	}
	if err := Unmarshal(o.Body, &body); err != nil {
		return nil, err
	}
	spec := &body.Spec
	selector, err := d.selectors[OwnerKindByResource(ReplicaSetResource)].read(spec.Selector, ParseLabelSelector)
	if err != nil {
		return nil, fmt.Errorf("decoding spec.selector: %w", err)
	}
	pods, err := d.templates.read(spec.Template, decodeTemplate)
	if err != nil {
		return nil, fmt.Errorf("decoding spec.template: %w", err)
	}
	result := &Deployment{
		Ref:                  o.Ref,
		Generation:           o.Generation,
		Terminating:          o.Terminating(),
		Paused:               spec.Paused,
		Recreate:             spec.Strategy.Type == "Recreate",
		Replicas:             replicasOrDefault(spec.Replicas),
		Selector:             selector,
		Template:             pods,
		Annotations:          inheritedAnnotations(o.Annotations),
		LastApplied:          o.Annotations[LastAppliedAnnotation],
		MinReady:             time.Duration(spec.MinReadySeconds) * time.Second,
		RevisionHistoryLimit: 10, // the API's default
		Revision:             WholeNumber(o.Annotations[RevisionAnnotation], 0),
		RollbackTo:           WholeNumber(o.Annotations[RollbackAnnotation], -1),
		Status:               body.Status,
	}
	if spec.RevisionHistoryLimit != nil {
		result.RevisionHistoryLimit = *spec.RevisionHistoryLimit
	}
	if seconds := spec.ProgressDeadlineSeconds; seconds != nil && *seconds != math.MaxInt32 {
		result.ProgressDeadline = time.Duration(*seconds) * time.Second
	}
	if result.Recreate {
		return result, nil
	}
	rolling := spec.Strategy.RollingUpdate
	result.MaxSurge, result.MaxUnavailable, err = fenceposts(rolling.MaxSurge, rolling.MaxUnavailable, result.Replicas)
	return result, err
}

// fenceposts returns maxSurge and maxUnavailable as numbers of pods. The returned maxUnavailable
// is at most replicas. The statement Deployment 8 in controllers/CONTRACT.md specifies the
// rounding.
//
// If both results were 0, no rollout could proceed. fenceposts then returns 1 as maxUnavailable.
func fenceposts(maxSurge, maxUnavailable *intstr.IntOrString, replicas int) (surge, unavailable int, err error) {
	zero := intstr.FromInt32(0)
	if surge, err = intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(maxSurge, zero), replicas, true); err != nil {
		return 0, 0, fmt.Errorf("decoding spec.strategy.rollingUpdate.maxSurge: %w", err)
	}
	if unavailable, err = intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(maxUnavailable, zero), replicas, false); err != nil {
		return 0, 0, fmt.Errorf("decoding spec.strategy.rollingUpdate.maxUnavailable: %w", err)
	}
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, min(unavailable, replicas), nil
}
