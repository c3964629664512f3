package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

const (
	// patience is how long users try again what the control plane is too much out
	// of order to do; patienceInterval is the time between two tries.
	patience         = 2 * time.Minute
	patienceInterval = 100 * time.Millisecond
)

// persist does something as often as the control plane is out of order, which
// faults may have brought about. Repeated is true from the second time on: the
// first may have done its work without anybody being told.
func (u *user) persist(ctx context.Context, do func(repeated bool) error) error {
	begun := u.Clock.Now()
	for repeated := false; ; repeated = true {
		err := do(repeated)
		if !cluster.Unavailable(err) {
			return err
		}
		if u.Clock.Since(begun) >= patience {
			return fmt.Errorf("tried for %s: %w", patience, err)
		}
		if stopped := u.sleep(ctx, patienceInterval); stopped != nil {
			return fmt.Errorf("%w; last: %w", stopped, err)
		}
	}
}
