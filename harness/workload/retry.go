package workload

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

const (
	// unavailableTimeout is how long a request is retried while the control plane is
	// unavailable.
	unavailableTimeout = 2 * time.Minute
	// retryInterval is the time between two attempts.
	retryInterval = 100 * time.Millisecond
	// unservedTimeout is how long a create is retried while the API server does not serve
	// the resource yet.
	unservedTimeout = 10 * time.Second
)

// isUnserved reports whether a create failed because the API server does not serve the
// resource.
//
// The response is then a 404 with a body in plain text, which client-go reports as an
// unexpected server error. For a missing object, the body of the 404 is a Status.
func isUnserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.IsUnexpectedServerError(err)
}

// retryUnavailable sends a request, and repeats it while the control plane is unavailable, for
// example because of a fault.
//
// The argument repeated of do is true from the second call on. The first request may then have
// succeeded although its response was lost.
func (u *user) retryUnavailable(ctx context.Context, do func(repeated bool) error) error {
	started := u.Clock.Now()
	for repeated := false; ; repeated = true {
		err := do(repeated)
		if !cluster.Unavailable(err) {
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
