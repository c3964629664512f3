// Package faults defines the interface of faults and the parts of a run that they can use.
// A fault is one thing that goes wrong in a run. The run injects the fault, and later heals
// it: the fault ends, and its effects are undone.
//
// The fault types are in subpackages, one for each family:
//
//   - requests and watches change the traffic between the subject (the controllers under
//     test) and the API server, by means of package interceptor
//   - pods, nodes, admission, controlplane and users change the cluster, without the proxy
//   - processes kills, terminates and pauses the subject
//   - clocks changes the timestamps that the subject receives
//
// Package catalog lists every type. The scenario and its triggers decide when a fault is
// injected and healed. No fault depends on which controllers are under test.
//
// To add a fault type, implement [Fault] in the package of its family, and declare a struct
// with yaml tags for its parameters. Declare a [Type] that has a Sample function or a
// NotGeneratedReason. Then add the Type to catalog.All.
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

// Fault is one fault of one run. The run calls its methods from a single goroutine. It
// calls Inject and Heal only through the functions [Inject] and [Heal], which also write
// history records.
type Fault interface {
	// Inject starts the fault and returns while the fault is active. It may start a
	// goroutine that runs until Heal, even after ctx is canceled. If Inject returns an
	// error, the fault is not active, but the run still calls Heal.
	Inject(ctx context.Context, env *Env) error
	// Heal ends the fault and undoes its effects as far as possible. After Heal has
	// returned nil, the fault does not fire again. Heal may be called more than once, and
	// also without a call of Inject. ctx limits how long Heal waits. It stays valid when
	// the context of the run is canceled.
	Heal(ctx context.Context) error
	// Summary returns one line that says what the fault did and how often. The history
	// record of the healing contains this line.
	Summary() string
}

// ProviderLimited is implemented by faults that need further capabilities because of their
// parameters. The field Needs of [Type] lists the capabilities that every fault of a type
// needs.
type ProviderLimited interface {
	// Unsupported returns an error with the reason if the fault cannot run on a provider
	// with these capabilities. Otherwise it returns nil.
	Unsupported(cluster.Capabilities) error
}

// Env contains the parts of a run that a fault may use, such as clients, cluster, subject
// and interceptor.
type Env struct {
	// Rand is the random source of this fault alone. The run seeds it, so that a seed gives
	// the same random draws again. It is not safe for concurrent use.
	Rand *rand.Rand
	// Interceptor applies effects to the requests and watch events of the subject.
	Interceptor *interceptor.Interceptor
	// Subject stops, starts and pauses the replicas of the controllers under test.
	Subject Subject
	// Cluster is the cluster of the run: its control plane and its nodes.
	Cluster cluster.Cluster
	// Admin is a client with cluster-admin permissions. Its requests bypass Interceptor.
	Admin kubernetes.Interface
	// Dynamic is a dynamic client with the same permissions as Admin. It also bypasses the
	// proxy. Kinds are the kinds of workload objects for which client-go has no typed
	// client; see [workload.Env].
	Dynamic dynamic.Interface
	Kinds   []kube.Kind
	// Capabilities are the capabilities of the provider, such as real kubelets.
	Capabilities cluster.Capabilities
	// Namespace is the namespace in which the run creates its workload.
	Namespace string
	// Pods contains the container image of the workload's pods, and how long they take to
	// start and to stop.
	Pods workload.Pods
	// Trigger identifies the request or watch event that the fault waited for before it was
	// injected. It is the zero value if the fault has no trigger.
	Trigger trigger.Match
	// Clock measures the times of the fault, such as intervals and downtimes. Tests replace
	// it by a fake clock.
	Clock clock.WithTicker
	// Report writes the history records of this fault.
	Report *Reporter
}

// Subject stops, starts and pauses the replicas of the controllers under test. Faults call
// it. The history then records that gauntlet caused the change, not a crash of the replica.
type Subject interface {
	// Replicas returns the names of all replicas in order, such as "subject-0". It includes
	// replicas that are not running.
	Replicas() []string
	// Leader returns the name of the running replica that holds the leader-election lease.
	// It returns "" if no running replica holds the lease.
	Leader(ctx context.Context) (string, error)
	// Kill stops a replica with SIGKILL. Terminate sends SIGTERM, and SIGKILL after the
	// grace period. Both return after the replica has exited. The result ended is false if
	// the replica was not running.
	Kill(ctx context.Context, replica string) (ended bool, err error)
	Terminate(ctx context.Context, replica string) (ended bool, err error)
	// Start starts a replica that Kill or Terminate stopped. It does nothing if the replica
	// is running.
	Start(ctx context.Context, replica string) error
	// Pause suspends a replica until Resume is called for that replica. The result paused
	// is false if the replica was not running. A resumed replica may exit because it lost
	// the lease. The run then starts it again.
	Pause(ctx context.Context, replica string) (paused bool, err error)
	Resume(ctx context.Context, replica string) error
}

