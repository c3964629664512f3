package cluster

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Component is the name of a control plane component that a fault can kill.
type Component string

// The components that a [Restartable] cluster can kill and start again.
const (
	APIServer Component = "kube-apiserver"
	Etcd      Component = "etcd"
)

// Restartable is a cluster whose control plane components can be killed and started again.
//
// The channel of [Cluster.Failed] stays open when Halt kills a component, because a fault causes
// this exit. The channel also stays open if other components exit because the killed component does
// not respond.
type Restartable interface {
	// Halt kills a component with SIGKILL, as in a crash, and returns when the component has
	// exited. The component stays down until Resume. Halt returns nil if the component is already
	// halted.
	Halt(ctx context.Context, component Component) error
	// Resume starts a halted component with its previous address and data. It returns when the
	// control plane is healthy. If another component is still halted, Resume may return earlier.
	// Resume returns nil if the component is not halted.
	Resume(ctx context.Context, component Component) error
}

// Unavailable reports whether a request failed with err because the control plane was
// unavailable. The caller may retry such a request, although the API server may already have
// executed it.
func Unavailable(err error) bool {
	var network net.Error
	var status apierrors.APIStatus
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &status):
		// An API server that has just started forbids requests while an admission
		// plugin is not ready.
		return status.Status().Code >= http.StatusInternalServerError ||
			apierrors.IsForbidden(err) && strings.Contains(err.Error(), "not yet ready")
	default:
		// The connection was refused, reset, or lost before the response was complete.
		return errors.As(err, &network) || isConnectionLost(err)
	}
}

// isConnectionLost reports whether err says that a connection was lost before the response was
// complete. It searches the error text, because client-go does not preserve the types of these
// errors.
func isConnectionLost(err error) bool {
	for _, text := range []string{"EOF", "http2: client connection lost", "http2: server sent GOAWAY", "connection reset by peer"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}
