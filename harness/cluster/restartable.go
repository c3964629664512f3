package cluster

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Part is a component of a control plane.
type Part string

// The components that a [Restartable] cluster can stop and start again.
const (
	APIServer Part = "kube-apiserver"
	Etcd      Part = "etcd"
)

// Restartable is a cluster whose control plane components can be stopped and started again.
// A component that was halted, or that exits because a halted one is missing, is not
// a failure of the cluster.
type Restartable interface {
	// Halt kills a component, as in a crash, and returns when it has exited. It has
	// no effect on a component that is already halted.
	Halt(ctx context.Context, part Part) error
	// Resume starts a halted component with its previous address and data. It returns
	// when all components that are not halted work again. It has no effect on a
	// component that is running.
	Resume(ctx context.Context, part Part) error
}

// Unavailable reports whether a request failed because the control plane was
// unavailable. The caller may retry the request. It cannot know whether the API server
// has carried out the failed request.
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

// isConnectionLost reports whether err says that a connection was lost during a
// response. It compares texts, because client-go does not preserve the types of these
// errors.
func isConnectionLost(err error) bool {
	for _, text := range []string{"EOF", "http2: client connection lost", "http2: server sent GOAWAY", "connection reset by peer"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}
