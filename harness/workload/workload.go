// Package workload performs the user operations of a scenario. It performs the steps
// one after another and records the beginning and the end of each. Its requests go
// directly to the API server, never through the fault proxy.
//
// The scenario decides what to do, and the checks decide whether the result is correct.
package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// ErrUnmet reports that an await timed out. Unlike other errors of a step, the subject
// may have caused the timeout. The run therefore continues, and the checks decide.
var ErrUnmet = errors.New("the await timed out")

// Env is the environment in which the user operations run.
type Env struct {
	// Client connects directly to the API server and has all permissions in Namespace.
	// The namespace exists and admits pods.
	Client kubernetes.Interface
	// Dynamic connects in the same way as Client. It is nil if no step has an object of a
	// generic kind.
	Dynamic dynamic.Interface
	// Kinds describes the generic kinds of the scenario; see
	// [scenario.Scenario.GenericKinds]. A kind that only a create names may be missing.
	Kinds     []kube.Kind
	Namespace string
	Pods      Pods
	Recorder  Recorder
	Clock     clock.Clock
}

// Recorder receives a record at the beginning and at the end of each step.
type Recorder interface{ Append(history.Record) }

// Run performs the steps in order. It returns after the last step, at the first step
// that fails, or when ctx ends. The error names the step and the reason.
func Run(ctx context.Context, env Env, steps []scenario.Step) error {
	u := &user{Env: env, created: map[scenario.Target][]string{}, described: describedKinds(env, steps)}
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

// user performs steps and keeps the names of the objects that it created.
type user struct {
	Env
	created   map[scenario.Target][]string // names of the objects of each create
	described map[scenario.Kind]kube.Kind  // generic kinds by name
}

// perform performs one step. It returns a reference to the object that the operation
// changed, with its new version. The reference is nil if the operation changed no
// object or several.
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

// sleep waits for d, or until ctx ends.
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

// names returns the names of the objects to which the target refers.
func (u *user) names(target scenario.Target) []string {
	if names, ok := u.created[target]; ok {
		return names
	}
	return []string{target.Name}
}

// ref returns a reference to an object in a response of the API server.
func ref(resource string, m metav1.Object) (*history.Ref, error) {
	object, err := history.ProjectMeta(resource, m)
	if err != nil {
		return nil, err
	}
	return &object.Ref, nil
}
