// Package cluster defines the interface between the harness and the clusters that it uses.
//
// The packages below this one implement it: embedded, kind and existing. A cluster
// provides client configurations, health checks and the notification of failures.
//
// The controllers under test are not part of a cluster; see harness/subject. The pods of the
// workload are not part of a cluster either.
package cluster

import (
	"context"

	"k8s.io/client-go/rest"
)

// Role is the role of a client of the API server.
// Each role is a separate user, so that authorization and recorded requests can
// distinguish them.
type Role string

const (
	// Admin has all permissions. The harness uses it for its own requests.
	Admin Role = "admin"
	// Subject is the user of the controllers under test. A cluster grants it no
	// permissions. The code that starts a subject creates its role bindings.
	Subject Role = "subject"
	// Support is the user of all other components. These are the scheduler, the
	// controllers that are not under test, and the simulated kubelets.
	Support Role = "support"
)

// SubjectUser is the user name of the [Subject] role. Role bindings refer to it.
const SubjectUser = "gauntlet:subject"

// Cluster is a running control plane.
type Cluster interface {
	// Name returns the name of the provider, such as "embedded".
	Name() string

	// Capabilities returns the capabilities of the provider.
	Capabilities() Capabilities

	// Config returns a client configuration for a role. It is a copy that the caller
	// may change. Its requests go directly to the API server, so no fault affects them,
	// and they have no client-side rate limit.
	Config(role Role) *rest.Config

	// Health returns nil if the control plane responds and all its components run.
	// It waits a limited time for a component that is restarting (see [Restartable]).
	// The error names the unhealthy component, with the reason and the last lines of
	// its log.
	Health(ctx context.Context) error

	// Failed returns a channel that is closed when a component exits unexpectedly.
	// Observations of the cluster are not reliable after that.
	Failed() <-chan struct{}

	// Err returns nil until Failed is closed. Afterwards its error says which component
	// exited and why.
	Err() error

	// Stop stops the control plane and removes its state. It may be called more than
	// once and takes at most seconds, even if ctx is canceled. An error means that
	// something could not be removed.
	Stop(ctx context.Context) error
}
