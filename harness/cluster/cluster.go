// Package cluster defines the interface [Cluster], with which the test harness controls a
// Kubernetes cluster.
//
// Each provider, such as package embedded or kind, implements this interface. A Cluster returns
// client configurations, checks the health of the control plane components, and reports a
// component that exits.
//
// A Cluster does not create the workload. It does not start the controllers under test either;
// package harness/subject does.
package cluster

import (
	"context"

	"k8s.io/client-go/rest"
)

// Role says for whom a client of the API server acts, such as the program under test. Each role
// has its own user name, so that RBAC rules and recorded requests tell the roles apart.
type Role string

const (
	// Admin is the user of the test harness itself, with all permissions.
	Admin Role = "admin"
	// Subject is the user of the controllers under test. In a new cluster, this user has no
	// permissions. Package harness/subject creates the role bindings when it starts the
	// controllers.
	Subject Role = "subject"
	// Support is the user of the scheduler and of the controllers that are not under test.
	Support Role = "support"
	// Kubelet is the user of the simulated kubelets.
	Kubelet Role = "kubelet"
)

// KubeletUser is the user name of the [Kubelet] role. Admission policies match requests with this
// name.
const KubeletUser = "gauntlet:kubelet"

// SubjectUser is the user name of the [Subject] role. Role bindings grant permissions to this name.
const SubjectUser = "gauntlet:subject"

// Cluster is a running Kubernetes control plane with its nodes.
type Cluster interface {
	// Name returns the name of the provider, such as "embedded".
	Name() string

	// Capabilities returns the capabilities of the provider.
	Capabilities() Capabilities

	// Config returns a client configuration for a role. The configuration is a copy that the caller
	// may change. Clients with this configuration have no client-side rate limit. They connect
	// directly to the API server, not through the proxy that injects faults.
	Config(role Role) *rest.Config

	// Health returns nil if the control plane responds and all its components run. If a component
	// is restarting (see [Restartable]), Health waits a limited time for the component. The error
	// contains the unhealthy component's name, the reason and the end of its log.
	Health(ctx context.Context) error

	// Failed returns a channel that is closed when a component exits unexpectedly. Callers then
	// end the test run, because the results of the run would not be reliable.
	Failed() <-chan struct{}

	// Err returns nil until the channel that Failed returns is closed. Then the error names the
	// component that exited, and the reason.
	Err() error

	// Stop stops the control plane and removes the files and containers of the cluster, even if ctx
	// is canceled. A cluster that the user selected with --provider=existing keeps running: Stop
	// removes only what the test run has created. Stop usually takes seconds, and each provider
	// limits its duration. Only the first call stops the cluster; later calls return the same
	// error. An error means that Stop could not remove something.
	Stop(ctx context.Context) error
}
