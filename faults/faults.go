// Package faults says what a fault is: something that goes wrong during a run,
// is put in force, does its damage while it lasts, and is healed. The kinds of
// faults stand in packages below this one, a family each; package
// faults/catalogue has the table of all of them, and package faults/proxy is
// where those that spoil the subject's talk with the API server take hold.
//
// When a fault begins and ends is up to the scenario and the run that follows
// it. No fault knows which controllers are under test.
//
// To add a kind: write its parameters as a struct with yaml tags, its [Fault],
// its [Kind] and how it is drawn in the package of its family, and a line in the
// catalogue.
package faults

import (
	"context"
	"fmt"
	"math/rand/v2"

	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults/proxy"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/trigger"
	"github.com/kube-gauntlet/gauntlet/harness/workload"
)

// Fault is one fault of one run. Its methods are called from one goroutine, and
// by whoever runs scenarios only through [Inject] and [Heal].
type Fault interface {
	// Inject puts the fault in force and returns; whatever lasts goes on behind it
	// until Heal, and does not end with ctx. After an error nothing is in force.
	Inject(ctx context.Context, env *Env) error
	// Heal ends the fault and undoes its effects as far as they can be undone.
	// When it returns without an error, nothing fires any more. It may be called
	// again, and before Inject. Its ctx outlives the run's and bounds its waiting.
	Heal(ctx context.Context) error
	// Summary says in words what the fault has done so far, for the record of its
	// healing.
	Summary() string
}

// ProviderLimited is a fault that cannot happen on every cluster that others of its kind
// can: it depends on its parameters.
type ProviderLimited interface {
	// UnsupportedOn is nil, or why it cannot on clusters of a provider.
	UnsupportedOn(provider string) error
}

// Env is what a fault may touch.
type Env struct {
	// Rand is the fault's own, seeded by the run. It is not safe for concurrent use.
	Rand *rand.Rand
	// Proxy is between the subject and the API server.
	Proxy *proxy.Proxy
	// Subject is what is under test.
	Subject Subject
	// Cluster is the control plane.
	Cluster cluster.Cluster
	// Admin leads straight to the API server and may do everything.
	Admin kubernetes.Interface
	// Provider is the name of the cluster's, one of [Providers].
	Provider string
	// Namespace is the one that the run's workload lives in.
	Namespace string
	// Pods says what the pods of the run's workload are like.
	Pods workload.Pods
	// Trigger is the moment at which the fault begins, if it waited for one.
	Trigger trigger.Match
	Clock   clock.WithTicker
	Report  *Reporter
}

// Subject is what is under test, as far as a fault may lay hands on it. Whatever
// it does, the history says that the run asked for it.
type Subject interface {
	// Replicas are the names of all replicas, running or not, in order.
	Replicas() []string
	// Leader is the name of the running replica that leads, "" if none does at the
	// moment.
	Leader(ctx context.Context) (string, error)
	// Kill ends a replica by force, Terminate asks it to end first and gives it its
	// time. Both return when it is gone; ended is false if it did not run.
	Kill(ctx context.Context, replica string) (ended bool, err error)
	Terminate(ctx context.Context, replica string) (ended bool, err error)
	// Start starts a replica that was ended. One that runs is left alone.
	Start(ctx context.Context, replica string) error
	// Pause freezes a replica until Resume; paused is false if it did not run. One
	// that then ends for having lost its lease is started again.
	Pause(ctx context.Context, replica string) (paused bool, err error)
	Resume(ctx context.Context, replica string) error
}

// Params are a fault's parameters as a scenario gives them.
type Params interface {
	// Decode puts them into a struct by its yaml tags. Fields not given keep what
	// they hold; unknown ones are errors that say where.
	Decode(into any) error
	// Errorf makes an error that says where the field stands.
	Errorf(field, format string, args ...any) error
	// CheckSteps fills in what the steps of a field leave out, and demands of each,
	// by itself, what is demanded of a workload's.
	CheckSteps(field string, steps []scenario.Step) error
}

// Type is a row of the catalogue.
type Type struct {
	// Name is what scenarios call it, such as "api-error".
	Name string
	// Description says what goes wrong; Healing how it is undone.
	Description string
	Healing     string
	// Providers are the clusters on which it works, by their names.
	Providers []string
	Params    []Param
	// Outage says that the control plane is out of order while it lasts.
	Outage bool
	// New makes a fault from what a scenario says, or an error that says where the
	// scenario is wrong.
	New func(Params) (Fault, error)
	// Sample draws the parameters of a fault that is worth a try on an occasion: a
	// struct that New decodes, in which what is zero is not given; or nil if there
	// is none. It draws nothing that no API server, cluster or user would do.
	Sample func(*rand.Rand, SampleInput) any
	// NotGeneratedReason says, of a kind without Sample, why no generated scenario has it.
	NotGeneratedReason string
}

// Param documents one parameter.
type Param struct {
	// Name is the field's name in a scenario.
	Name string
	// Description says what it does, with its unit.
	Description string
	// Bounds are the values allowed; Default is what holds without it, empty if it
	// must be given.
	Bounds  string
	Default string
}

// Inject records that a fault may fire from here on, and puts it in force.
func Inject(ctx context.Context, fault Fault, env *Env) error {
	env.Report.injected(env.Trigger)
	if err := fault.Inject(ctx, env); err != nil {
		err = fmt.Errorf("injecting %s: %w", env.Report, err)
		env.Report.Failed(nil, err)
		return err
	}
	return nil
}

// Heal ends a fault and records that it fires no more.
func Heal(ctx context.Context, fault Fault, env *Env) error {
	if err := fault.Heal(ctx); err != nil {
		err = fmt.Errorf("healing %s: %w", env.Report, err)
		env.Report.Failed(nil, err)
		return err
	}
	env.Report.healed(fault.Summary())
	return nil
}
