// Package controlplane contains the faults of the API server and of etcd. These faults
// affect every client, not only the controllers under test.
package controlplane

import (
	"context"
	"fmt"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// APIServer is the fault type api-server-restart: it kills the API server and starts it
// again.
var APIServer = faults.Type{
	Name: "api-server-restart",
	Description: "The fault kills the API server and starts it again after a downtime. During the downtime every client gets connection errors. " +
		"The new API server has no watch events from before its start, so that clients must list again.",
	Healing:            "The fault starts the API server at once and waits until the control plane is ready.",
	Needs:              []cluster.Capability{cluster.RestartsControlPlane},
	Params:             restartParams,
	Outage:             true,
	New:                func(params faults.Params) (faults.Fault, error) { return newRestart(params, cluster.APIServer) },
	NotGeneratedReason: notGeneratedReason,
}

// Etcd is the fault type etcd-restart: it kills etcd and starts it again.
var Etcd = faults.Type{
	Name: "etcd-restart",
	Description: "The fault kills etcd and starts it again after a downtime. " +
		"During the downtime the API server cannot commit writes and can serve reads only from its watch cache.",
	Healing:            "The fault starts etcd at once and waits until the control plane is ready.",
	Needs:              []cluster.Capability{cluster.RestartsControlPlane},
	Params:             restartParams,
	Outage:             true,
	New:                func(params faults.Params) (faults.Fault, error) { return newRestart(params, cluster.Etcd) },
	NotGeneratedReason: notGeneratedReason,
}

// notGeneratedReason says why generated scenarios never contain the faults api-server-restart
// and etcd-restart.
const notGeneratedReason = "the length of the outage depends on the machine, and a subject that cannot renew its lease exits correctly"

// restartParams documents the parameters that api-server-restart and etcd-restart have.
var restartParams = []faults.Param{
	{Name: "downtime", Description: "The time from the kill to the start.", Bounds: "0s to 30s", Default: "1s"},
}

// RestartParams contains the parameters that a scenario sets for an api-server-restart or
// etcd-restart fault.
type RestartParams struct {
	Downtime time.Duration `yaml:"downtime"`
}

const (
	downtimeDefault = time.Second
	// downtimeMax is the longest permitted downtime. During the downtime, kubelets cannot renew
	// their leases. downtimeMax is shorter than the grace period after which the node controller
	// marks such nodes as not ready.
	downtimeMax = 30 * time.Second
)

// newRestart returns a fault that restarts the given part of the control plane: the API server
// or etcd. It returns an error if a parameter is invalid.
func newRestart(params faults.Params, part cluster.Component) (faults.Fault, error) {
	p := RestartParams{Downtime: downtimeDefault}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := faults.Between(params, "downtime", p.Downtime, 0, downtimeMax); err != nil {
		return nil, err
	}
	return &restart{params: p, part: part}, nil
}

// restart is a fault of type api-server-restart or etcd-restart. It kills the API server or etcd
// and starts it again.
type restart struct {
	params  RestartParams
	part    cluster.Component // API server or etcd
	env     *faults.Env
	cluster cluster.Restartable
	faults.Background

	// While the goroutine of the fault runs, only the goroutine uses the following fields.
	// After the goroutine has ended, only Heal uses them.
	down   bool          // the fault has stopped the API server or etcd and not yet started it again
	outage time.Duration // time from the kill until the control plane was ready again
}

func (r *restart) Inject(ctx context.Context, env *faults.Env) error {
	restartable, ok := env.Cluster.(cluster.Restartable)
	if !ok {
		return fmt.Errorf("the provider %s cannot restart %s", env.Cluster.Name(), r.part)
	}
	r.env, r.cluster = env, restartable
	r.Begin(ctx, r.run)
	return nil
}

// Heal ends the downtime early and returns when the control plane is ready. If it cannot start
// the API server or etcd, it returns an error, and the caller may call Heal again.
func (r *restart) Heal(ctx context.Context) error {
	if err := r.End(ctx); err != nil {
		return fmt.Errorf("waiting until %s has restarted: %w", r.part, err)
	}
	return r.resume(ctx)
}

func (r *restart) Summary() string {
	if r.outage == 0 {
		return fmt.Sprintf("did not restart %s", r.part)
	}
	return fmt.Sprintf("%s was down for %.1f s", r.part, r.outage.Seconds())
}

// run kills the API server or etcd, waits for the downtime and starts the killed component
// again.
func (r *restart) run(ctx context.Context) {
	begun := r.env.Clock.Now()
	r.down = true // set first: Halt may stop the component and nevertheless return an error
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
	r.outage = r.env.Clock.Since(begun)
}

// resume starts the API server or etcd again if the fault has stopped it. It then waits until
// the control plane is ready.
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
