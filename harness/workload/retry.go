package workload

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

const (
	// unavailableTimeout is the time for which a user repeats a request while the control plane
	// is unavailable.
	unavailableTimeout = 2 * time.Minute
	// retryInterval is the time between two attempts of a request.
	retryInterval = 100 * time.Millisecond
	// unservedTimeout is how long a user repeats a create of a resource that is not served yet. The same
	// holds for a request that calls a webhook.
	unservedTimeout = 10 * time.Second
)

// isUnserved reports whether a create request failed because the API server does not serve the
// resource.
//
// The API server then responds with status 404 and a body in plain text. client-go reports such
// a response as an unexpected server error. For a missing object, the body is a Status instead.
func isUnserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.IsUnexpectedServerError(err)
}

// isUnservedWebhook reports whether a request failed because a program serves no webhook at the path that the
// API server calls. A program that has just started may serve it soon.
func isUnservedWebhook(err error) bool {
	return strings.Contains(err.Error(), "failed to call webhook: the server could not find the requested resource")
}

// retryUnavailable sends a request by calling the callback do. It repeats the call while the
// control plane is unavailable, for example because of a fault. It gives up after
// unavailableTimeout. It returns any other error of the callback at once.
//
// The argument repeated of the callback is false for the first request, and true for all others.
// If it is true, an earlier request may have succeeded although its response was lost.
func (u *user) retryUnavailable(ctx context.Context, do func(repeated bool) error) error {
	started := u.Clock.Now()
	for repeated := false; ; repeated = true {
		err := do(repeated)
		if !cluster.Unavailable(err) {
			return err
		}
		if isUnservedWebhook(err) && u.Clock.Since(started) >= unservedTimeout {
			return err
		}
		if u.Clock.Since(started) >= unavailableTimeout {
			return fmt.Errorf("the control plane was unavailable for %s: %w", unavailableTimeout, err)
		}
		if stopped := u.sleep(ctx, retryInterval); stopped != nil {
			return fmt.Errorf("%w; last error: %w", stopped, err)
		}
	}
}
