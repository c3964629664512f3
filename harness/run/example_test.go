package run_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// ours is the path of the controllers of this repository, which `make build` builds.
var ours = filepath.Join("..", "..", "bin", "workload-controller-manager")

// This program runs a scenario and reads the verdict of each check.
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

// This program runs its own workload while the faults of a scenario act.
func ExampleRun_workload() {
	out, err := os.MkdirTemp("", "gauntlet-example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(out)
	external, err := scenario.Parse("external.yaml", []byte(`
name: external
description: some creates of pods fail
externalWorkload: {pods: 6}
faults:
  - api-error: {verb: create, resource: pods, code: 500, every: 3}
settle: {within: 30s, quiet: 1s}
exercises: [slow-start]
`))
	if err != nil {
		panic(err)
	}
	result, err := run.Run(context.Background(), run.Options{
		Scenario: external, Target: subject.Ours, Ours: ours, Out: out,
		Workload: func(ctx context.Context, s *run.Session) error {
			replicaSets := s.Environment.Admin.AppsV1().ReplicaSets(environment.Namespace)
			if _, err := replicaSets.Create(ctx, web(6), metav1.CreateOptions{}); err != nil {
				return err
			}
			return s.Converged(ctx)
		},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Verdict)
	// Output: pass
}

// This program begins the phases of a run itself, and injects a fault between two operations.
func ExampleStart() {
	out, err := os.MkdirTemp("", "gauntlet-example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(out)
	ctx := context.Background()
	s, err := run.Start(ctx, run.Options{
		Scenario: scenario.New("phases", "creates of pods fail"), Target: subject.Ours, Ours: ours, Out: out,
	})
	if err != nil {
		panic(err)
	}
	result, err := s.End(ctx, phases(ctx, s))
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Verdict)

	fired := 0
	for record, err := range history.ReadFile(run.HistoryFile(s.Directory())) {
		if err != nil {
			panic(err)
		}
		if record.Fault != nil && record.Fault.Event == history.FaultFired {
			fired++
		}
	}
	fmt.Println("some requests failed:", fired > 0)
	// Output:
	// pass
	// some requests failed: true
}

// phases runs all phases. It creates a ReplicaSet while a fault makes some pod creates fail.
func phases(ctx context.Context, s *run.Session) error {
	if err := s.Begin(ctx); err != nil {
		return err
	}
	heal, err := s.Environment.Inject(ctx, environment.Injection{
		Fault:  "api-error",
		Params: "{verb: create, resource: pods, code: 500, every: 3}",
	})
	if err != nil {
		return err
	}
	_, err = s.Environment.Admin.AppsV1().ReplicaSets(environment.Namespace).Create(ctx, web(6), metav1.CreateOptions{})
	if err := errors.Join(err, s.Converged(ctx), heal(ctx)); err != nil {
		return err
	}
	return s.Settle(ctx)
}

// web returns the ReplicaSet web with the given number of replicas.
func web(replicas int32) *appsv1.ReplicaSet {
	labels := map[string]string{"app": "web"}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.com/web"}}},
			},
		},
	}
}
