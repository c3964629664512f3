// Package faults defines the interface of faults, and the parts of a run that faults can use. A
// fault is one thing that goes wrong in a run, such as an API error. The run injects the fault
// and later heals it: healing ends the fault and undoes its effects.
//
// The fault types are in subpackages, one for each family:
//
//   - requests and watches change the traffic between the subject (the controllers under
//     test) and the API server, by means of package interceptor
//   - ordering changes the order of this traffic
//   - pods, nodes, admission, controlplane and users change the cluster directly
//   - processes kills, terminates and pauses the subject
//   - clocks shifts the timestamps that the subject receives
//
// Package catalog lists every fault type. The scenario and its triggers decide when the run
// injects and heals a fault. No fault depends on which controllers are under test.
//
// To add a fault type, implement [Fault] in the package of its family. Declare a struct with yaml
// tags for its parameters. Declare a [Type] that has a Sample function or a NotGeneratedReason.
// Then add the Type to catalog.All.
package faults

import (
	"context"
	"fmt"
	"math/rand/v2"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/trigger"
	"github.com/kube-gauntlet/gauntlet/harness/workload"
)

// Fault is one fault, such as an api-error, in one run (one execution of a scenario). The run
// calls the fault's methods from a single goroutine. The run calls Inject and Heal only through
// the functions [Inject] and [Heal], which also write history records.
type Fault interface {
	// Inject starts the fault and then returns; the fault stays active until Heal. Inject may
	// start a goroutine that runs until Heal, even after ctx is canceled. If Inject returns an
	// error, the fault is not active, but the test run still calls Heal.
	Inject(ctx context.Context, env *Env) error
	// Heal ends the fault and undoes its effects as far as possible. After Heal has returned nil,
	// the fault does not fire again. Heal may be called more than once, and also without an
	// earlier call of Inject. ctx limits how long Heal waits. ctx stays valid when the context of
	// the test run is canceled.
	Heal(ctx context.Context) error
	// Summary returns one line that says what the fault did and how often. The "healed" record
	// in the history contains the line.
	Summary() string
}

// ProviderLimited is implemented by faults whose parameters decide on which providers they can run.
// A provider is the source of the cluster, such as kind. For example, a fault may need simulated
// kubelets only for one value of a parameter. In contrast, the field Needs of [Type] lists what
// every fault of the type needs.
type ProviderLimited interface {
	// Unsupported returns nil if the fault can run on a provider with the given capabilities.
	// Otherwise the error says why the fault cannot run.
	Unsupported(cluster.Capabilities) error
}

// Env contains the parts of a run that a fault may use, such as API clients and the cluster.
type Env struct {
	// Rand is a random source that only this fault uses. The test run derives the seed of Rand from
	// its own seed. The same seed therefore gives the same draws. Rand is not safe for concurrent
	// use.
	Rand *rand.Rand
	// Interceptor delays, refuses and breaks the tested controller's requests and watch events for
	// faults.
	Interceptor *interceptor.Interceptor
	// Subject stops, starts and pauses the replicas of the controllers under test.
	Subject Subject
	// Cluster gives access to the control plane and the nodes of the test run's cluster.
	Cluster cluster.Cluster
	// Admin is a client with cluster-admin permissions. Requests of Admin bypass Interceptor.
	Admin kubernetes.Interface
	// Dynamic is a dynamic client with cluster-admin permissions. Requests of Dynamic bypass
	// Interceptor too. The field Kinds lists the workload's API kinds for which client-go has no
	// typed client; see [workload.Env].
	Dynamic dynamic.Interface
	Kinds   []kube.Kind
	// Capabilities says what the clusters of the provider, such as kind, can do. For example, it
	// says whether the kubelets are real.
	Capabilities cluster.Capabilities
	// Namespace is the namespace in which the test run creates its workload.
	Namespace string
	// Pods contains the container image of the workload's pods. It also says how long these pods
	// take to start and to stop.
	Pods workload.Pods
	// Trigger describes how the fault's trigger matched. It identifies the request or watch event
	// that matched; a trigger can also match without one, for example when a step begins. Trigger
	// is the zero value if the fault has no trigger.
	Trigger trigger.Match
	// Clock measures the fault's intervals, downtimes and other durations. Tests use a fake
	// clock.
	Clock clock.WithTicker
	// Report writes this fault's history records, such as "fired".
	Report *Reporter
}

// Subject stops, starts and pauses the replicas of the controllers under test. Faults use this
// interface so that the history attributes each stop to gauntlet, not to a crash of the replica.
type Subject interface {
	// Replicas returns the names of all replicas in order, such as "subject-0". It includes
	// replicas that are not running.
	Replicas() []string
	// Leader returns the name of the running replica that holds the leader-election lease.
	// It returns "" if no running replica holds the lease.
	Leader(ctx context.Context) (string, error)
	// Kill stops a replica with SIGKILL. Terminate sends SIGTERM, and SIGKILL after the grace
	// period. Kill and Terminate return after the replica has exited. The result ended is false
	// if the replica was not running.
	Kill(ctx context.Context, replica string) (ended bool, err error)
	Terminate(ctx context.Context, replica string) (ended bool, err error)
	// Start starts a replica that Kill or Terminate stopped. If the replica is running, Start
	// does nothing.
	Start(ctx context.Context, replica string) error
	// Pause suspends a replica until Resume is called for the same replica. The result paused is
	// false if the replica was not running. A resumed replica may exit because it lost the lease;
	// the test run then restarts the replica.
	Pause(ctx context.Context, replica string) (paused bool, err error)
	Resume(ctx context.Context, replica string) error
}

