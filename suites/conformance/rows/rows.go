// Package rows says, as data, what the conformance suite owes: a row for every
// test that upstream has of the four controllers, and one for every statement of
// controllers/CONTRACT.md that none of those tests puts to the question.
//
// A row has one spec at least, unless it says why it has none. The suite's own
// tests see to that.
package rows

import (
	"fmt"
	"slices"
)

// Row is a behaviour that the suite owes a spec.
type Row struct {
	Controller Controller
	// Name is that of upstream's test, or "statement N" if upstream has none.
	Name string
	// Level is where upstream has the test.
	Level Level
	// Cases is how many specs there are: upstream's test is a table of so many.
	Cases int
	// Statements are the numbers of those statements of the contract that the row
	// puts to the question. A ReplicationController's are the ReplicaSet's, by
	// which it goes too.
	Statements []int
	// Pending is why the row has no spec; empty if it has one.
	Pending string
}

// Controller names what a row is about, as the contract's headings do.
type Controller string

// The controllers, in the contract's order. Restart is about all of them.
const (
	ReplicaSet            Controller = "ReplicaSet"
	ReplicationController Controller = "ReplicationController"
	Deployment            Controller = "Deployment"
	Endpoints             Controller = "Endpoints"
	Restart               Controller = "Restart"
)

// Controllers are all of them, in the order in which tables show them.
var Controllers = []Controller{ReplicaSet, ReplicationController, Deployment, Endpoints, Restart}

// Level is where upstream tests a behaviour.
type Level string

// The levels. What upstream runs as conformance is E2E; what it runs end to end
// for itself alone is E2EOnly. A statement of the contract has none.
const (
	Integration Level = "integration"
	E2E         Level = "conformance"
	E2EOnly     Level = "e2e"
	Contract    Level = "contract"
)

// ID is the name that specs give of their row: "ReplicaSet/TestAdoption".
func (r Row) ID() string { return string(r.Controller) + "/" + r.Name }

// StatementIDs are the row's statements by the contract's headings: "ReplicaSet 5".
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

// All are the rows, in the order in which tables show them.
func All() []Row {
	return slices.Concat(replicaSet, replicationController, deployment, endpoints, restart)
}

// Find returns the row of that ID.
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

// statement is a row for one statement of the contract.
func statement(c Controller, number int) Row {
	return Row{Controller: c, Name: fmt.Sprintf("statement %d", number), Level: Contract, Cases: 1, Statements: []int{number}}
}

func (r Row) withCases(n int) Row { r.Cases = n; return r }

func (r Row) withoutSpec(why string) Row { r.Pending = why; return r }
