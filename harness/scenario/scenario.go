// Package scenario defines the scenario file: YAML that describes everything that one run does.
// A scenario has the cluster and the configuration of the controllers under test (the subject).
// It has the steps of users (the workload), and the faults with the triggers that begin them. It
// also has the time limits for convergence. It lists the checks whose guarantees the run must
// put at risk.
//
// [Parse] reads a scenario from YAML. It is strict: each error is one line with file, line,
// column, the found value and the expected value. In a scenario that Parse returns, omitted
// fields have their defaults (see defaults.go), and all values are within their bounds.
// [Scenario.Marshal] writes YAML. From this YAML, Parse reads an equal scenario.
//
// The package runs nothing. Package faults defines the types of faults and their parameters, and
// package check defines the IDs of checks. To report an error with its position in the file,
// these packages call [Scenario.Errorf], [Fault.Errorf] or [Params.Errorf].
package scenario

import (
	"time"
)

// Scenario is the description of one run: its cluster, subject, workload, faults and time
// limits.
type Scenario struct {
	// Name is a DNS label that identifies the scenario in reports, such as burst-with-errors.
	Name string `yaml:"name" format:"name" required:"true"`
	// Description is one or two sentences: what the run does, and how an incorrect controller
	// would fail. It has at most 1000 bytes.
	Description string `yaml:"description,omitempty"`
	// Seed is the number from which all random draws of the run start. If it is 0, the run
	// picks a random seed.
	Seed uint64 `yaml:"seed,omitempty"`
	// Cluster has the number of nodes, and the times that pods need to start and stop.
	Cluster Cluster `yaml:"cluster"`
	// Subject is the configuration of the controllers under test.
	Subject Subject `yaml:"subject"`
	// Operator describes controllers under test that are not part of Kubernetes, and their
	// custom resources. Without this field, only controllers of Kubernetes are under test.
	Operator *Operator `yaml:"operator,omitempty"`
	// Workload is the list of steps, which gauntlet executes one after another in the role of
	// users. It is required unless externalWorkload is set.
	Workload []Step `yaml:"workload,omitempty" bounds:"1..1000"`
	// ExternalWorkload means that a Go program creates and changes the objects, instead of steps
	// in the field workload. The program starts the run through package run.
	ExternalWorkload *ExternalWorkload `yaml:"externalWorkload,omitempty"`
	// Faults is the list of faults that the run injects.
	Faults []Fault `yaml:"faults,omitempty" bounds:"0..100"`
	// Settle limits the last part of the run, after the workload and all faults have ended. In this
	// part, the controllers under test must converge and then write nothing for a while.
	Settle Settle `yaml:"settle"`
	// Exercises is the list of IDs of the checks that this scenario must exercise. A run
	// exercises a check if something happens that could break the check's guarantee. If the run
	// does not exercise one of these checks, the verdict of this check is unknown.
	Exercises []string `yaml:"exercises,omitempty" enum:"checks"`

	// source is the file that [Parse] read. It is nil for a scenario that Go code built.
	source *source
}

// Cluster has the number of nodes, and the times that pods need to start and stop.
type Cluster struct {
	// Nodes is the number of nodes of the cluster.
	Nodes int `yaml:"nodes" bounds:"1..50"`
	// PodStartDelay is the time from the binding of a pod to a node until the pod has the
	// condition Ready.
	PodStartDelay time.Duration `yaml:"podStartDelay" bounds:"0s..1m"`
	// PodStopDelay is the time from the graceful deletion of a pod until the pod object is
	// removed.
	PodStopDelay time.Duration `yaml:"podStopDelay,omitempty" bounds:"0s..1m"`
}

