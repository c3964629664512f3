package workload

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

const (
	// unavailableTimeout bounds the retries of a request while the control plane is
	// unavailable. retryInterval is the time between two attempts.
	unavailableTimeout = 2 * time.Minute
	retryInterval      = 100 * time.Millisecond
	// unservedTimeout bounds the retries of a create of a custom resource that the API
	// server does not serve yet.
	unservedTimeout = 10 * time.Second
)

// isUnserved reports whether the API server has no such resource. Its response then is plain
// text, unlike the response for a missing object.
func isUnserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.IsUnexpectedServerError(err)
}

// retryUnavailable repeats a request while the control plane is unavailable, for
// example because of a fault. From the second call on, repeated is true, because an
// earlier request may have succeeded although its response was lost.
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
