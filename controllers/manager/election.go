package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// ErrLeaseLost is the error of a process that has not renewed the lease in time. Another replica
// may already be the leader, so the process must exit.
var ErrLeaseLost = errors.New("leader election lost: the lease was not renewed in time")

// releaseTimeout is the maximum time for the release of the lease. If the release fails, the
// next leader must wait until the lease expires.
const releaseTimeout = 3 * time.Second

// leaderFunc is the work that a process does while it holds the lease. It returns after the channel
// drain is closed and the current syncs have finished, or after ctx is canceled.
type leaderFunc func(ctx context.Context, drain <-chan struct{}) error

// runWhenElected waits until this process holds the lease, and then calls the callback work. It
// emits events about the lease.
//
// After ctx is done and work has returned, runWhenElected releases the lease and returns nil. If
// this process loses the lease, it returns ErrLeaseLost. If work returns an error, runWhenElected
// returns this error and does not release the lease.
func runWhenElected(ctx context.Context, client kubernetes.Interface, options LeaderElectionOptions, events record.EventRecorder, watchdog *leaderelection.HealthzAdaptor, work leaderFunc) error {
	lock, err := newLock(client, options, events)
	if err != nil {
		return err
	}
	// Renew the lease until work has returned. The function work returns some time after ctx is
	// done.
	holding, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	elected := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: options.LeaseDuration,
		RenewDeadline: options.RenewDeadline,
		RetryPeriod:   options.RetryPeriod,
		WatchDog:      watchdog,
		Name:          options.ResourceName,
		// Do not set ReleaseOnCancel: client-go would try to release a lost lease
		// before it reports the loss. Another replica may hold the lease by then.
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { elected <- leading },
			OnStoppedLeading: func() {},
			OnNewLeader: func(identity string) {
				klog.FromContext(ctx).Info("Leader elected", "lease", lock.Describe(), "leader", identity, "self", identity == lock.Identity())
			},
		},
	})
	if err != nil {
		return fmt.Errorf("creating the leader elector: %w", err)
	}
	watchdog.SetLeaderElection(elector)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(holding)
	}()

	select {
	case <-ctx.Done():
	case leading := <-elected:
		workErr := work(leading, ctx.Done())
		if leading.Err() != nil {
			return ErrLeaseLost
		}
		if workErr != nil {
			// Workers may still be running, so the lease must expire.
			return workErr
		}
	}
	stop()
	<-ended
	releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := release(releasing, lock); err != nil {
		klog.FromContext(ctx).Error(err, "Releasing the lease failed, so the next leader must wait until the lease expires", "lease", lock.Describe())
	}
	return nil
}

// newLock returns a client-go lock for the lease. Its identity is unique to this process.
func newLock(client kubernetes.Interface, options LeaderElectionOptions, events record.EventRecorder) (resourcelock.Interface, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host name for the leader-election identity: %w", err)
	}
	// The identity must differ between two processes on one host.
	identity := host + "_" + string(uuid.NewUUID())
	lock, err := resourcelock.New(options.ResourceLock, options.ResourceNamespace, options.ResourceName,
		client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity, EventRecorder: events})
	if err != nil {
		return nil, fmt.Errorf("creating the lock for leader election: %w", err)
	}
	return lock, nil
}

// release releases the lease if this process holds it. A renewal may still be in flight and
// cause a conflict. release therefore retries until it succeeds or ctx is done.
func release(ctx context.Context, lock resourcelock.Interface) error {
	for {
		err := tryRelease(ctx, lock)
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// tryRelease makes one attempt to release the lease. It does nothing if another process holds
// the lease.
func tryRelease(ctx context.Context, lock resourcelock.Interface) error {
	record, _, err := lock.Get(ctx)
	if err != nil {
		return fmt.Errorf("reading lease %s: %w", lock.Describe(), err)
	}
	if record.HolderIdentity != lock.Identity() {
		return nil
	}
	now := metav1.Now()
	err = lock.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaseDurationSeconds: 1,
		AcquireTime:          now,
		RenewTime:            now,
		LeaderTransitions:    record.LeaderTransitions,
	})
	if err != nil {
		return fmt.Errorf("releasing lease %s: %w", lock.Describe(), err)
	}
	return nil
}
