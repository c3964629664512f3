package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// profileTime is the duration of one CPU profile. "go tool pprof" merges the profiles of a run.
const profileTime = 5 * time.Second

// startProfiles writes CPU profiles of the subject to the directory in BENCH_PROFILE, one after
// another. The file names have the load and the subject. It does nothing if the variable is not
// set. The caller must call stop, which also waits for the last profile.
func (r *run) startProfiles(ctx context.Context, l load, target subject.Target) (stop func() error) {
	dir := os.Getenv(profileVariable)
	if dir == "" {
		return func() error { return nil }
	}
	done, result := make(chan struct{}), make(chan error, 1)
	go func() {
		prefix := fmt.Sprintf("%s-%s-%d", l.name(), target, time.Now().Unix())
		var err error
		for i := 1; err == nil; i++ {
			select {
			case <-done:
				result <- nil
				return
			default:
				err = r.writeProfile(ctx, filepath.Join(dir, fmt.Sprintf("%s-%d.pprof", prefix, i)))
			}
		}
		result <- fmt.Errorf("profiling the subject: %w", err)
	}()
	return func() error { close(done); return <-result }
}

// writeProfile writes one CPU profile of the subject to a file.
func (r *run) writeProfile(ctx context.Context, file string) error {
	path := fmt.Sprintf("/debug/pprof/profile?seconds=%.0f", profileTime.Seconds())
	profile, err := r.Subject.Fetch(ctx, r.Subject.Replicas()[0], path)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, profile, 0o644))
}
