// Package users contains the fault user-edit: a second user changes the workload while the
// controllers work on it.
package users

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/workload"
)

// Edit is the fault type user-edit: a second user performs workload steps.
var Edit = faults.Type{
	Name: "user-edit",
	Description: "A second user changes the workload, in addition to the scenario's own steps. " +
		"If the fault's trigger holds a request, the request continues after the first change.",
	Healing: "The fault stops changing the workload. Its changes remain.",
	Params: []faults.Param{
		{Name: "steps", Description: "The steps of the second user. They have the same fields as the steps of the workload, including after and await.", Bounds: "1 to 1000 steps on objects that exist at that time"},
	},
	New:    newEdit,
	Sample: sampleEdit,
}

// EditParams contains the parameters of a user-edit fault in a scenario. The field Params
// of [Edit] describes each of them.
type EditParams struct {
	Steps []scenario.Step `yaml:"steps"`
}

// sampleEdit draws random steps of a second user for a generated scenario. It returns nil
// if no step would have an effect.
func sampleEdit(_ *rand.Rand, o faults.SampleInput) any {
	if steps := o.Edit(); steps != nil {
		return &EditParams{Steps: steps}
	}
	return nil
}

// newEdit returns a user-edit fault with the given parameters, or an error if a step is
// invalid.
func newEdit(params faults.Params) (faults.Fault, error) {
	var p EditParams
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := params.CheckSteps("steps", p.Steps); err != nil {
		return nil, err
	}
	return &edit{params: p}, nil
}

// edit is a fault of type user-edit, which performs workload steps of a second user.
type edit struct {
	params EditParams
	faults.Background
	done  atomic.Int64  // number of completed steps
	begun chan struct{} // closed when the first step has completed or failed
	once  sync.Once     // closes begun
}

// Inject returns when the first step has completed or failed.
//
// The trigger of the fault may hold a request until Inject returns, so the request continues
// after the step. If the first step has a pause (after) or a condition (await), Inject returns
// at once: such a step could wait for the held request.
func (e *edit) Inject(ctx context.Context, env *faults.Env) error {
	e.begun = make(chan struct{})
	e.Begin(ctx, func(ctx context.Context) { e.run(ctx, env) })
	if first := e.params.Steps[0]; first.After > 0 || first.Await != nil {
		return nil
	}
	select {
	case <-e.begun:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *edit) Heal(ctx context.Context) error {
	if err := e.End(ctx); err != nil {
		return fmt.Errorf("waiting until the step in progress has ended: %w", err)
	}
	return nil
}

func (e *edit) Summary() string {
	return fmt.Sprintf("completed %d of %d steps", e.done.Load(), len(e.params.Steps))
}

// run performs the steps until one fails or the fault is healed. If the fault is healed
// during a step, run cancels this step with its requests.
func (e *edit) run(ctx context.Context, env *faults.Env) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer e.firstStepTried()
	go func() {
		select {
		case <-e.Stopping():
			cancel()
		case <-ctx.Done():
		}
	}()
	// The error is already in the history, because stepRecorder records the failed step.
	_ = workload.Run(ctx, workload.Env{
		Client: env.Admin, Dynamic: env.Dynamic, Kinds: env.Kinds, Namespace: env.Namespace, Pods: env.Pods, Clock: env.Clock, Recorder: stepRecorder{e, env.Report},
	}, e.params.Steps)
}

// stepRecorder records each step of the second user in the history as something that the fault
// did. It writes no step records, which are only for the steps in the workload of the scenario.
type stepRecorder struct {
	edit   *edit
	report *faults.Reporter
}

// Append records that the fault fired for a completed step, and that the fault failed for a
// failed step.
//
// It does not record a step that fails after Heal was called, because Heal cancels steps.
func (d stepRecorder) Append(record history.Record) {
	step := record.Step
	if step == nil {
		return
	}
	switch {
	case step.Event == history.StepDone:
		d.edit.done.Add(1)
		d.report.Fired(0, step.Object, step.Detail)
	case step.Event == history.StepFailed && !d.edit.stopping():
		d.report.Failed(step.Object, errors.New(step.Detail+": "+step.Error))
	}
	if step.Event != history.StepBegun {
		d.edit.firstStepTried()
	}
}

// stopping reports whether Heal has been called.
func (e *edit) stopping() bool {
	select {
	case <-e.Stopping():
		return true
	default:
		return false
	}
}

// firstStepTried makes Inject return, because the first step has completed or failed.
func (e *edit) firstStepTried() { e.once.Do(func() { close(e.begun) }) }
