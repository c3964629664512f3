package processes

import (
	"context"
	"errors"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Crash is the fault type crash: when its trigger matches, it kills a replica of the controller
// under test. It starts the replica again after a downtime.
var Crash = faults.Type{
	Name:          "crash",
	ActsOnSubject: true,
	Description: "The fault kills the replica of the subject whose request or watch event matched the trigger, for example between a write and its response. " +
		"It starts the replica again after a downtime. Without a trigger it kills the leader.",
	Healing: Restart.Healing,
	Params:  []faults.Param{downtimeParam},
	New:     NewCrash,
	Sample:  sampleCrash,
}

// CrashParams contains the parameters that a scenario sets for a crash fault. The Params field
// of [Crash] documents each parameter.
type CrashParams struct {
	Downtime time.Duration `yaml:"downtime"`
}

// NewCrash returns a crash fault with the given parameters, or an error if a parameter is
// invalid.
func NewCrash(params faults.Params) (faults.Fault, error) {
	p := CrashParams{Downtime: downtimeDefault}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := faults.Between(params, "downtime", p.Downtime, 0, durationMax); err != nil {
		return nil, err
	}
	return &crash{restart: restart{params: RestartParams{How: howKill, Replica: replicaLeader, Downtime: p.Downtime, Times: 1}}}, nil
}

// crash is a fault of type crash. It kills a replica of the controller under test and starts it
// again.
//
// A trigger may hold the matching request until Inject returns. Inject therefore returns only
// after the kill.
type crash struct {
	restart
	// registration makes the fault proxy break the request that matched the trigger. It is the
	// zero value if no request or watch event matched a trigger.
	registration faults.Registration
}

// Inject kills the replica whose request or watch event matched the trigger. If no request or watch
// event matched, for example because the fault has no trigger, a goroutine kills the leader.
//
// If the fault proxy has not yet forwarded the request that matched the trigger, the fault breaks
// this request. The API server then does not receive the request.
func (c *crash) Inject(ctx context.Context, env *faults.Env) error {
	if env.Trigger.Replica == "" {
		return c.restart.Inject(ctx, env)
	}
	c.env = env
	c.registration.Remove = env.Interceptor.OnRequest(func(r *history.Request) *interceptor.RequestEffect {
		if r.ID != env.Trigger.Request {
			return nil
		}
		return &interceptor.RequestEffect{Fault: env.Report.Name(), Break: interceptor.BreakRequest}
	})
	c.end(ctx, []string{env.Trigger.Replica})
	c.Begin(ctx, c.startAfterDowntime)
	return nil
}

func (c *crash) Heal(ctx context.Context) error {
	return errors.Join(c.registration.Heal(ctx), c.restart.Heal(ctx))
}
