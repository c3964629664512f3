package deployment

import (
	"fmt"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// limits are the rollout limits of a Deployment, as numbers of replicas.
type limits struct {
	// replicas is the desired number of replicas: spec.replicas of the Deployment.
	replicas int
	// maxSurge is the maximum number of replicas above the desired number during a rolling
	// update.
	maxSurge int
	// maxUnavailable is the maximum number of desired replicas that may be unavailable during a
	// rolling update. It is never more than replicas.
	maxUnavailable int
}

// maxReplicas returns the maximum sum of spec.replicas of all ReplicaSets: replicas plus
// maxSurge.
func (l limits) maxReplicas() int { return min(l.replicas+l.maxSurge, math.MaxInt32) }

// minAvailable returns the minimum number of available replicas: replicas minus maxUnavailable.
func (l limits) minAvailable() int { return l.replicas - l.maxUnavailable }

// limitsOf returns the rollout limits of a Deployment. If the strategy is not RollingUpdate,
// maxSurge and maxUnavailable are 0.
func limitsOf(d *appsv1.Deployment) (limits, error) {
	l := limits{replicas: int(ptr.Deref(d.Spec.Replicas, 1))}
	if !rolls(d) {
		return l, nil
	}
	rolling := ptr.Deref(d.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
	var err error
	if l.maxSurge, err = resolveIntOrPercent(rolling.MaxSurge, l.replicas, true); err != nil {
		return limits{}, fmt.Errorf("spec.strategy.rollingUpdate.maxSurge: %w", err)
	}
	if l.maxUnavailable, err = resolveIntOrPercent(rolling.MaxUnavailable, l.replicas, false); err != nil {
		return limits{}, fmt.Errorf("spec.strategy.rollingUpdate.maxUnavailable: %w", err)
	}
	if l.maxSurge == 0 && l.maxUnavailable == 0 {
		// With both limits 0, a rollout could never proceed. Like upstream, raise
		// maxUnavailable and not maxSurge, because a quota may forbid surge pods.
		l.maxUnavailable = 1
	}
	l.maxUnavailable = min(l.maxUnavailable, l.replicas)
	return l, nil
}

// rolls reports whether a Deployment has the strategy RollingUpdate.
func rolls(d *appsv1.Deployment) bool {
	return d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType
}

// recreates reports whether a Deployment has the strategy Recreate.
func recreates(d *appsv1.Deployment) bool {
	return d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
}

// resolveIntOrPercent returns a number of replicas from a number or a percentage. The argument
// whole is the number of replicas that 100 % stands for. resolveIntOrPercent rounds a percentage up
// if roundUp is true, and down otherwise. It returns 0 for nil and for a negative number.
func resolveIntOrPercent(of *intstr.IntOrString, whole int, roundUp bool) (int, error) {
	if of == nil {
		return 0, nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(of, whole, roundUp)
	if err != nil {
		return 0, err
	}
	return min(max(n, 0), math.MaxInt32), nil
}