// Subject is the configuration of the controllers under test.
type Subject struct {
	// Replicas is the number of instances (processes or pods) of the controllers under test. At
	// most one instance holds the leader-election lease.
	Replicas int `yaml:"replicas" bounds:"1..5"`
	// QPS is the client-side rate limit of each instance, in requests per second.
	QPS int `yaml:"qps" bounds:"1..10000"`
	// Burst is the number of requests that each instance may send at once before the rate limit
	// qps delays requests. It is at least qps.
	Burst int `yaml:"burst" bounds:"1..20000"`
	// Concurrency is the number of objects that each controller may reconcile at the same time.
	Concurrency int `yaml:"concurrency" bounds:"1..100"`
	// LeaseDuration is the time after which another instance takes over a lease that the leader
	// has not renewed. A leader that cannot renew the lease gives the lease up after two thirds
	// of leaseDuration.
	LeaseDuration time.Duration `yaml:"leaseDuration" bounds:"3s..5m"`
	// Controllers is the list of the controllers under test. The names are those that the flag
	// --controllers of kube-controller-manager accepts. The control plane runs all other
	// controllers. The default is the four controllers whose behavior controllers/CONTRACT.md
	// specifies: those of ReplicationControllers, ReplicaSets, Deployments and Endpoints.
	Controllers []string `yaml:"controllers,omitempty" format:"controllers" bounds:"1..100"`
}

// Fault is one fault of a scenario. In YAML, it is a mapping with the name of the fault type as
// a key. The value of this key has the parameters. An example is restart: {how: kill}.
type Fault struct {
	// Name is the name of the fault type in the catalog of all faults, such as api-error.
	Name string
	// Params has the parameters of the fault as YAML. The fault type decodes the parameters.
	Params Params
	// When is the trigger that begins the fault, such as the third pod create. After the
	// workload, the trigger has time to match until all objects have converged. If the trigger
	// does not match by then, the fault does not begin.
	When *Trigger `yaml:"when,omitempty"`
	// Until is the trigger that ends the fault. The field for may end the fault earlier.
	Until *Trigger `yaml:"until,omitempty"`
	// Times is the maximum number of times that the fault begins. The fault begins each time
	// that the trigger in the field when matches. 0 means once. The field is valid only together
	// with when.
	Times int `yaml:"times,omitempty" bounds:"0..1000000"`
	// From is the delay before the fault begins. The delay counts from the match of the trigger
	// in the field when. Without such a trigger, the delay counts from the beginning of the
	// workload. A fault with neither when nor for does not begin if the workload ends before the
	// delay is over.
	From time.Duration `yaml:"from,omitempty" bounds:"0s..10m"`
	// For is the duration of the fault. The fault may last beyond the end of the workload.
	// Without this field, the fault lasts until the workload has ended.
	For time.Duration `yaml:"for,omitempty" bounds:"1ms..10m"`
	// MustFire makes the verdict of the run unknown if the fault never fires and no check fails.
	// A fault fires each time it changes something, such as when it refuses a request.
	MustFire bool `yaml:"mustFire,omitempty"`
}

// Errorf returns an error about the whole fault. The error begins with the file and the position
// of the fault's name. The verb %w in the argument format wraps an error.
func (f Fault) Errorf(format string, args ...any) error {
	return f.Params.Errorf("", format, args...)
}

// Settle has two times: the limit for convergence, and how long the controllers under test must
// then write nothing.
type Settle struct {
	// Within is the time in which the controllers under test must converge. The time begins when
	// the workload and every fault have ended. It does not include pauses in which gauntlet or
	// these controllers get no CPU time. Such pauses extend the time to at most twice the value.
	Within time.Duration `yaml:"within" bounds:"1s..10m"`
	// Quiet is the time after convergence in which the controllers under test must write nothing.
	Quiet time.Duration `yaml:"quiet" bounds:"100ms..1m"`
}

// Errorf returns an error about the field at a path, such as "exercises[1]" or "faults[0].from".
// The error begins with the file and the position of the field.
//
// If the file omits the field, the position is that of the nearest enclosing field. The verb %w in
// the argument format wraps an error.
func (s *Scenario) Errorf(path, format string, args ...any) error {
	return s.source.errorAt(s.source.find(path), path, format, args...)
}
