package processes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// Freeze is the fault type freeze: it pauses replicas of the controller under test.
var Freeze = faults.Type{
	Name:          "freeze",
	ActsOnSubject: true,
	Description: "The fault pauses the subject's leader, or all of its replicas. A paused process does nothing, and its connections stay open. " +
		"If a leader resumes after its lease expired, two replicas can act as the leader for a short time.",
	Healing: "The fault resumes the paused replicas. A replica that exits because it lost its lease is started again.",
	Needs:   []cluster.Capability{cluster.PausesSubject},
	Params: []faults.Param{
		{Name: "replica", Description: "The replicas to pause. leader: the replica whose request or watch event matched the trigger; without such a trigger, the leader (the fault waits until there is one). all: all replicas at the same time.", Bounds: Restart.Params[1].Bounds, Default: replicaLeader},
	},
	New:    NewFreeze,
	Sample: sampleFreeze,
}

// FreezeParams contains the parameters that a scenario sets for a freeze fault. The Params field
// of [Freeze] documents each parameter.
type FreezeParams struct {
	Replica string `yaml:"replica"`
}

// NewFreeze returns a freeze fault with the given parameters, or an error if a parameter is
// invalid.
func NewFreeze(params faults.Params) (faults.Fault, error) {
	p := FreezeParams{Replica: replicaLeader}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := faults.OneOf(params, "replica", p.Replica, replicas); err != nil {
		return nil, err
	}
	return &freeze{params: p}, nil
}

// freeze is a fault of type freeze, which pauses replicas of the controller under test until Heal.
type freeze struct {
	params FreezeParams
	env    *faults.Env
	faults.Background

	// While the goroutine of the fault runs, only the goroutine uses the following fields.
	// After the goroutine has ended, only Heal uses them.
	paused []string // replicas that Heal must resume
	count  int      // number of replicas that the fault has paused
}

func (f *freeze) Inject(ctx context.Context, env *faults.Env) error {
	f.env = env
	switch {
	case f.params.Replica == replicaAll:
		f.pause(ctx, env.Subject.Replicas())
	case env.Trigger.Replica != "":
		f.pause(ctx, []string{env.Trigger.Replica})
	default:
		f.Begin(ctx, func(ctx context.Context) { f.pause(ctx, leader(ctx, env, &f.Background)) })
	}
	return nil
}

// Heal resumes every paused replica. If it cannot resume a replica, it returns an error, and the
// caller may call Heal again.
func (f *freeze) Heal(ctx context.Context) error {
	if err := f.End(ctx); err != nil {
		return fmt.Errorf("waiting until the fault has finished pausing the replicas of the subject: %w", err)
	}
	var errs []error
	f.paused = slices.DeleteFunc(f.paused, func(replica string) bool {
		err := f.env.Subject.Resume(ctx, replica)
		if err != nil {
			errs = append(errs, err)
		}
		return err == nil
	})
	return errors.Join(errs...)
}

func (f *freeze) Summary() string { return "paused " + faults.Counted(f.count, "replica") }

// pause pauses the given replicas and adds them to f.paused, so that Heal resumes them. It also
// adds a replica for which Pause returned an error, because the replica may be paused
// nevertheless.
func (f *freeze) pause(ctx context.Context, replicas []string) {
	for _, replica := range replicas {
		f.paused = append(f.paused, replica)
		switch ran, err := f.env.Subject.Pause(ctx, replica); {
		case err != nil:
			f.env.Report.Failed(nil, err)
		case ran:
			f.count++
			f.env.Report.Fired(f.env.Trigger.Request, nil, "paused "+replica)
		}
	}
}
