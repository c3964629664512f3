// Package cluster says what a control plane is to the rest of the harness: a
// place with a configuration per role, a health that can be asked for, parts
// whose death is noticed, and an end. The providers (embedded, kind and
// existing) live in packages below this one.
//
// It is not about what runs on the cluster: the controllers under test belong
// to harness/subject, and pods come from workloads.
package cluster

import (
	"context"

	"k8s.io/client-go/rest"
)

// Role is who a client is to the API server. Each role is a user of its own, so
// that authorization and the recorded requests can tell them apart.
type Role string

const (
	// Admin may do everything. The harness itself acts as Admin.
	Admin Role = "admin"
	// Subject is the user of the controllers under test. A cluster grants it
	// nothing; whoever starts a subject binds the rights that subject needs.
	Subject Role = "subject"
	// Support is the user of everything else that acts on the cluster: the
	// scheduler, the controllers not under test, the simulated kubelets.
	Support Role = "support"
)

// SubjectUser is the name that [Subject] authenticates as: the name to put in a
// role binding.
const SubjectUser = "gauntlet:subject"

// SubjectControllers are the controllers under test, by the names that
// kube-controller-manager knows them by: a subject runs these, and a cluster
// everything but these.
var SubjectControllers = []string{
	"replicationcontroller-controller",
	"replicaset-controller",
	"deployment-controller",
	"endpoints-controller",
}

// Cluster is a running control plane.
type Cluster interface {
	// Name is the provider's name, such as "embedded".
	Name() string

	// Config returns a client configuration for a role: a copy, the caller's to
	// change. It leads straight to the API server, never through the fault
	// proxy, and has no client-side rate limit.
	Config(role Role) *rest.Config

	// Health is nil when the control plane answers and all of its parts live. What
	// is out of order for a time (see [Breakable]) it gives the time to come back,
	// within a bound of its own. The error says which part does not and why, with the end of its log.
	Health(ctx context.Context) error

	// Failed is closed when a part of the control plane ends that nobody asked
	// to end. From then on nothing seen on the cluster can be trusted.
	Failed() <-chan struct{}

	// Err is nil until Failed is closed, then which part ended and why.
	Err() error

	// Stop ends the control plane and removes its state. It takes seconds at
	// most whatever ctx says, may be called more than once, and its error means
	// that something was left behind.
	Stop(ctx context.Context) error
}
