// Package workload executes the workload of a scenario: the operations of users, and their waits
// for conditions (awaits). It executes one step after another, and records the beginning and the
// end of each step. Its requests go directly to the API server, never through the fault proxy.
//
// The package does not decide whether the controllers under test behaved correctly. The checks
// decide this from the history.
package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// ErrUnmet is the error of a step whose object did not meet the awaited condition in time. This
// includes the additional time that [Env.Late] grants.
//
// The controllers under test may have caused the timeout. Therefore the run continues, but
// without the remaining steps. The checks decide whether the controllers violated a guarantee.
// Other errors of a step abort the run.
var ErrUnmet = errors.New("an await step of the workload timed out")

// Env has the clients and settings with which [Run] executes a workload.
type Env struct {
	// Client connects directly to the API server and has all permissions in Namespace. The
	// namespace must exist and accept pods.
	Client kubernetes.Interface
	// Dynamic is a client for objects of generic kinds, which scenarios create from manifests
	// (see [scenario.Kind]). It connects directly to the API server. It may be nil if no step
	// acts on objects of generic kinds.
	Dynamic dynamic.Interface
	// Kinds lists the generic kinds of the scenario, which it creates from manifests; see
	// [scenario.Scenario.GenericKinds]. A kind may be missing if a create step has the apiVersion
	// of the kind.
	Kinds []kube.Kind
	// Namespace is the namespace in which the workload creates all namespaced objects.
	Namespace string
	// Pods says which image the pods of the workload run, and how fast they start and stop.
	Pods Pods
	// Recorder receives a record at the beginning and at the end of each step.
	Recorder Recorder
	// Clock measures delays and timeouts.
	Clock clock.Clock
	// Late is called when an object does not meet an awaited condition in time. The wait goes on until
	// Late returns, and then fails. The argument ctx ends when the wait ends. If Late is nil, the wait
	// fails at once.
	Late func(ctx context.Context)
	// Quiet waits until the controllers under test are quiet, as the condition
	// [scenario.Quiet] says, or until ctx ends. It may be nil if no step has this condition.
	Quiet func(ctx context.Context)
}

// Recorder receives the records of steps and appends them to the history.
type Recorder interface{ Append(history.Record) }

// Run executes the steps in order. It returns nil after the last step. When a step fails or ctx
// ends, Run returns an error and executes no further step. The error names the step and the
// reason.
func Run(ctx context.Context, env Env, steps []scenario.Step) error {
	u := &user{Env: env, created: map[scenario.Target][]string{}, described: describedKinds(env, steps)}
	for i, step := range steps {
		if err := u.sleep(ctx, step.After); err != nil {
			return fmt.Errorf("waiting before step %d (%s): %w", i, step, err)
		}
		u.record(history.Step{Index: i, Event: history.StepBegun, Detail: step.String()})
		object, err := u.perform(ctx, step, func() { u.record(history.Step{Index: i, Event: history.StepLate, Detail: step.String()}) })
		if err != nil {
			err = oneLine{err}
			u.record(history.Step{
				Index: i, Event: history.StepFailed, Detail: step.String(), Object: object, Error: err.Error(), Awaited: unmetObject(err),
			})
			return fmt.Errorf("step %d (%s): %w", i, step, err)
		}
		u.record(history.Step{Index: i, Event: history.StepDone, Detail: step.String(), Object: object})
	}
	return nil
}

// goValue matches the beginning of a difference of Go values.
var goValue = regexp.MustCompile(`^\s*(@@|&?[a-z]\w*\.[A-Z]\w*\{)`)

// oneLine is an error of a step with a text of one line. If the API server refuses fields of an object, the
// text has these fields. For some objects, further lines of the API server's error are a difference of Go values.
type oneLine struct{ error }

func (e oneLine) Unwrap() error { return e.error }
func (e oneLine) Error() string {
	text := e.error.Error()
	if apierrors.IsInvalid(e.error) {
		text = cmp.Or(cluster.InvalidFields(e.error), text)
	}
	if first, rest, several := strings.Cut(text, "\n"); several && goValue.MatchString(rest) {
		return first
	}
	return strings.Join(strings.Fields(text), " ")
}

// user executes the steps of one workload, like a user of the cluster. It remembers the names of
// the created objects, to which later steps refer.
type user struct {
	Env
	created   map[scenario.Target][]string // the names of the objects that the create step for a target created
	described map[scenario.Kind]kube.Kind  // the API group and version of each generic kind; see describedKinds
}

// perform executes one step. It returns a reference to the object that the operation created,
// changed or deleted. Except after a delete, the reference has the object's new resourceVersion.
// The reference is nil if the step has no operation, or if the target names several objects.
//
// The function recordLate is called when an object does not meet the awaited condition in time.
func (u *user) perform(ctx context.Context, step scenario.Step, recordLate func()) (*history.Ref, error) {
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
		err = u.await(ctx, step.Await, recordLate)
	}
	return object, err
}

// sleep waits for the duration d. It returns the error of ctx if ctx ends first.
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

// names returns the names of all objects that a target names. If a create step with a count
// created several pods, the result contains the names of all these pods.
func (u *user) names(target scenario.Target) []string {
	if names, ok := u.created[target]; ok {
		return names
	}
	return []string{target.Name}
}

// ref returns a reference, with the resourceVersion, to an object that the API server returned. It
// returns an error if the resourceVersion is not a number.
func ref(resource string, m metav1.Object) (*history.Ref, error) {
	object, err := history.ProjectMeta(resource, m)
	if err != nil {
		return nil, err
	}
	return &object.Ref, nil
}
