package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/environment"
)

// load is the work of one run: users' operations, each with a wait for its result.
type load struct {
	kind   string // ladder, idle, services or rollouts
	size   int    // number of pods of the ladder, and number of objects of the other loads
	pods   int    // maximum number of pods at a time
	phases []phase
}

// name returns the name of the load in the output, such as ladder-100.
func (l *load) name() string { return fmt.Sprintf("%s-%d", l.kind, l.size) }

// phase is one operation of a load, such as a scale-up, whose cost is measured. The function run
// returns when the operation has its result: for example, all pods are available.
type phase struct {
	name string
	run  func(ctx context.Context, c kubernetes.Interface) error
}

// ladder scales one Deployment up, rolls it, scales it to half of its size, and deletes it.
func ladder(pods int) load {
	return load{kind: "ladder", size: pods, pods: 2 * pods, phases: []phase{
		{"up", func(ctx context.Context, c kubernetes.Interface) error {
			return create(ctx, c, deployment("web", pods))
		}},
		{"roll", func(ctx context.Context, c kubernetes.Interface) error { return roll(ctx, c, "web") }},
		{"down", func(ctx context.Context, c kubernetes.Interface) error { return scale(ctx, c, "web", pods/2) }},
		{"delete", func(ctx context.Context, c kubernetes.Interface) error { return remove(ctx, c, "web") }},
	}}
}

// idleTime is how long the phase idle of the load idle lasts.
const idleTime = 20 * time.Second

// idle creates Deployments without pods, and then does nothing.
func idle(deployments int) load {
	return load{kind: "idle", size: deployments, pods: 1, phases: []phase{
		{"create", func(ctx context.Context, c kubernetes.Interface) error {
			var all []*appsv1.Deployment
			for i := range deployments {
				all = append(all, deployment(fmt.Sprintf("idle-%d", i), 0))
			}
			return create(ctx, c, all...)
		}},
		{"idle", func(ctx context.Context, _ kubernetes.Interface) error {
			return waitUntil(ctx, func(time.Duration) (bool, error) { return false, nil }, idleTime)
		}},
	}}
}

// services publishes the pods of one Deployment in many Services, and then replaces all pods.
// Each Service selects its share of the pods, and the load has one Deployment for each Service.
func services(count, podsEach int) load {
	names := numbered("app", count)
	return load{kind: "services", size: count, pods: 2 * count * podsEach, phases: []phase{
		{"up", func(ctx context.Context, c kubernetes.Interface) error {
			for _, name := range names {
				service := &corev1.Service{
					ObjectMeta: metav1.ObjectMeta{Name: name},
					Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80}}},
				}
				if _, err := c.CoreV1().Services(environment.Namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
					return err
				}
			}
			var all []*appsv1.Deployment
			for _, name := range names {
				all = append(all, deployment(name, podsEach))
			}
			return create(ctx, c, all...)
		}},
		{"roll", func(ctx context.Context, c kubernetes.Interface) error { return roll(ctx, c, names...) }},
	}}
}

// rollouts rolls many Deployments at once.
func rollouts(count, podsEach int) load {
	names := numbered("app", count)
	return load{kind: "rollouts", size: count, pods: 2 * count * podsEach, phases: []phase{
		{"up", func(ctx context.Context, c kubernetes.Interface) error {
			var all []*appsv1.Deployment
			for _, name := range names {
				all = append(all, deployment(name, podsEach))
			}
			return create(ctx, c, all...)
		}},
		{"roll", func(ctx context.Context, c kubernetes.Interface) error { return roll(ctx, c, names...) }},
	}}
}

func numbered(prefix string, count int) (names []string) {
	for i := range count {
		names = append(names, fmt.Sprintf("%s-%d", prefix, i))
	}
	return names
}

// deployment returns a Deployment whose pods have the label app with the Deployment's name.
func deployment(name string, replicas int) *appsv1.Deployment {
	count := int32(replicas)
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &count,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "registry.k8s.io/pause:3.10"}}},
			},
		},
	}
}

// create creates Deployments and waits until all their pods are available.
func create(ctx context.Context, c kubernetes.Interface, all ...*appsv1.Deployment) error {
	for _, d := range all {
		if _, err := c.AppsV1().Deployments(environment.Namespace).Create(ctx, d, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return complete(ctx, c)
}

// roll changes the pod template of Deployments, and waits until all pods are replaced.
func roll(ctx context.Context, c kubernetes.Interface, names ...string) error {
	for _, name := range names {
		if err := patch(ctx, c, name, `{"spec":{"template":{"metadata":{"annotations":{"version":"v2"}}}}}`); err != nil {
			return err
		}
	}
	return complete(ctx, c)
}

// scale changes the number of pods of a Deployment, and waits until it has this number.
func scale(ctx context.Context, c kubernetes.Interface, name string, replicas int) error {
	if err := patch(ctx, c, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)); err != nil {
		return err
	}
	return complete(ctx, c)
}

// remove deletes a Deployment, and waits until its pods are gone.
func remove(ctx context.Context, c kubernetes.Interface, name string) error {
	background := metav1.DeletePropagationBackground
	if err := c.AppsV1().Deployments(environment.Namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		return err
	}
	return waitUntil(ctx, func(time.Duration) (bool, error) {
		pods, err := c.CoreV1().Pods(environment.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name, Limit: 1})
		return err == nil && len(pods.Items) == 0, err
	}, phaseTimeout)
}

func patch(ctx context.Context, c kubernetes.Interface, name, text string) error {
	_, err := c.AppsV1().Deployments(environment.Namespace).Patch(ctx, name, types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{})
	return err
}

// complete waits until all Deployments are complete, and no older pods are left.
func complete(ctx context.Context, c kubernetes.Interface) error {
	return waitUntil(ctx, func(time.Duration) (bool, error) {
		all, err := c.AppsV1().Deployments(environment.Namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		return err == nil && !slices.ContainsFunc(all.Items, func(d appsv1.Deployment) bool { return !isComplete(&d) }), err
	}, phaseTimeout)
}

// isComplete reports whether a Deployment has exactly the wanted pods, and all are available.
func isComplete(d *appsv1.Deployment) bool {
	s := &d.Status
	return s.ObservedGeneration == d.Generation && s.Replicas == *d.Spec.Replicas && s.UpdatedReplicas == s.Replicas && s.AvailableReplicas == s.Replicas
}

// phaseTimeout limits the duration of one phase.
const phaseTimeout = 20 * time.Minute

// pollInterval is the time between two reads of the state that a phase waits for. So few reads cost
// the API server little CPU time.
const pollInterval = 100 * time.Millisecond

// waitUntil calls the function done until it returns true or an error. Its parameter is the time
// since the wait began. If the limit has passed, waitUntil returns an error, except for idleTime.
func waitUntil(ctx context.Context, done func(time.Duration) (bool, error), limit time.Duration) error {
	start := time.Now()
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		took := time.Since(start)
		ok, err := done(took)
		switch {
		case ok || err != nil:
			return ok, err
		case took < limit:
			return false, nil
		case limit == idleTime:
			return true, nil
		}
		return false, fmt.Errorf("the phase did not end within %v", limit)
	})
}