// Params gives a fault type access to the parameters of one fault in a scenario.
type Params interface {
	// Decode decodes the parameters into a struct, whose yaml tags name them. A field that
	// the scenario omits keeps its value, so the caller sets defaults first. If the
	// scenario has an unknown field, Decode returns an error with its position.
	Decode(into any) error
	// Errorf returns an error that begins with the position of the given field in the
	// scenario file.
	Errorf(field, format string, args ...any) error
	// CheckSteps validates the workload steps in the given field, and sets the defaults of
	// each step. It applies the same rules as for the steps in the workload of the
	// scenario.
	CheckSteps(field string, steps []scenario.Step) error
	// Resources returns the resources that the scenario may name. These are the known
	// resources and the custom resources that its workload creates.
	Resources() []string
}

// Type is a fault type, such as api-error. Package catalog lists all types.
type Type struct {
	// Name is the name of the type in scenarios, such as "api-error".
	Name string
	// Description says what the fault does. Healing says how its effects are undone. Each
	// consists of complete sentences. The generated docs/reference/faults.md shows both
	// texts.
	Description string
	Healing     string
	// Needs are the capabilities that the provider must have. If Needs is empty, every
	// provider supports the type.
	Needs []cluster.Capability
	// ActsOnSubject is true if the fault kills, stops, pauses or restarts replicas of the subject.
	ActsOnSubject bool
	// Params documents the parameters for docs/reference/faults.md.
	Params []Param
	// Outage is true if the API server or etcd is down while the fault is active. The run
	// then waits for a healthy control plane before it injects another fault.
	Outage bool
	// New returns a fault with the given parameters, or an error that names the wrong field
	// of the scenario.
	New func(Params) (Fault, error)
	// Sample draws random parameters for a fault in a generated scenario, and returns them
	// as a struct. A field with the zero value is left out of the scenario, so New sets its
	// default. Sample returns nil if the fault would have no effect in this scenario. It
	// draws only what can also happen in a real cluster.
	Sample func(*rand.Rand, SampleInput) any
	// NotGeneratedReason says why generated scenarios contain no fault of this type. It is
	// set if and only if Sample is nil.
	NotGeneratedReason string
}

// Param documents one parameter of a fault type for docs/reference/faults.md.
type Param struct {
	// Name is the name of the parameter in a scenario.
	Name string
	// Description says what the parameter controls, in complete sentences and with its
	// unit.
	Description string
	// Bounds says which values are permitted. Default is the value that the fault uses if
	// the scenario omits the parameter. Default is empty for a required parameter.
	Bounds  string
	Default string
}

// Supported returns an error if a provider with the given capabilities cannot run the
// fault. The fault must be of the type t.
func (t *Type) Supported(fault Fault, c cluster.Capabilities) error {
	if err := c.Require(t.Name, t.Needs...); err != nil {
		return err
	}
	if limited, ok := fault.(ProviderLimited); ok {
		return limited.Unsupported(c)
	}
	return nil
}

// Inject injects a fault, and records this in the history first. A fault that fires at once has
// a record of its own, which therefore follows the record of the injection.
func Inject(ctx context.Context, fault Fault, env *Env) error {
	env.Report.injected(env.Trigger)
	if err := fault.Inject(ctx, env); err != nil {
		err = fmt.Errorf("injecting %s: %w", env.Report, err)
		env.Report.Failed(nil, err)
		return err
	}
	return nil
}

// Heal heals the fault, and then records in the history that it is healed. If healing
// fails, Heal records the failure and returns an error. The caller may then call Heal again.
func Heal(ctx context.Context, fault Fault, env *Env) error {
	if err := fault.Heal(ctx); err != nil {
		err = fmt.Errorf("healing %s: %w", env.Report, err)
		env.Report.Failed(nil, err)
		return err
	}
	env.Report.healed(fault.Summary())
	return nil
}
