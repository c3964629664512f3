// Package processes contains the faults that stop, start and pause the processes of the
// subject.
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
)

// Restart is the fault type restart.
var Restart = faults.Type{
	Name:        "restart",
	Description: "The replica of the subject that leads, or every replica, is ended, and started again after a downtime.",
	Healing:     "Every replica that was ended runs again, at once if its downtime is not over. It may still have to wait for the lease.",
	Providers:   faults.Providers,
	Params: []faults.Param{
		{Name: "how", Description: "How it ends: by force, or asked to, with its time to finish and to release its lease.", Bounds: "one of " + strings.Join(howNames, ", ")},
		{Name: "replica", Description: "Which one: that which leads, once one does, or all of them at a time.", Bounds: "one of " + strings.Join(replicas, ", "), Default: replicaLeader},
		downtimeParam,
		{Name: "times", Description: "How often: a loop of restarts, as of a container that crashes again and again.", Bounds: "1 to 1000", Default: "1"},
		{Name: "every", Description: "In a loop, the time from a start to the next end.", Bounds: "0s to 10m0s", Default: "1s"},
	},
	New:    NewRestart,
	Sample: sampleRestart,
}

var downtimeParam = faults.Param{Name: "downtime", Description: "The time from its end to its start.", Bounds: "0s to 10m0s", Default: "1s"}

// RestartParams are the parameters of restart; [Restart] documents them.
type RestartParams struct {
	How      string        `yaml:"how"`
	Replica  string        `yaml:"replica"`
	Downtime time.Duration `yaml:"downtime"`
	Times    int           `yaml:"times"`
	Every    time.Duration `yaml:"every"`
}

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
	// leaderPoll is the interval of checks for a leader while there is none.
	leaderPoll = 50 * time.Millisecond
)

// NewRestart returns the fault that params describe.
func NewRestart(params faults.Params) (faults.Fault, error) {
	p := RestartParams{Replica: replicaLeader, Downtime: downtimeDefault, Times: 1, Every: everyDefault}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := faults.OneOf(params, "how", p.How, howNames); err != nil {
		return nil, err
	}
	if err := faults.OneOf(params, "replica", p.Replica, replicas); err != nil {
		return nil, err
	}
	if err := validateDuration(params, "downtime", p.Downtime); err != nil {
		return nil, err
	}
	if p.Times < 1 || p.Times > timesMax {
		return nil, params.Errorf("times", "%d is out of bounds; expected 1 to %d", p.Times, timesMax)
	}
	if err := validateDuration(params, "every", p.Every); err != nil {
		return nil, err
	}
	return &restart{params: p}, nil
}

func validateDuration(params faults.Params, field string, d time.Duration) error {
	if d < 0 || d > durationMax {
		return params.Errorf(field, "%v is out of bounds; expected 0s to %v", d, durationMax)
	}
	return nil
}

// restart is a restart fault in force.
type restart struct {
	params RestartParams
	env    *faults.Env
	faults.Background

	// The goroutine owns these fields until it has ended; after that Heal does.
	down  []string // replicas that were ended and do not run again
	ended int
}

func (r *restart) Inject(ctx context.Context, env *faults.Env) error {
	r.env = env
	r.Begin(ctx, r.run)
	return nil
}

// Heal ends the downtime and returns when every replica runs. It retries a start that
// failed.
func (r *restart) Heal(ctx context.Context) error {
	if err := r.End(ctx); err != nil {
		return fmt.Errorf("waiting for the end of a %s: %w", r.params.How, err)
	}
	return r.start(ctx)
}

func (r *restart) Summary() string { return fmt.Sprintf("%s of %d replicas", r.params.How, r.ended) }

// run ends and starts the replicas as often as the parameters say.
func (r *restart) run(ctx context.Context) {
	for n := range r.params.Times {
		if n > 0 && !r.wait(r.params.Every) {
			return
		}
		r.end(ctx, r.targets(ctx))
		r.startAfterDowntime(ctx)
	}
}

// startAfterDowntime waits for the downtime and starts the replicas that are down.
func (r *restart) startAfterDowntime(ctx context.Context) {
	if len(r.down) == 0 {
		return
	}
	r.wait(r.params.Downtime)
	if err := r.start(ctx); err != nil {
		r.env.Report.Failed(nil, err)
	}
}

// targets returns the replicas to end. For replica leader it waits until there is a leader.
func (r *restart) targets(ctx context.Context) []string {
	if r.params.Replica == replicaAll {
		return r.env.Subject.Replicas()
	}
	return leader(ctx, r.env, &r.Background)
}

// leader waits for a replica that holds the lease and returns it. It returns none if the
// fault is healed first.
func leader(ctx context.Context, env *faults.Env, lasting *faults.Background) []string {
	troubled := false
	for {
		leader, err := env.Subject.Leader(ctx)
		switch {
		case err != nil && !troubled: // report an outage once, not at every check
			env.Report.Failed(nil, err)
		case leader != "":
			return []string{leader}
		}
		troubled = err != nil
		if !wait(env, lasting, leaderPoll) {
			return nil
		}
	}
}

// end ends the replicas concurrently.
func (r *restart) end(ctx context.Context, victims []string) {
	by, done := r.env.Subject.Kill, "killed"
	if r.params.How == howTerminate {
		by, done = r.env.Subject.Terminate, "terminated"
	}
	ended := make([]bool, len(victims))
	var group errgroup.Group
	for i, victim := range victims {
		group.Go(func() (err error) {
			if ended[i], err = by(ctx, victim); err != nil {
				r.env.Report.Failed(nil, err)
			} else if ended[i] {
				r.env.Report.Fired(0, nil, done+" "+victim)
			}
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	for i, victim := range victims {
		if ended[i] {
			r.down = append(r.down, victim)
			r.ended++
		}
	}
}

// start starts the replicas that are down.
func (r *restart) start(ctx context.Context) error {
	var all []error
	r.down = slices.DeleteFunc(r.down, func(victim string) bool {
		err := r.env.Subject.Start(ctx, victim)
		if err != nil {
			all = append(all, err)
		}
		return err == nil
	})
	return errors.Join(all...)
}

// wait waits for d. It returns false if the fault is healed first.
func (r *restart) wait(d time.Duration) bool { return wait(r.env, &r.Background, d) }

func wait(env *faults.Env, lasting *faults.Background, d time.Duration) bool {
	timer := env.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-lasting.Stopping():
		return false
	}
}
