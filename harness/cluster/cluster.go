// Package cluster defines the interface [Cluster], through which the harness uses a Kubernetes
// cluster.
//
// The packages embedded, kind and existing implement this interface. A cluster gives the harness
// client configurations, checks the health of its components, and reports a component that exits.
//
// A cluster does not run the controllers under test; package harness/subject starts them. A cluster
// does not create the pods of the workload either.
package cluster

import (
	"context"

	"k8s.io/client-go/rest"
)

// Role is the role of a client of the API server. Each role is a separate user, so that RBAC and
// recorded requests can distinguish the roles.
type Role string

const (
	// Admin has all permissions. The harness uses it for its own requests.
	Admin Role = "admin"
	// Subject is the user of the controllers under test. A new cluster grants this user no
	// permissions. Package harness/subject creates the role bindings when it starts a subject.
	Subject Role = "subject"
	// Support is the user of all other components. These are the scheduler and the
	// controllers that are not under test.
	Support Role = "support"
	// Kubelet is the user of the simulated kubelets.
	Kubelet Role = "kubelet"
)

// KubeletUser is the user name of the [Kubelet] role. Admission policies refer to it.
const KubeletUser = "gauntlet:kubelet"

// SubjectUser is the user name of the [Subject] role. Role bindings refer to it.
const SubjectUser = "gauntlet:subject"

// Cluster is a running control plane.
type Cluster interface {
	// Name returns the name of the provider, such as "embedded".
	Name() string

	// Capabilities returns the capabilities of the provider.
	Capabilities() Capabilities

	// Config returns a client configuration for a role. The configuration is a copy that the caller
	// may change. Clients with this configuration connect directly to the API server, not through
	// the fault proxy. They have no client-side rate limit.
	Config(role Role) *rest.Config

	// Health returns nil if the control plane responds and all its components run.
	// It waits a limited time for a component that is restarting (see [Restartable]).
	// The error names the unhealthy component, with the reason and the last lines of
	// its log.
	Health(ctx context.Context) error

	// Failed returns a channel that is closed when a component exits unexpectedly. Callers then end
	// the run, because its results would not be reliable.
	Failed() <-chan struct{}

	// Err returns nil until the channel of Failed is closed. After that, it returns an error that
	// names the component that exited, and says why the component exited.
	Err() error

	// Stop stops the control plane and removes its state, even if ctx is canceled. An existing
	// cluster keeps running, and Stop removes only what the run has created. Each provider bounds
	// the duration of Stop, which usually takes seconds. Only the first call stops the cluster;
	// later calls return the same error. An error means that Stop could not remove something.
	Stop(ctx context.Context) error
}
