package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// await waits until every object that the target names meets the condition, such as ready. If one
// of the objects does not meet the condition within the timeout, await calls recordLate, and goes on
// until [Env.Late] returns. It then returns an error that wraps [ErrUnmet].
func (u *user) await(ctx context.Context, await *scenario.Await, recordLate func()) error {
	bounded, cancel := u.within(ctx, await.Within, recordLate)
	defer cancel()
	if await.Until == scenario.Quiet {
		return u.awaitQuiet(ctx, bounded, await.Within)
	}
	awaited, err := u.kind(await.Kind)
	if err != nil {
		return err
	}
	watched := awaited
	if await.Until == scenario.Served { // the addresses of a Service are in the Endpoints object with the same name
		if watched, err = u.kind(scenario.Endpoints); err != nil {
			return err
		}
	}
	for _, name := range u.names(await.Target) {
		state, err := awaitOne(bounded, watched, name, await.Until)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(context.Cause(bounded), ErrUnmet):
			return &unmetError{
				object: &history.Ref{Resource: awaited.Resource(), Namespace: awaited.namespace, Name: name},
				text:   fmt.Sprintf("%s: expected %s within %s, found %s", awaited.describe(name), await.Until, await.Within, state),
			}
		default:
			return fmt.Errorf("watching %s: %w", awaited.describe(name), err)
		}
	}
	return nil
}

