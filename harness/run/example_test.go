package run_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// ours is the path of our controllers, which `make build` builds.
var ours = filepath.Join("..", "..", "bin", "workload-controller-manager")

// A program runs a scenario and reads the verdict of each check.
func ExampleRun() {
	out, err := os.MkdirTemp("", "gauntlet-example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(out)
	burst, err := scenario.Parse("burst.yaml", []byte(`
name: burst
description: some creates of pods fail
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 6}
    await: {until: ready}
faults:
  - api-error: {verb: create, resource: pods, code: 500, every: 3}
settle: {within: 30s, quiet: 1s}
`))
	if err != nil {
		panic(err)
	}
	result, err := run.Run(context.Background(), run.Options{Scenario: burst, Target: subject.Ours, Ours: ours, Out: out})
	if err != nil {
		panic(err)
	}
	for _, r := range result.Results {
		if r.Check == "slow-start" {
			fmt.Println(r.Check, r.Verdict)
		}
	}
	fmt.Println(result.Verdict)
	// Output:
	// slow-start pass
	// pass
}

// A program has a workload of its own, injects a single fault, and checks the history.
func ExampleStart() {
	ctx := context.Background()
	out, err := os.MkdirTemp("", "gauntlet-example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(out)
	session, err := run.Start(ctx, run.Options{Scenario: scenario.New("own-workload"), Target: subject.Ours, Ours: ours, Out: out})
	if err != nil {
		panic(err)
	}
	result, err := session.End(ctx, drive(ctx, session))
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Verdict)
	// Output: pass
}

// drive creates a ReplicaSet while every third create of a pod fails.
func drive(ctx context.Context, session *run.Session) error {
	if err := session.Begin(ctx); err != nil {
		return err
	}
	heal, err := session.Environment.Inject(ctx, environment.Injection{
		Fault: "api-error", Params: "{verb: create, resource: pods, code: 500, every: 3}",
	})
	if err != nil {
		return err
	}
	labels := map[string]string{"app": "web"}
	_, err = session.Environment.Admin.AppsV1().ReplicaSets(environment.Namespace).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(int32(6)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := session.Converged(ctx); err != nil {
		return err
	}
	if err := heal(ctx); err != nil {
		return err
	}
	return session.Settle(ctx)
}
