// Package workload does what the users of a scenario do: it performs the steps
// one after another, straight at the API server and never through the fault
// proxy, and records each as it begins and ends.
//
// It neither decides what to do, which is the scenario's, nor judges what comes
// of it, which is the checks'.
package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// ErrUnmet is the error of an await whose time is up. Unlike any other error of
// a step it may be the doing of the subject, for the checks to judge.
var ErrUnmet = errors.New("not met in time")

// Env is where the users of a run act.
type Env struct {
	// Client leads straight to the API server and may do everything in Namespace,
	// which exists and admits pods.
	Client    kubernetes.Interface
	Namespace string
	Pods      Pods
	Recorder  Recorder
	Clock     clock.Clock
}

// Recorder takes the records of the steps.
type Recorder interface{ Append(history.Record) }

// Run performs the steps in order and ends with the last, with the first that
// fails, or with ctx. The error says which step failed, in words, and why.
func Run(ctx context.Context, env Env, steps []scenario.Step) error {
	u := &user{Env: env, created: map[scenario.Target][]string{}}
	for i, step := range steps {
		if err := u.sleep(ctx, step.After); err != nil {
			return fmt.Errorf("before step %d (%s): %w", i, step, err)
		}
		u.record(history.Step{Index: i, Event: history.StepBegun, Detail: step.String()})
		object, err := u.perform(ctx, step)
		if err != nil {
			u.record(history.Step{
				Index: i, Event: history.StepFailed, Detail: step.String(), Object: object, Error: err.Error(), Awaited: unmetObject(err),
			})
			return fmt.Errorf("step %d (%s): %w", i, step, err)
		}
		u.record(history.Step{Index: i, Event: history.StepDone, Detail: step.String(), Object: object})
	}
	return nil
}

// user performs steps and remembers what it made.
type user struct {
	Env
	created map[scenario.Target][]string // the names of the objects of each create
}

// perform does one step and returns the object that it acted on, if it was one,
// as it was after the operation.
func (u *user) perform(ctx context.Context, step scenario.Step) (*history.Ref, error) {
	var object *history.Ref
	var err error
	switch operation := step.Operation.(type) {
	case nil:
	case *scenario.Create:
		object, err = u.create(ctx, operation)
	case *scenario.Delete:
		object, err = u.delete(ctx, operation)
	default:
		target, _ := step.Target()
		object, err = u.edit(ctx, target, operation)
	}
	if err == nil && step.Await != nil {
		err = u.await(ctx, step.Await)
	}
	return object, err
}

// sleep waits for d, or less if ctx ends.
func (u *user) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := u.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (u *user) record(step history.Step) {
	u.Recorder.Append(history.Record{Step: &step})
}

// names are those of the objects that the target stands for.
func (u *user) names(target scenario.Target) []string {
	if names, ok := u.created[target]; ok {
		return names
	}
	return []string{target.Name}
}

// ref returns a reference to an object that the API server answered with.
func ref(resource string, m metav1.Object) (*history.Ref, error) {
	object, err := history.ProjectMeta(resource, m)
	if err != nil {
		return nil, err
	}
	return &object.Ref, nil
}
