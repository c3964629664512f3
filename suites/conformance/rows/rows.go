// Package rows lists the behaviors that the conformance suite must test. It has a row
// for every test that Kubernetes has of the four controllers. It also has a row for
// every statement of controllers/CONTRACT.md that none of these tests covers.
//
// Each row has at least one spec, or a reason why it has none. A test of the suite
// fails if a row has neither.
package rows

import (
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Row is a behavior that the suite must test.
type Row struct {
	Controller Controller
	// Name is the name of the Kubernetes test, or "statement N".
	Name string
	// Level is the kind of test that Kubernetes has for this behavior.
	Level Level
	// Cases is the number of specs. It is above 1 if the Kubernetes test is table-
	// driven.
	Cases int
	// Statements are the numbers of the statements that the row covers. Rows of
	// ReplicationController use the statements of ReplicaSet.
	Statements []int
	// Pending is the reason why the row has no spec. It is empty if the row has a spec.
	Pending string
}

// Controller is the name of the controller of a row. The headings of the contract have
// the same names.
type Controller string

// The controllers, in the order of the contract. Restart is not a controller: its rows
// concern the restart of every controller.
const (
	ReplicaSet            Controller = kube.ReplicaSet
	ReplicationController Controller = kube.ReplicationController
	Deployment            Controller = kube.Deployment
	Endpoints             Controller = kube.Endpoints
	Restart               Controller = "Restart"
)

// Controllers are all controllers, in the order of tables.
var Controllers = []Controller{ReplicaSet, ReplicationController, Deployment, Endpoints, Restart}

// Level is the kind of test that Kubernetes has for a behavior.
type Level string

// The levels. E2E is a Kubernetes conformance test, and E2EOnly any other e2e test.
// A statement of the contract has the level Contract.
const (
	Integration Level = "integration"
	E2E         Level = "conformance"
	E2EOnly     Level = "e2e"
	Contract    Level = "contract"
)

// ID returns the name that specs use for the row, such as "ReplicaSet/TestAdoption".
func (r Row) ID() string { return string(r.Controller) + "/" + r.Name }

// StatementIDs returns the statements of the row with the heading of the contract,
// such as "ReplicaSet 5".
func (r Row) StatementIDs() []string {
	heading := r.Controller
	if heading == ReplicationController || heading == Restart {
		heading = ReplicaSet
	}
	var all []string
	for _, number := range r.Statements {
		all = append(all, fmt.Sprintf("%s %d", heading, number))
	}
	return all
}

// All returns the rows in the order of tables.
func All() []Row {
	return slices.Concat(replicaSet, replicationController, deployment, endpoints, restart)
}

// Find returns the row with the given ID.
func Find(id string) (Row, bool) {
	all := All()
	i := slices.IndexFunc(all, func(r Row) bool { return r.ID() == id })
	if i < 0 {
		return Row{}, false
	}
	return all[i], true
}

func integration(c Controller, name string, statements ...int) Row {
	return Row{Controller: c, Name: name, Level: Integration, Cases: 1, Statements: statements}
}

func e2e(c Controller, name string, statements ...int) Row {
	return Row{Controller: c, Name: name, Level: E2E, Cases: 1, Statements: statements}
}

func e2eOnly(c Controller, name string, statements ...int) Row {
	return Row{Controller: c, Name: name, Level: E2EOnly, Cases: 1, Statements: statements}
}

// statement returns a row for one statement of the contract.
func statement(c Controller, number int) Row {
	return Row{Controller: c, Name: fmt.Sprintf("statement %d", number), Level: Contract, Cases: 1, Statements: []int{number}}
}

func (r Row) withCases(n int) Row { r.Cases = n; return r }

func (r Row) withoutSpec(why string) Row { r.Pending = why; return r }