// Params contains the parameters that a scenario sets for one fault. A fault type reads and
// validates them.
type Params interface {
	// Decode decodes the parameters into a struct with yaml tags. If the scenario omits a
	// parameter, its field keeps the value that the caller set as default. If the scenario has
	// an unknown parameter, the error contains its position.
	Decode(into any) error
	// Errorf returns an error that begins with the position of the given field in the scenario
	// file, such as "s.yaml:3:5".
	Errorf(field, format string, args ...any) error
	// CheckSteps validates the workload steps in the given field, and sets their defaults. It
	// applies the rules for the steps of the scenario's own workload.
	CheckSteps(field string, steps []scenario.Step) error
	// Resources returns the resources that the scenario may name, such as "pods". They are the
	// known resources and the custom resources that the scenario's workload creates.
	Resources() []string
}

// Create returns a fault with the parameters that a scenario sets. It is like [Type.New], but an error about a value of the wrong
// type also says what the parameter permits.
func (t Type) Create(params scenario.Params) (Fault, error) {
	bounds := map[string]string{}
	for _, param := range t.Params {
		bounds[param.Name] = param.Bounds
	}
	return t.New(params.Expecting(bounds))
}

// Type describes a fault type, such as api-error. Package catalog lists all types.
type Type struct {
	// Name is the name that scenarios use for the type, such as "api-error".
	Name string
	// Description says what the fault does. The field Healing says how the end of the fault undoes
	// its effects. Each text consists of complete sentences. The generated docs/reference/faults.md
	// shows both texts.
	Description string
	Healing     string
	// Needs lists the capabilities that a provider, such as kind, must have to run the fault. An
	// example is real kubelets. If Needs is empty, every provider can run the fault.
	Needs []cluster.Capability
	// ActsOnSubject is true if the fault kills, terminates, pauses or restarts the subject (the
	// controllers under test).
	ActsOnSubject bool
	// Params documents the type's parameters for docs/reference/faults.md.
	Params []Param
	// Outage is true if the fault makes the API server or etcd unavailable. A run injects no
	// other fault before the control plane is healthy again.
	Outage bool
	// New returns a fault with the given parameters. If a parameter is invalid, the error names
	// the parameter's field in the scenario.
	New func(Params) (Fault, error)
	// Sample draws random parameters for a fault in a generated scenario, and returns them as a
	// struct. Sample leaves a field zero to use the parameter's default. It returns nil if the
	// fault would have no effect in this scenario. Sample draws only values that can also occur
	// in a real cluster.
	Sample func(*rand.Rand, SampleInput) any
	// NotGeneratedReason says why generated scenarios contain no fault of this type. It is
	// non-empty if and only if Sample is nil.
	NotGeneratedReason string
}

// Param documents one parameter of a fault type for docs/reference/faults.md.
type Param struct {
	// Name is the name of the parameter in a scenario.
	Name string
	// Description says what the parameter controls, in complete sentences and with the unit of
	// its value.
	Description string
	// Bounds says which values are permitted, such as "at least 1". The field Default is the value
	// that the fault uses if the scenario omits the parameter. A required parameter has an empty
	// Default.
	Bounds  string
	Default string
}

// Supported returns nil if a provider with the given capabilities can run the fault. Otherwise the
// error names the missing capability, or says why the provider cannot run the fault. The argument
// fault must have the type t.
func (t *Type) Supported(fault Fault, c cluster.Capabilities) error {
	if err := c.Require(t.Name, t.Needs...); err != nil {
		return err
	}
	if limited, ok := fault.(ProviderLimited); ok {
		return limited.Unsupported(c)
	}
	return nil
}

// Inject records that the fault is being injected, and then injects the fault. In this order, the
// "injected" record precedes the fault's "fired" records, even if the fault fires at once. If the
// injection fails, Inject records the failure and returns an error.
func Inject(ctx context.Context, fault Fault, env *Env) error {
	env.Report.injected(env.Trigger)
	if err := fault.Inject(ctx, env); err != nil {
		err = fmt.Errorf("injecting %s: %w", env.Report, err)
		env.Report.Failed(nil, err)
		return err
	}
	return nil
}

// Heal heals the fault, and then writes a "healed" record to the history. If healing fails, Heal
// records the failure and returns an error. The caller may then call Heal again.
func Heal(ctx context.Context, fault Fault, env *Env) error {
	if err := fault.Heal(ctx); err != nil {
		err = fmt.Errorf("healing %s: %w", env.Report, err)
		env.Report.Failed(nil, err)
		return err
	}
	env.Report.healed(fault.Summary())
	return nil
}
