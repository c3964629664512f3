// Package scenario defines the scenario file: YAML that describes everything that one run does.
// A scenario has the cluster, the configuration of the controllers under test (the subject),
// the steps of users (the workload), and the faults with their triggers. It also has time
// limits for convergence, and the checks that the run must exercise.
//
// [Parse] reads a scenario from YAML. It is strict: each error is one line with file, line,
// column, the found value and the expected value. In a scenario that Parse returns, omitted
// fields have their defaults (see defaults.go), and all values are within their bounds.
// [Scenario.Marshal] writes YAML that Parse reads back to an equal scenario.
//
// The package runs nothing. Package faults defines the types of faults and their parameters,
// and package check defines the IDs of checks. To report an error with its position in the
// file, these packages call [Scenario.Errorf], [Fault.Errorf] or [Params.Errorf].
package scenario

import (
	"time"
)

// Scenario is the description of one run: its cluster, subject, workload, faults and time
// limits.
type Scenario struct {
	// Name is the name of the scenario, a DNS label.
	Name string `yaml:"name" format:"name" required:"true"`
	// Description is one or two sentences: what the run does, and how an incorrect controller
	// would fail. It has at most 1000 bytes.
	Description string `yaml:"description,omitempty"`
	// Seed is the number from which all random draws of the run start. If it is 0, the run
	// picks a random seed.
	Seed uint64 `yaml:"seed,omitempty"`
	// Cluster is the number of nodes, and the time that pods need to start and stop.
	Cluster Cluster `yaml:"cluster"`
	// Subject is the configuration of the controllers under test.
	Subject Subject `yaml:"subject"`
	// Operator describes the controllers under test if they are not controllers of Kubernetes.
	Operator *Operator `yaml:"operator,omitempty"`
	// Workload is the list of steps that the users do, one after another. It is required
	// unless externalWorkload is set.
	Workload []Step `yaml:"workload,omitempty" bounds:"1..1000"`
	// ExternalWorkload says that a Go program runs the workload instead, through package run.
	ExternalWorkload *ExternalWorkload `yaml:"externalWorkload,omitempty"`
	// Faults is the list of faults that the run injects.
	Faults []Fault `yaml:"faults,omitempty" bounds:"0..100"`
	// Settle is the time limit for convergence after the workload and all faults have ended,
	// and the duration of the quiet phase after convergence.
	Settle Settle `yaml:"settle"`
	// Exercises is the list of IDs of the checks that this scenario must exercise. A run
	// exercises a check if something happens that could break its guarantee. If the run does
	// not exercise one of these checks, the verdict of the check is unknown.
	Exercises []string `yaml:"exercises,omitempty" enum:"checks"`

	// source is the file that [Parse] read. It is nil for a scenario that Go code built.
	source *source
}

// Cluster is the number of nodes, and the time that pods need to start and stop.
type Cluster struct {
	// Nodes is the number of nodes.
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
	// Replicas is the number of instances of the subject. At most one instance holds the
	// leader-election lease.
	Replicas int `yaml:"replicas" bounds:"1..5"`
	// QPS is the client-side rate limit of each instance, in requests per second.
	QPS int `yaml:"qps" bounds:"1..10000"`
	// Burst is the number of requests that each instance may send at once before the rate limit
	// qps delays requests. It is at least qps.
	Burst int `yaml:"burst" bounds:"1..20000"`
	// Concurrency is the number of objects that each controller may reconcile at the same time.
	Concurrency int `yaml:"concurrency" bounds:"1..100"`
	// LeaseDuration is the time after which another instance takes over a lease that the leader
	// has not renewed. The leader gives up the lease if it cannot renew it within two thirds of
	// that time.
	LeaseDuration time.Duration `yaml:"leaseDuration" bounds:"3s..5m"`
	// Controllers is the list of the controllers under test. The names are those that the flag
	// --controllers of kube-controller-manager accepts. The control plane runs all other
	// controllers. By default, the four controllers with a contract are under test, those of
	// ReplicationControllers, ReplicaSets, Deployments and Endpoints.
	Controllers []string `yaml:"controllers,omitempty" format:"controllers" bounds:"1..100"`
}

// Fault is one fault of a scenario. In YAML, the name of the fault type is a key, and the
// parameters of the fault are the value of that key.
type Fault struct {
	// Name is the name of the fault type in the catalog of package faults.
	Name string
	// Params has the parameters, which the fault type decodes.
	Params Params
	// When is the trigger on which the fault begins. If the trigger has not matched when the
	// subject has settled after the workload, the fault does not begin.
	When *Trigger `yaml:"when,omitempty"`
	// Until is the trigger on which the fault ends, unless it has ended earlier because of for.
	Until *Trigger `yaml:"until,omitempty"`
	// Times is the maximum number of times that the fault begins. It begins each time that the
	// trigger when matches. 0 means once. The field is valid only together with when.
	Times int `yaml:"times,omitempty" bounds:"0..1000000"`
	// From is the delay before the fault begins. It counts from the match of the trigger when,
	// or from the beginning of the workload if the fault has no such trigger. A fault with
	// neither when nor for does not begin if the workload ends before the delay is over.
	From time.Duration `yaml:"from,omitempty" bounds:"0s..10m"`
	// For is the duration of the fault. The fault may last beyond the end of the workload.
	// Without this field, the fault lasts until the workload has ended.
	For time.Duration `yaml:"for,omitempty" bounds:"1ms..10m"`
	// MustFire makes the verdict of the run unknown if the fault never fires and no check
	// fails.
	MustFire bool `yaml:"mustFire,omitempty"`
}

// Errorf returns an error about the whole fault. It begins with the file and the position of
// the fault's name. The verb %w in format wraps an error.
func (f Fault) Errorf(format string, args ...any) error {
	return f.Params.Errorf("", format, args...)
}

// Settle is the time limit for convergence, and the duration of the quiet phase after
// convergence.
type Settle struct {
	// Within is the time in which the subject must converge. It begins when the workload and
	// every fault have ended. Times in which the machine is too busy to run gauntlet or the
	// subject do not count, up to the same time again.
	Within time.Duration `yaml:"within" bounds:"1s..10m"`
	// Quiet is the time after convergence in which the subject must write nothing.
	Quiet time.Duration `yaml:"quiet" bounds:"100ms..1m"`
}

// Errorf returns an error about the field at a path, such as "exercises[1]" or
// "faults[0].from". It begins with the file and the position of the field.
//
// If the file omits the field, the position is that of the nearest enclosing field. The verb %w
// in format wraps an error.
func (s *Scenario) Errorf(path, format string, args ...any) error {
	return s.source.errorAt(s.source.find(path), path, format, args...)
}
