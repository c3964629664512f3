// Package scenario defines the scenario format: the instructions of one run as plain data.
// A scenario has the cluster, the subject, the workload, and the faults with their
// triggers. It also has the time limits for convergence, and the checks that the run must
// exercise.
//
// A scenario is read from YAML. The reader is strict: each error is one line with file,
// line, column, the found value and the expected value. A scenario that Parse returns has
// all defaults (see defaults.go), and its values are within bounds. Marshal writes YAML
// that Parse reads back to an equal scenario.
//
// The package runs nothing. Package faults defines the types of faults and their
// parameters, and package check the IDs of checks. Both use Errorf to report errors with a
// position.
package scenario

import (
	"time"
)

// Scenario is the instructions of one run.
type Scenario struct {
	// Name is the name of the scenario, a DNS label.
	Name string `yaml:"name" format:"name" required:"true"`
	// Description is one or two sentences: what the run does, and what an incorrect
	// controller would do. At most 1000 bytes.
	Description string `yaml:"description" required:"true"`
	// Seed is the seed of every random choice. With 0 the run picks a random seed.
	Seed uint64 `yaml:"seed,omitempty"`
	// Cluster is the control plane and its nodes.
	Cluster Cluster `yaml:"cluster"`
	// Subject is the configuration of the controllers under test.
	Subject Subject `yaml:"subject"`
	// Workload is the list of steps that the users do, one after another. It is required
	// unless externalWorkload is set.
	Workload []Step `yaml:"workload,omitempty" bounds:"1..1000"`
	// ExternalWorkload says that a Go program runs the workload instead, through package run.
	ExternalWorkload *ExternalWorkload `yaml:"externalWorkload,omitempty"`
	// Faults is the list of faults that act during the workload.
	Faults []Fault `yaml:"faults,omitempty" bounds:"0..100"`
	// Settle is the time limit for convergence after the workload and the faults, and the
	// quiet time after convergence.
	Settle Settle `yaml:"settle"`
	// Exercises is the list of IDs of the checks that this scenario must exercise. A
	// check in this list that the run did not exercise has the verdict unknown.
	Exercises []string `yaml:"exercises,omitempty" enum:"checks"`

	source *source // the file of the scenario; nil if the scenario was not read from a file
}

// Cluster is the control plane and the nodes of a scenario.
type Cluster struct {
	// Nodes is the number of nodes.
	Nodes int `yaml:"nodes" bounds:"1..50"`
	// PodStartDelay is the time from the binding of a pod to its condition Ready.
	PodStartDelay time.Duration `yaml:"podStartDelay" bounds:"0s..1m"`
	// PodStopDelay is the time from the deletion of a pod to its removal.
	PodStopDelay time.Duration `yaml:"podStopDelay,omitempty" bounds:"0s..1m"`
}

// Subject is the configuration of the controllers under test.
type Subject struct {
	// Replicas is the number of instances, of which one is the leader.
	Replicas int `yaml:"replicas" bounds:"1..5"`
	// QPS is the sustained rate of requests of one instance, per second.
	QPS int `yaml:"qps" bounds:"1..10000"`
	// Burst is the number of requests that one instance may send at once, above the rate
	// qps. It is at least qps.
	Burst int `yaml:"burst" bounds:"1..20000"`
	// Concurrency is the number of workers that each controller has.
	Concurrency int `yaml:"concurrency" bounds:"1..100"`
	// LeaseDuration is the time after which another instance takes over a lease that the
	// leader has not renewed. The leader tries to renew it for two thirds of that time.
	LeaseDuration time.Duration `yaml:"leaseDuration" bounds:"3s..5m"`
	// Controllers is the list of the controllers under test, by the names that the flag
	// --controllers of kube-controller-manager accepts. The control plane runs all other
	// controllers. By default, the controllers with a contract are under test.
	Controllers []string `yaml:"controllers,omitempty" format:"controllers" bounds:"1..100"`
}

// Fault is one fault of a scenario. In YAML the key is the name of the fault type, and the
// value has the parameters.
type Fault struct {
	// Name is the name of the fault type in the catalog of package faults.
	Name   string
	Params Params
	// When is the trigger on which the fault begins. If it has not matched by the time that
	// the subject has settled after the workload, the fault does not begin.
	When *Trigger `yaml:"when,omitempty"`
	// Until is the trigger on which the fault ends, unless it has ended earlier.
	Until *Trigger `yaml:"until,omitempty"`
	// Times is the maximum number of times that the fault begins, each time on its trigger.
	// 0 means once. The field is valid only together with when.
	Times int `yaml:"times,omitempty" bounds:"0..1000000"`
	// From is the delay before the fault begins. It counts from the trigger, or from the
	// beginning of the workload if there is no trigger. If the workload ends first, a fault
	// that has neither when nor for does not begin.
	From time.Duration `yaml:"from,omitempty" bounds:"0s..10m"`
	// For is the duration of the fault. The fault may last beyond the end of the workload.
	// By default it lasts until the workload has ended.
	For time.Duration `yaml:"for,omitempty" bounds:"1ms..10m"`
}

// Errorf returns an error about the whole fault, with the position of its name. It wraps
// args with %w.
func (f Fault) Errorf(format string, args ...any) error {
	return f.Params.Errorf("", format, args...)
}

// Settle is the time limit for convergence, and the quiet time after convergence.
type Settle struct {
	// Within is the time in which the subject must converge after the end of the
	// workload and of every fault.
	Within time.Duration `yaml:"within" bounds:"1s..10m"`
	// Quiet is the time after the convergence in which the subject must write nothing.
	Quiet time.Duration `yaml:"quiet" bounds:"100ms..1m"`
}

// Errorf returns an error about the field at a path, such as "exercises[1]" or
// "faults[0].from". The position is that of the field, or of the nearest enclosing field in
// the file. It wraps args with %w.
func (s *Scenario) Errorf(path, format string, args ...any) error {
	return s.source.errorAt(s.source.find(path), path, format, args...)
}
