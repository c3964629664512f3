// Package users contains the fault of a second user who changes the workload while the
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

// Edit is the fault type user-edit.
var Edit = faults.Type{
	Name: "user-edit",
	Description: "A second user changes the workload, in addition to the scenario's own steps. " +
		"If the fault's trigger holds a request, the request continues after the first change.",
	Healing: "The fault stops changing the workload. Its changes remain.",
	Params: []faults.Param{
		{Name: "steps", Description: "The operations of the user, with after and await like the steps of the workload.", Bounds: "1 to 1000 steps on objects that exist at that time"},
	},
	New:    newEdit,
	Sample: sampleEdit,
}

// EditParams are the parameters of user-edit; [Edit] documents them.
type EditParams struct {
	Steps []scenario.Step `yaml:"steps"`
}

func sampleEdit(_ *rand.Rand, o faults.SampleInput) any {
	if steps := o.Edit(); steps != nil {
		return &EditParams{Steps: steps}
	}
	return nil
}

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

// edit is a user-edit fault in force.
type edit struct {
	params EditParams
	faults.Background
	done  atomic.Int64
	begun chan struct{} // closed after the first step has been tried
	once  sync.Once
}

// Inject returns when the first step is done, or at once if that step has after or await.
// The trigger may hold a request until Inject returns. If Inject waited for such a step, and
// the step for the effect of that request, neither could continue.
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
		return fmt.Errorf("waiting for the step in progress: %w", err)
	}
	return nil
}

func (e *edit) Summary() string {
	return fmt.Sprintf("%d of %d steps done", e.done.Load(), len(e.params.Steps))
}

// run performs the steps until one fails or the fault is healed. Heal cancels a step
// that still waits for its time or condition.
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
	// The record of the failed step contains the error.
	_ = workload.Run(ctx, workload.Env{
		Client: env.Admin, Dynamic: env.Dynamic, Kinds: env.Kinds, Namespace: env.Namespace, Pods: env.Pods, Clock: env.Clock, Recorder: stepRecorder{e, env.Report},
	}, e.params.Steps)
}

// stepRecorder records the steps of the second user as firings of the fault. It does
// not write step records, because these are for the scenario's own steps.
type stepRecorder struct {
	edit   *edit
	report *faults.Reporter
}

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

// stopping reports whether the fault is being healed.
func (e *edit) stopping() bool {
	select {
	case <-e.Stopping():
		return true
	default:
		return false
	}
}

// firstStepTried closes begun, so that Inject can return.
func (e *edit) firstStepTried() { e.once.Do(func() { close(e.begun) }) }
