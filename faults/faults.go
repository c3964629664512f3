// Package faults defines a fault: a disturbance that is injected during a run and healed
// later.
//
// The fault types are in subpackages, one for each family:
//
//   - requests and watches change the subject's traffic through package proxy
//   - pods, nodes, admission, controlplane and users act on the cluster directly
//   - processes stops, kills and pauses the subject
//   - clocks changes the timestamps that the subject receives
//
// Package catalog lists every type. The scenario and its triggers decide when a fault is
// injected and healed. No fault depends on which controllers are under test.
//
// To add a fault type, write a [Fault] in the package of its family, and a struct with yaml
// tags for its parameters. Write a [Type] that has a Sample function or a
// NotGeneratedReason. Then add the Type to catalog.All.
package faults

import (
	"context"
	"fmt"
	"math/rand/v2"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults/proxy"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/trigger"
	"github.com/kube-gauntlet/gauntlet/harness/workload"
)

// Fault is one fault of one run. One goroutine calls its methods. The run calls them only
// through [Inject] and [Heal].
type Fault interface {
	// Inject starts the fault and returns. A goroutine of the fault may continue until Heal;
	// it does not end with ctx. After an error the fault is not in force.
	Inject(ctx context.Context, env *Env) error
	// Heal ends the fault and undoes its effects as far as possible. After Heal returns nil,
	// the fault does not fire again. Heal may be called again, and before Inject. Its ctx
	// outlives the run's and limits how long Heal waits.
	Heal(ctx context.Context) error
	// Summary returns one line that says how often the fault fired. The record of the healing
	// contains it.
	Summary() string
}

// ProviderLimited is a fault whose parameters decide which capabilities it needs.
// [Type].Needs applies to every fault of a type, but Unsupported applies to one fault with
// its parameters.
type ProviderLimited interface {
	// Unsupported returns nil, or the reason why the fault cannot run on a provider with
	// these capabilities.
	Unsupported(cluster.Capabilities) error
}

// Env is the part of a run that a fault may use.
type Env struct {
	// Rand belongs to the fault and is seeded by the run. It is not safe for concurrent use.
	Rand *rand.Rand
	// Proxy is the fault proxy between the subject and the API server.
	Proxy *proxy.Proxy
	// Subject is the controllers under test.
	Subject Subject
	// Cluster is the control plane and its nodes.
	Cluster cluster.Cluster
	// Admin is a client with cluster-admin permissions that bypasses the proxy.
	Admin kubernetes.Interface
	// Dynamic connects like Admin. Kinds describes the kinds of the workload that have no
	// typed client; see [workload.Env].
	Dynamic dynamic.Interface
	Kinds   []kube.Kind
	// Capabilities are the capabilities of the cluster's provider.
	Capabilities cluster.Capabilities
	// Namespace is the namespace of the run's workload.
	Namespace string
	// Pods describes the pods of the run's workload.
	Pods workload.Pods
	// Trigger is the match that the fault waited for; it is zero if the fault has no trigger.
	Trigger trigger.Match
	Clock   clock.WithTicker
	Report  *Reporter
}

// Subject is the interface through which a fault stops, starts and pauses the replicas
// under test. The history records each call as an action of the run.
type Subject interface {
	// Replicas returns the names of all replicas in order, whether or not they run.
	Replicas() []string
	// Leader returns the name of the running replica that holds the leader-election lease, ""
	// if none does.
	Leader(ctx context.Context) (string, error)
	// Kill ends a replica with SIGKILL. Terminate sends SIGTERM first and waits for the
	// grace period. Both return after the replica has exited; ended is false if the replica
	// did not run.
	Kill(ctx context.Context, replica string) (ended bool, err error)
	Terminate(ctx context.Context, replica string) (ended bool, err error)
	// Start starts a replica that was ended. It does nothing to a running replica.
	Start(ctx context.Context, replica string) error
	// Pause suspends a replica until Resume; paused is false if the replica did not
	// run. If the replica exits after Resume because it lost its lease, the run starts
	// it again.
	Pause(ctx context.Context, replica string) (paused bool, err error)
	Resume(ctx context.Context, replica string) error
}

// Params are the parameters of a fault in a scenario.
type Params interface {
	// Decode decodes the parameters into a struct by its yaml tags. A field that the
	// scenario omits keeps its value, which is the default. An unknown field is an
	// error with its position.
	Decode(into any) error
	// Errorf returns an error with the position of the field in the scenario file.
	Errorf(field, format string, args ...any) error
	// CheckSteps sets the defaults of the workload steps in a field and validates each
	// step. The rules are those of the scenario's own workload steps.
	CheckSteps(field string, steps []scenario.Step) error
	// Resources returns the resources that the scenario may name.
	Resources() []string
}

// Type is a fault type: an entry of the catalog.
type Type struct {
	// Name identifies the type in scenarios, such as "api-error".
	Name string
	// Description says what the fault does; Healing says how it is undone. Both consist of
	// full sentences, which the generated reference shows.
	Description string
	Healing     string
	// Needs are the capabilities that the provider must have. None means that the type works
	// on every provider.
	Needs  []cluster.Capability
	Params []Param
	// Outage means that the control plane is unavailable while the fault is in force.
	Outage bool
	// New returns the fault that the parameters describe. Its error says where the scenario is
	// wrong.
	New func(Params) (Fault, error)
	// Sample draws the parameters of a fault for a generated scenario and returns them as a
	// struct. Fields with a zero value are not written, so New sets their defaults. Sample
	// returns nil if the fault would have no effect in this scenario. It draws only behavior
	// that a real API server, cluster or user shows.
	Sample func(*rand.Rand, SampleInput) any
	// NotGeneratedReason says why generated scenarios do not contain this type. It is
	// set only if Sample is nil.
	NotGeneratedReason string
}

// Param documents one parameter.
type Param struct {
	// Name is the field's name in a scenario.
	Name string
	// Description says what the parameter controls, with its unit.
	Description string
	// Bounds are the permitted values. Default is the value that applies if the parameter is
	// absent; it is empty for a required parameter.
	Bounds  string
	Default string
}

// Supported returns an error if a provider does not have the capabilities that a fault of
// the type needs.
func (t *Type) Supported(fault Fault, c cluster.Capabilities) error {
	if err := c.Require(t.Name, t.Needs...); err != nil {
		return err
	}
	if limited, ok := fault.(ProviderLimited); ok {
		return limited.Unsupported(c)
	}
	return nil
}

// Inject records that the fault is injected and then injects it. The record comes
// first, so that no firing precedes it in the history.
func Inject(ctx context.Context, fault Fault, env *Env) error {
	env.Report.injected(env.Trigger)
	if err := fault.Inject(ctx, env); err != nil {
		err = fmt.Errorf("injecting %s: %w", env.Report, err)
		env.Report.Failed(nil, err)
		return err
	}
	return nil
}

// Heal heals the fault, then records that it is healed.
func Heal(ctx context.Context, fault Fault, env *Env) error {
	if err := fault.Heal(ctx); err != nil {
		err = fmt.Errorf("healing %s: %w", env.Report, err)
		env.Report.Failed(nil, err)
		return err
	}
	env.Report.healed(fault.Summary())
	return nil
}
