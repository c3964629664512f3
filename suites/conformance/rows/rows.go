// Package rows lists the behaviors that the conformance suite must test. Each behavior is a row.
// Every Kubernetes test of the controllers for ReplicaSets, ReplicationControllers, Deployments
// and Endpoints is a row. Every statement of controllers/CONTRACT.md that no such test covers is a
// row too.
//
// Each row has one or more specs, or a reason why it has no spec. A test of the suite compares the
// rows with the Ginkgo specs.
package rows

import (
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Row is a behavior of a controller that the conformance suite must test. It comes from a test of
// Kubernetes or from a statement of controllers/CONTRACT.md.
type Row struct {
	// Controller is the controller whose behavior the row describes.
	Controller Controller
	// Name is the name of the Kubernetes test, such as "TestAdoption". For a statement of the
	// contract, it is "statement N".
	Name string
	// Level says where the row comes from: from an integration, conformance or e2e test of
	// Kubernetes, or from a statement of the contract.
	Level Level
	// Cases is the required number of Ginkgo specs for the row. It is more than 1 if the
	// Kubernetes test is table-driven.
	Cases int
	// Statements lists the numbers of the contract's statements that the row tests. In
	// controllers/CONTRACT.md, the numbers begin with 1 below the heading of each controller. For
	// the controllers ReplicationController and Restart, the heading is ReplicaSet.
	Statements []int
	// Pending is the reason why the row has no Ginkgo spec. It is "" if the row has specs.
	Pending string
}

// Controller is the name of a controller, such as "ReplicaSet". Headings of controllers/CONTRACT.md
// have the same names.
type Controller string

// These are the controllers, in the order of controllers/CONTRACT.md. Restart is not a controller:
// the rows (behaviors to test) of Restart say what happens when the controllers' process restarts.
const (
	ReplicaSet            Controller = kube.ReplicaSet
	ReplicationController Controller = kube.ReplicationController
	Deployment            Controller = kube.Deployment
	Endpoints             Controller = kube.Endpoints
	Restart               Controller = "Restart"
)

// Controllers lists all controllers, in the order in which tables show them.
var Controllers = []Controller{ReplicaSet, ReplicationController, Deployment, Endpoints, Restart}

// Level says where a behavior to test (a row) comes from: from a kind of Kubernetes test, or from
// controllers/CONTRACT.md.
type Level string

// These values of Level say where a behavior to test (a row) comes from. E2E is a Kubernetes
// conformance test, E2EOnly any other e2e test, Integration an integration test, and Contract a
// statement of the contract.
const (
	Integration Level = "integration"
	E2E         Level = "conformance"
	E2EOnly     Level = "e2e"
	Contract    Level = "contract"
)

// ID returns the controller and the name of the behavior to test, such as
// "ReplicaSet/TestAdoption". Each Ginkgo spec names its row by this ID.
func (r Row) ID() string { return string(r.Controller) + "/" + r.Name }

// StatementIDs returns the IDs of the statements in controllers/CONTRACT.md that the row tests,
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

// All returns all rows, that is, all behaviors to test, in the order in which tables show them.
func All() []Row {
	return slices.Concat(replicaSet, replicationController, deployment, endpoints, restart)
}

// Find returns the row (a behavior that the suite must test) with the given ID. It returns false if
// no row has this ID.
func Find(id string) (Row, bool) {
	all := All()
	i := slices.IndexFunc(all, func(r Row) bool { return r.ID() == id })
	if i < 0 {
		return Row{}, false
	}
	return all[i], true
}

// integration returns the row for an integration test of Kubernetes, such as "TestAdoption". A row
// is a behavior that the suite must test. The Kubernetes test covers the given statements of
// controllers/CONTRACT.md.
func integration(c Controller, name string, statements ...int) Row {
	return Row{Controller: c, Name: name, Level: Integration, Cases: 1, Statements: statements}
}

// e2e returns the row for a conformance test of Kubernetes. A row is a behavior that the suite must
// test. The Kubernetes test covers the given statements of controllers/CONTRACT.md.
func e2e(c Controller, name string, statements ...int) Row {
	return Row{Controller: c, Name: name, Level: E2E, Cases: 1, Statements: statements}
}

// e2eOnly returns the row for an e2e test of Kubernetes that is not a conformance test. A row is a
// behavior that the suite must test. The Kubernetes test covers the given statements of
// controllers/CONTRACT.md.
func e2eOnly(c Controller, name string, statements ...int) Row {
	return Row{Controller: c, Name: name, Level: E2EOnly, Cases: 1, Statements: statements}
}

// statement returns the row for one numbered statement of controllers/CONTRACT.md. A row is a
// behavior that the suite must test. Use statement only if no test of Kubernetes covers the
// behavior.
func statement(c Controller, number int) Row {
	return Row{Controller: c, Name: fmt.Sprintf("statement %d", number), Level: Contract, Cases: 1, Statements: []int{number}}
}

// withCases returns the row (a behavior to test) with n as its required number of Ginkgo specs.
// Rows for table-driven tests have one spec for each case.
func (r Row) withCases(n int) Row { r.Cases = n; return r }

// withoutSpec returns the row (a behavior to test) with a reason why it has no Ginkgo spec.
func (r Row) withoutSpec(why string) Row { r.Pending = why; return r }
