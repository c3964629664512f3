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
	// surge is how many more there may be while rolling.
	surge int
	// unavailable is how many of those wanted may be missing while rolling, at
	// most replicas.
	unavailable int
}

// most is how many replicas there may be in all.
func (l limits) most() int { return min(l.replicas+l.surge, math.MaxInt32) }

// leastAvailable is how many replicas are to be available at any time.
func (l limits) leastAvailable() int { return l.replicas - l.unavailable }

// limitsOf resolves the limits of a Deployment. Without a rolling update there
// is no surge, and all that are wanted are to be available.
func limitsOf(d *appsv1.Deployment) (limits, error) {
	l := limits{replicas: int(ptr.Deref(d.Spec.Replicas, 1))}
	if !rolls(d) {
		return l, nil
	}
	rolling := ptr.Deref(d.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
	var err error
	if l.surge, err = share(rolling.MaxSurge, l.replicas, true); err != nil {
		return limits{}, fmt.Errorf("maxSurge: %w", err)
	}
	if l.unavailable, err = share(rolling.MaxUnavailable, l.replicas, false); err != nil {
		return limits{}, fmt.Errorf("maxUnavailable: %w", err)
	}
	if l.surge == 0 && l.unavailable == 0 {
		// Nothing could ever move. Surge may be out of reach for lack of quota.
		l.unavailable = 1
	}
	l.unavailable = min(l.unavailable, l.replicas)
	return l, nil
}

func rolls(d *appsv1.Deployment) bool {
	return d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType
}

func recreates(d *appsv1.Deployment) bool {
	return d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
}

// share is a number, or a percentage of whole; 0 when absent.
func share(of *intstr.IntOrString, whole int, roundUp bool) (int, error) {
	if of == nil {
		return 0, nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(of, whole, roundUp)
	if err != nil {
		return 0, err
	}
	return min(max(n, 0), math.MaxInt32), nil
}
