package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

const (
	// unavailableTimeout is how long users try again what the control plane is too much out
	// of order to do; patienceInterval is the time between two tries.
	unavailableTimeout = 2 * time.Minute
	retryInterval      = 100 * time.Millisecond
)

// retryUnavailable does something as often as the control plane is out of order, which
// faults may have brought about. Repeated is true from the second time on: the
// first may have done its work without anybody being told.
func (u *user) retryUnavailable(ctx context.Context, do func(repeated bool) error) error {
	begun := u.Clock.Now()
	for repeated := false; ; repeated = true {
		err := do(repeated)
		if !cluster.Unavailable(err) {
			return err
		}
		if u.Clock.Since(begun) >= unavailableTimeout {
			return fmt.Errorf("tried for %s: %w", unavailableTimeout, err)
		}
		if stopped := u.sleep(ctx, retryInterval); stopped != nil {
			return fmt.Errorf("%w; last: %w", stopped, err)
		}
	}
}
