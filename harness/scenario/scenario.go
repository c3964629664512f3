// Package scenario is what a run is asked to do, as plain data: what cluster,
// what subject, what the users do, what goes wrong and when, how long settling
// may take, and which guarantees must have been put to the test.
//
// A scenario is read from YAML. Reading is strict, and whatever is wrong comes
// back as one line with file, line, column, what was found and what was
// expected. A scenario that Parse returns is complete (see the defaults in
// defaults.go) and within bounds; Marshal writes it so that Parse gives it back.
//
// The package performs nothing. The kinds of faults and their parameters belong
// to package faults, the IDs of checks to package check; both report errors in
// them with a position through Errorf.
package scenario

import (
	"time"
)

// Scenario is one run's instructions.
type Scenario struct {
	Name string `yaml:"name"`
	// Description says in a sentence or two what is done and what a broken
	// controller would do.
	Description string `yaml:"description"`
	// Seed is where every random draw of the run starts; 0 leaves it to the run.
	Seed    uint64  `yaml:"seed,omitempty"`
	Cluster Cluster `yaml:"cluster"`
	Subject Subject `yaml:"subject"`
	// Workload is what the users do, step by step.
	Workload []Step `yaml:"workload"`
	// Faults is what goes wrong meanwhile.
	Faults []Fault `yaml:"faults,omitempty"`
	Settle Settle  `yaml:"settle"`
	// Exercises lists the IDs of the checks that this scenario must put to the
	// test. One that was not has the verdict unknown.
	Exercises []string `yaml:"exercises,omitempty"`

	source *source // where it was read; nil when it was not
}

// Cluster is the control plane that a scenario needs.
type Cluster struct {
	Nodes int `yaml:"nodes"`
	// PodStartDelay is how long a pod takes from its node to Ready.
	PodStartDelay time.Duration `yaml:"podStartDelay"`
	// PodStopDelay is how long a pod takes to go once it is deleted.
	PodStopDelay time.Duration `yaml:"podStopDelay,omitempty"`
}

// Subject is how the controllers under test are run.
type Subject struct {
	// Replicas is the number of instances; one of them leads.
	Replicas int `yaml:"replicas"`
	// QPS and Burst bound the requests of one instance.
	QPS   int `yaml:"qps"`
	Burst int `yaml:"burst"`
	// Concurrency is the number of workers of each controller.
	Concurrency int `yaml:"concurrency"`
	// LeaseDuration is how long a leader that has gone silent is waited for before
	// another replica takes over. A leader tries to renew its lease for two thirds
	// of it before it gives up.
	LeaseDuration time.Duration `yaml:"leaseDuration"`
}

// Fault is one thing that goes wrong.
type Fault struct {
	// Name is the kind of fault, as the catalogue of package faults has it.
	Name   string
	Params Params
	// When, if set, is the moment at which it begins to act. It is waited for until
	// the workload has ended and the subject has nothing left to do.
	When *Trigger
	// Until, if set, is the moment at which it ends, if For has not ended it before.
	Until *Trigger
	// Times is how often at most it acts, each time that its moment comes; 0 is once.
	Times int
	// From is when it begins to act: since its moment came, or else since the
	// workload began. Without a moment, and with no For, it does not begin if the
	// workload has ended by then.
	From time.Duration
	// For is how long it acts; 0 means until the workload has ended. A fault that
	// acts for longer than the workload is given its time.
	For time.Duration
}

// Errorf returns an error about the fault as a whole, placed at its name. Args
// may be wrapped with %w.
func (f Fault) Errorf(format string, args ...any) error {
	return f.Params.Errorf("", format, args...)
}

// Settle bounds what comes after the chaos.
type Settle struct {
	// Within is how long the subject may take to converge once the workload has
	// ended and every fault is healed.
	Within time.Duration `yaml:"within"`
	// Quiet is how long it must then write nothing.
	Quiet time.Duration `yaml:"quiet"`
}

// Errorf returns an error about the field at path, such as "exercises[1]" or
// "faults[0].from", placed at that field or at the nearest one around it that
// the file has. Args may be wrapped with %w.
func (s *Scenario) Errorf(path, format string, args ...any) error {
	return s.source.errorAt(s.source.find(path), path, format, args...)
}
