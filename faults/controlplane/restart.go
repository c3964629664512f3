// Package controlplane contains the faults of the API server and etcd. They affect every
// client, not only the subject.
package controlplane

import (
	"context"
	"fmt"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// APIServer is the fault type api-server-restart.
var APIServer = faults.Type{
	Name:               "api-server-restart",
	Description:        "The API server is killed, and started again after a downtime: nobody gets an answer meanwhile, and the new one knows of no change from before its start, so that watches must list anew.",
	Healing:            "It is started at once if its downtime is not over, and the whole control plane is waited for.",
	Providers:          faults.OwnClusters,
	Params:             restartParams,
	Outage:             true,
	New:                func(params faults.Params) (faults.Fault, error) { return newRestart(params, cluster.APIServer) },
	NotGeneratedReason: notGeneratedReason,
}

// Etcd is the fault type etcd-restart.
var Etcd = faults.Type{
	Name:               "etcd-restart",
	Description:        "etcd is killed, and started again after a downtime: the API server can commit nothing meanwhile, and answers from its cache at most.",
	Healing:            APIServer.Healing,
	Providers:          faults.OwnClusters,
	Params:             restartParams,
	Outage:             true,
	New:                func(params faults.Params) (faults.Fault, error) { return newRestart(params, cluster.Etcd) },
	NotGeneratedReason: notGeneratedReason,
}

// notGeneratedReason applies to both restarts.
const notGeneratedReason = "how long an outage lasts is up to the machine, and one that outlasts the subject's lease ends the subject rightly"

var restartParams = []faults.Param{
	{Name: "downtime", Description: "The time from its end to its start, before which it does not serve.", Bounds: "0s to 30s", Default: "1s"},
}

// RestartParams are the parameters of api-server-restart and etcd-restart.
type RestartParams struct {
	Downtime time.Duration `yaml:"downtime"`
}

const (
	downtimeDefault = time.Second
	// downtimeMax is below the grace period after which the node controller marks nodes as
	// lost, which would be another fault.
	downtimeMax = 30 * time.Second
)

func newRestart(params faults.Params, part cluster.Part) (faults.Fault, error) {
	p := RestartParams{Downtime: downtimeDefault}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if p.Downtime < 0 || p.Downtime > downtimeMax {
		return nil, params.Errorf("downtime", "%v is out of bounds; expected 0s to %v", p.Downtime, downtimeMax)
	}
	return &restart{params: p, part: part}, nil
}

// restart is an api-server-restart or etcd-restart in force.
type restart struct {
	params  RestartParams
	part    cluster.Part
	env     *faults.Env
	cluster cluster.Restartable
	faults.Background

	// The goroutine owns these fields until it has ended; after that Heal does.
	down bool
	took time.Duration // from the kill until the control plane was ready again
}

func (r *restart) Inject(ctx context.Context, env *faults.Env) error {
	plane, ok := env.Cluster.(cluster.Restartable)
	if !ok {
		return fmt.Errorf("the %s of a cluster of %s cannot be halted", r.part, env.Cluster.Name())
	}
	r.env, r.cluster = env, plane
	r.Begin(ctx, r.run)
	return nil
}

// Heal ends the downtime and returns when the control plane is ready. It retries a start
// that failed.
func (r *restart) Heal(ctx context.Context) error {
	if err := r.End(ctx); err != nil {
		return fmt.Errorf("waiting for the restart of %s: %w", r.part, err)
	}
	return r.resume(ctx)
}

func (r *restart) Summary() string {
	if r.took == 0 {
		return fmt.Sprintf("no restart of %s", r.part)
	}
	return fmt.Sprintf("%s out of order for %.1f s", r.part, r.took.Seconds())
}

func (r *restart) run(ctx context.Context) {
	begun := r.env.Clock.Now()
	r.down = true // set first: a failed halt may have stopped the component
	if err := r.cluster.Halt(ctx, r.part); err != nil {
		r.env.Report.Failed(nil, err)
		return
	}
	r.env.Report.Fired(0, nil, "killed "+string(r.part))
	timer := r.env.Clock.NewTimer(r.params.Downtime)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-r.Stopping():
	}
	if err := r.resume(ctx); err != nil {
		r.env.Report.Failed(nil, err)
		return
	}
	r.took = r.env.Clock.Since(begun)
}

func (r *restart) resume(ctx context.Context) error {
	if !r.down {
		return nil
	}
	if err := r.cluster.Resume(ctx, r.part); err != nil {
		return err
	}
	r.down = false
	return nil
}