// awaitQuiet waits until the controllers under test are quiet. The context bounded ends after the
// time within, or when ctx does. In the first case, the error wraps [ErrUnmet].
func (u *user) awaitQuiet(ctx, bounded context.Context, within time.Duration) error {
	u.Quiet(bounded)
	switch {
	case bounded.Err() == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return &unmetError{text: fmt.Sprintf("the controllers under test were not quiet within %s: they still write, have a closed watch, or a fault holds one of their messages", within)}
}

// unmetError is the error of an await that timed out. It wraps [ErrUnmet]. The object did not meet the
// condition; it is nil if the await was not about an object.
type unmetError struct {
	object *history.Ref
	text   string
}

func (e *unmetError) Error() string { return e.text }
func (e *unmetError) Unwrap() error { return ErrUnmet }

// unmetObject returns the object that did not meet its condition, if err is an unmetError about an
// object. It returns nil for any other error.
func unmetObject(err error) *history.Ref {
	if unmet := (*unmetError)(nil); errors.As(err, &unmet) {
		return unmet.object
	}
	return nil
}

// awaitOne watches one object until it meets the condition until, or until ctx ends. The result
// state describes the last state of the object, even if awaitOne returns an error.
func awaitOne(ctx context.Context, k kind, name string, until scenario.Until) (state string, err error) {
	check, err := checkOf(until)
	if err != nil {
		return "", err
	}
	met := func(o runtime.Object) (done bool, err error) {
		done, state, err = check(o)
		return done, err
	}
	// The watch sends an event for an existing object, but none for a missing object. For the
	// condition gone, a precondition therefore looks for the object in the synced store.
	var absent watchtools.PreconditionFunc
	if until == scenario.Gone {
		absent = func(store cache.Store) (bool, error) {
			_, exists, err := store.GetByKey(cache.NewObjectName(k.namespace, name).String())
			if err != nil || exists {
				return false, err
			}
			return met(nil)
		}
	}
	state = noSuchObject
	_, err = watchtools.UntilWithSync(ctx, k.watch(name), k.example, absent,
		func(event watch.Event) (bool, error) {
			// Some API servers, such as the fake one, ignore the field selector.
			if m, ok := event.Object.(metav1.Object); !ok || m.GetName() != name {
				return false, nil
			}
			if event.Type == watch.Deleted {
				return met(nil)
			}
			return met(event.Object)
		})
	return state, err
}

// noSuchObject is the text in error messages for an object that does not exist.
const noSuchObject = "no such object"

// checkOf returns a function that reports whether an object meets a condition. The string result
// of the function describes the state of the object. The function accepts nil, which means that
// the object does not exist.
func checkOf(until scenario.Until) (func(runtime.Object) (bool, string, error), error) {
	if !until.IsFieldCondition() {
		return func(o runtime.Object) (bool, string, error) {
			done, state := reached(o, until)
			return done, state, nil
		}, nil
	}
	condition, err := until.FieldCondition()
	return func(o runtime.Object) (bool, string, error) { return meets(o, condition) }, err
}

// within returns a context that ends after the duration d, for a wait with a timeout. If [Env.Late] is
// not nil, within then calls recordLate, and the context ends when Late returns. The cause of the
// context is then [ErrUnmet].
func (u *user) within(ctx context.Context, d time.Duration, recordLate func()) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer, ended := u.Clock.NewTimer(d), make(chan struct{})
	go func() {
		defer close(ended)
		defer timer.Stop()
		select {
		case <-timer.C():
			if u.Late != nil {
				recordLate()
				u.Late(ctx)
			}
			cancel(ErrUnmet)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(errDone)
		<-ended // the record of a late step must precede that of its end
	}
}

// errDone is the cause of the context for a wait (see within) when the wait ends before its
// timeout.
var errDone = errors.New("the await ended")

// reached reports whether an object meets a one-word condition, such as ready. The returned text
// describes the state of the object. A nil object means that the object does not exist.
func reached(o runtime.Object, until scenario.Until) (bool, string) {
	switch o := o.(type) {
	case *appsv1.ReplicaSet:
		return scale{
			generation: o.Generation, observed: o.Status.ObservedGeneration,
			desired: ptr.Deref(o.Spec.Replicas, 1), current: o.Status.Replicas,
			ready: o.Status.ReadyReplicas, available: o.Status.AvailableReplicas,
		}.reached(until, o)
	case *corev1.ReplicationController:
		return scale{
			generation: o.Generation, observed: o.Status.ObservedGeneration,
			desired: ptr.Deref(o.Spec.Replicas, 1), current: o.Status.Replicas,
			ready: o.Status.ReadyReplicas, available: o.Status.AvailableReplicas,
		}.reached(until, o)
	case *appsv1.Deployment:
		return scale{
			generation: o.Generation, observed: o.Status.ObservedGeneration,
			desired: ptr.Deref(o.Spec.Replicas, 1), current: o.Status.Replicas, updated: o.Status.UpdatedReplicas,
			ready: o.Status.ReadyReplicas, available: o.Status.AvailableReplicas,
		}.reached(until, o)
	case *corev1.Pod:
		ready := cluster.PodReady(o)
		return until == scenario.Ready && ready, fmt.Sprintf("phase %s, ready %t%s", o.Status.Phase, ready, terminating(o))
	case *endpoints:
		ready, notReady := addresses(o)
		return until == scenario.Served && ready > 0 && notReady == 0,
			fmt.Sprintf("%d ready and %d not ready addresses", ready, notReady)
	case nil:
		return until == scenario.Gone, noSuchObject
	case metav1.Object: // for any other kind, gone is the only one-word condition
		return false, "the object" + terminating(o)
	default:
		return false, "the object"
	}
}

// scale has the fields of an object with replicas that show the progress of a scaling or
// rollout. The field observed is status.observedGeneration.
type scale struct {
	generation, observed               int64
	desired, current, ready, available int32
	updated                            int32 // pods of the latest template; only for a Deployment
}

// reached reports whether an object with replicas meets a one-word condition, such as ready. The
// returned text describes the state of the object.
func (s scale) reached(until scenario.Until, m metav1.Object) (bool, string) {
	scaled := s.observed >= s.generation && s.current == s.desired
	state := fmt.Sprintf("%d of %d replicas, %d ready, %d available, observedGeneration %d of %d%s",
		s.current, s.desired, s.ready, s.available, s.observed, s.generation, terminating(m))
	switch until {
	case scenario.Scaled:
		return scaled, state
	case scenario.Ready:
		return scaled && s.ready == s.desired, state
	case scenario.Available:
		return scaled && s.available == s.desired, state
	case scenario.Complete:
		return scaled && s.available == s.desired && s.updated == s.desired, fmt.Sprintf("%d updated, %s", s.updated, state)
	}
	return false, state
}

// addresses returns the number of ready and of not ready addresses in an Endpoints object.
func addresses(e *endpoints) (ready, notReady int) {
	for i := range e.Subsets {
		ready += len(e.Subsets[i].Addresses)
		notReady += len(e.Subsets[i].NotReadyAddresses)
	}
	return ready, notReady
}

// terminating returns text about the finalizers of a terminating object, for error messages. It
// returns "" if the object is not terminating.
func terminating(m metav1.Object) string {
	if m.GetDeletionTimestamp() == nil {
		return ""
	}
	return fmt.Sprintf(", terminating with finalizers %v", m.GetFinalizers())
}
