package deployment

import (
	"fmt"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// limits is what the user and the strategy allow, in replicas.
type limits struct {
	// replicas is how many are wanted.
	replicas int
	// maxSurge is how many more there may be while rolling.
	maxSurge int
	// maxUnavailable is how many of those wanted may be missing while rolling, at
	// most replicas.
	maxUnavailable int
}

// maxReplicas is how many replicas there may be in all.
func (l limits) maxReplicas() int { return min(l.replicas+l.maxSurge, math.MaxInt32) }

// minAvailable is how many replicas are to be available at any time.
func (l limits) minAvailable() int { return l.replicas - l.maxUnavailable }

// limitsOf resolves the limits of a Deployment. Without a rolling update there
// is no surge, and all that are wanted are to be available.
func limitsOf(d *appsv1.Deployment) (limits, error) {
	l := limits{replicas: int(ptr.Deref(d.Spec.Replicas, 1))}
	if !rolls(d) {
		return l, nil
	}
	rolling := ptr.Deref(d.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
	var err error
	if l.maxSurge, err = resolveIntOrPercent(rolling.MaxSurge, l.replicas, true); err != nil {
		return limits{}, fmt.Errorf("maxSurge: %w", err)
	}
	if l.maxUnavailable, err = resolveIntOrPercent(rolling.MaxUnavailable, l.replicas, false); err != nil {
		return limits{}, fmt.Errorf("maxUnavailable: %w", err)
	}
	if l.maxSurge == 0 && l.maxUnavailable == 0 {
		// Nothing could ever move. Surge may be out of reach for lack of quota.
		l.maxUnavailable = 1
	}
	l.maxUnavailable = min(l.maxUnavailable, l.replicas)
	return l, nil
}

func rolls(d *appsv1.Deployment) bool {
	return d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType
}

func recreates(d *appsv1.Deployment) bool {
	return d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
}

// resolveIntOrPercent is a number, or a percentage of whole; 0 when absent.
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
