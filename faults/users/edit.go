// Package users contains the fault user-edit: a simulated second user changes the workload while
// the controllers work on the workload.
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

// Edit is the fault type user-edit: a simulated second user performs workload steps, such as
// scale.
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

// EditParams contains the parameters that a scenario sets for a user-edit fault. The Params
// field of [Edit] documents each parameter.
type EditParams struct {
	Steps []scenario.Step `yaml:"steps"`
}

// sampleEdit returns random steps of the second user, for a generated scenario. It returns nil if
// no step would have an effect.
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

// edit is a fault of type user-edit. It performs the workload steps of a simulated second user.
type edit struct {
	params EditParams
	faults.Background
	done  atomic.Int64  // number of completed workload steps
	begun chan struct{} // closed when the first step has completed or failed
	once  sync.Once     // makes sure that the channel begun is closed only once
}

// Inject starts the steps, and returns when the first step has completed or failed.
//
// A trigger may hold the matching request until Inject returns, so the request continues after
// the first step. Inject returns at once if the first step has a pause (after) or a condition
// (await), because such a step could wait for the held request.
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
		return fmt.Errorf("waiting until the current step of the second user has ended: %w", err)
	}
	return nil
}

func (e *edit) Summary() string {
	return fmt.Sprintf("completed %d of %d steps", e.done.Load(), len(e.params.Steps))
}

// run performs the steps until one step fails or the fault is healed. If the fault is healed
// during a step, run cancels the requests of this step.
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
	// The history already contains the error, because stepRecorder records the failed step.
	_ = workload.Run(ctx, workload.Env{
		Client: env.Admin, Dynamic: env.Dynamic, Kinds: env.Kinds, Namespace: env.Namespace, Pods: env.Pods, Clock: env.Clock, Recorder: stepRecorder{e, env.Report},
	}, e.params.Steps)
}

// stepRecorder writes each step of the simulated second user to the history. The record is a fault
// record with the event "fired" or "failed". Records of type step are only for the scenario's own
// workload.
type stepRecorder struct {
	edit   *edit
	report *faults.Reporter
}

// Append writes a "fired" record to the history for a completed step, and a "failed" record for a
// failed step.
//
// It ignores a step that fails after the call of Heal, because Heal cancels steps.
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

// firstStepTried makes Inject return, if Inject still waits for the first step. It is called
// when a step has completed or failed, and when run ends.
func (e *edit) firstStepTried() { e.once.Do(func() { close(e.begun) }) }
