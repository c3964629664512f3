package cluster

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Part is a program of a control plane without which nothing else works.
type Part string

// The parts that a cluster may be able to do without for a time.
const (
	APIServer Part = "kube-apiserver"
	Etcd      Part = "etcd"
)

// Restartable is a cluster whose parts can be out of order for a time. What ends
// because it was halted, and what ends for want of that, is no failure of the
// cluster.
type Restartable interface {
	// Halt ends a part by force, as a crash does, and returns when it is gone. One
	// that is halted already is left alone.
	Halt(ctx context.Context, part Part) error
	// Resume starts a part that was halted, at its old address and with what it
	// had stored, and returns when everything is back at work, but for what else
	// is halted at the time. One that runs is left alone.
	Resume(ctx context.Context, part Part) error
}

// Unavailable reports whether a request failed because the control plane was out of
// order, and not because of what was asked: whoever asks again later may have
// more luck. Whether the request did its work is not known then.
func Unavailable(err error) bool {
	var network net.Error
	var status apierrors.APIStatus
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &status):
		// An API server that has just started refuses what some admission plugin is
		// not ready for yet.
		return status.Status().Code >= http.StatusInternalServerError ||
			apierrors.IsForbidden(err) && strings.Contains(err.Error(), "not yet ready")
	default:
		// Refused, reset, or broken off before there was an answer.
		return errors.As(err, &network) || isBrokenOff(err)
	}
}

// isBrokenOff knows the errors of a connection that ended in the middle of an
// answer, which have no type of their own once client-go is done with them.
func isBrokenOff(err error) bool {
	for _, words := range []string{"EOF", "http2: client connection lost", "http2: server sent GOAWAY", "connection reset by peer"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}
