// Package processes contains the faults that stop, start and pause the replicas of the
// subject. The subject is the controllers under test.
package processes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Restart is the fault type restart: it stops replicas of the controller under test and starts
// them again.
var Restart = faults.Type{
	Name:          "restart",
	ActsOnSubject: true,
	Description:   "The fault stops the subject's leader, or all of its replicas, and starts them again after a downtime.",
	Healing:       "The fault starts every stopped replica at once. A started replica may have to wait for the leader-election lease.",
	Params: []faults.Param{
		{Name: "how", Description: "How the replicas are stopped: with SIGKILL (kill), or with SIGTERM and time to release the lease (terminate).", Bounds: "one of " + strings.Join(howNames, ", ")},
		{Name: "replica", Description: "The replicas to stop: the leader (the fault waits until there is one), or all at the same time.", Bounds: "one of " + strings.Join(replicas, ", "), Default: replicaLeader},
		downtimeParam,
		{Name: "times", Description: "The number of restarts. A value greater than 1 simulates a crash loop.", Bounds: "1 to 1000", Default: "1"},
		{Name: "every", Description: "The time from a start to the next stop, if times is greater than 1.", Bounds: "0s to 10m", Default: "1s"},
	},
	New:    NewRestart,
	Sample: sampleRestart,
}

// downtimeParam documents the parameter "downtime" of the fault types restart and crash.
var downtimeParam = faults.Param{Name: "downtime", Description: "The time from the stop to the start.", Bounds: "0s to 10m", Default: "1s"}

// RestartParams contains the parameters that a scenario sets for a restart fault. The Params
// field of [Restart] documents each parameter.
type RestartParams struct {
	How      string        `yaml:"how"`
	Replica  string        `yaml:"replica"`
	Downtime time.Duration `yaml:"downtime"`
	Times    int           `yaml:"times"`
	Every    time.Duration `yaml:"every"`
}

// These are the permitted values of [RestartParams.How] and [RestartParams.Replica]. They say how
// the fault stops replicas, and which replicas.
const (
	howKill       = "kill"
	howTerminate  = "terminate"
	replicaLeader = "leader"
	replicaAll    = "all"
)

var (
	howNames = []string{howKill, howTerminate}
	replicas = []string{replicaLeader, replicaAll}
)

const (
	durationMax     = 10 * time.Minute
	downtimeDefault = time.Second
	everyDefault    = time.Second
	timesMax        = 1000
	// leaderPoll is the time between two attempts to find the leader, if no replica holds the
	// lease.
	leaderPoll = 50 * time.Millisecond
)

// NewRestart returns a restart fault with the given parameters, or an error if a parameter
// is invalid.
func NewRestart(params faults.Params) (faults.Fault, error) {
	p := RestartParams{Replica: replicaLeader, Downtime: downtimeDefault, Times: 1, Every: everyDefault}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	err := scenario.JoinErrors(
		faults.OneOf(params, "how", p.How, howNames),
		faults.OneOf(params, "replica", p.Replica, replicas),
		faults.Between(params, "downtime", p.Downtime, 0, durationMax),
		faults.Between(params, "times", p.Times, 1, timesMax),
		faults.Between(params, "every", p.Every, 0, durationMax),
	)
	if err != nil {
		return nil, err
	}
	return &restart{params: p}, nil
}

// restart is a fault of type restart. It stops replicas of the controller under test and starts
// them again.
type restart struct {
	params RestartParams
	env    *faults.Env
	faults.Background

	// While the goroutine of the fault runs, only the goroutine uses the following fields.
	// After the goroutine has ended, only Heal uses them.
	down  []string // replicas that the fault has stopped and not yet started again
	ended int      // how often the fault has stopped a replica
}

func (r *restart) Inject(ctx context.Context, env *faults.Env) error {
	r.env = env
	r.Begin(ctx, r.run)
	return nil
}

// Heal ends the downtime early and starts the stopped replicas. If it cannot start a replica, it
// returns an error, and the caller may call Heal again.
func (r *restart) Heal(ctx context.Context) error {
	if err := r.End(ctx); err != nil {
		return fmt.Errorf("waiting until the fault has finished its current stop (%s) or start of the subject: %w", r.params.How, err)
	}
	return r.start(ctx)
}

func (r *restart) Summary() string {
	return fmt.Sprintf("stopped %s (%s)", faults.Counted(r.ended, "replica"), r.params.How)
}

// run stops replicas and starts them again, r.params.Times times. It returns earlier if the fault
// is healed during the time r.params.Every between two restarts.
func (r *restart) run(ctx context.Context) {
	for n := range r.params.Times {
		if n > 0 && !r.wait(r.params.Every) {
			return
		}
		r.end(ctx, r.targets(ctx))
		r.startAfterDowntime(ctx)
	}
}

// startAfterDowntime waits for the downtime, or until the fault is healed. It then starts
// the replicas that the fault has stopped.
func (r *restart) startAfterDowntime(ctx context.Context) {
	if len(r.down) == 0 {
		return
	}
	r.wait(r.params.Downtime)
	if err := r.start(ctx); err != nil {
		r.env.Report.Failed(nil, err)
	}
}

// targets returns the names of the replicas that the fault stops next: all replicas, or the
// leader. If r.params.Replica is "leader", targets waits until a replica holds the lease. It
// returns nil if the fault is healed first.
func (r *restart) targets(ctx context.Context) []string {
	if r.params.Replica == replicaAll {
		return r.env.Subject.Replicas()
	}
	return leader(ctx, r.env, &r.Background)
}

// leader waits until a replica holds the leader-election lease. It returns a slice with the name
// of this replica, or nil if the fault is healed first.
func leader(ctx context.Context, env *faults.Env, background *faults.Background) []string {
	failing := false
	for {
		leader, err := env.Subject.Leader(ctx)
		switch {
		case err != nil && !failing: // record only the first error of an outage
			env.Report.Failed(nil, err)
		case leader != "":
			return []string{leader}
		}
		failing = err != nil
		if !wait(env, background, leaderPoll) {
			return nil
		}
	}
}

// end kills or terminates the given replicas concurrently. It writes a "fired" record to the
// history for each replica that was running.
func (r *restart) end(ctx context.Context, replicas []string) {
	end, done := r.env.Subject.Kill, "killed"
	if r.params.How == howTerminate {
		end, done = r.env.Subject.Terminate, "terminated"
	}
	ended := make([]bool, len(replicas))
	var group errgroup.Group
	for i, replica := range replicas {
		group.Go(func() (err error) {
			if ended[i], err = end(ctx, replica); err != nil {
				r.env.Report.Failed(nil, err)
			} else if ended[i] {
				r.env.Report.Fired(0, nil, done+" "+replica)
			}
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	for i, replica := range replicas {
		if ended[i] {
			r.down = append(r.down, replica)
			r.ended++
		}
	}
}

// start starts the replicas that the fault has stopped. If it cannot start a replica, it returns
// an error, and the next call of start tries this replica again.
func (r *restart) start(ctx context.Context) error {
	var errs []error
	r.down = slices.DeleteFunc(r.down, func(replica string) bool {
		err := r.env.Subject.Start(ctx, replica)
		if err != nil {
			errs = append(errs, err)
		}
		return err == nil
	})
	return errors.Join(errs...)
}

// wait waits for the time d and returns true. If the fault is healed first, it returns
// false at once.
func (r *restart) wait(d time.Duration) bool { return wait(r.env, &r.Background, d) }

// wait waits for the time d and returns true. If the fault is healed first, wait returns false at
// once. The argument background runs the fault's goroutine.
func wait(env *faults.Env, background *faults.Background, d time.Duration) bool {
	timer := env.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-background.Stopping():
		return false
	}
}
