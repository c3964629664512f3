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

// ErrLeaseLost means that the lease could not be renewed in time. Somebody else
// may be at work already, so the process must end.
var ErrLeaseLost = errors.New("the leader election lease was lost")

// releaseTimeout bounds giving the lease back. When it is not enough, the next
// leader waits for the lease to expire.
const releaseTimeout = 3 * time.Second

// leaderFunc is the work of a leader. It ends when drain is closed and what was begun
// is done, or at once when ctx is cancelled.
type leaderFunc func(ctx context.Context, drain <-chan struct{}) error

// runWhenElected waits for the lease and does the work while it holds it. It returns nil
// when ctx is done and the work drained, with the lease released, and
// ErrLeaseLost when it lost that.
// Events about the lease say who leads, and who no longer does.
func runWhenElected(ctx context.Context, client kubernetes.Interface, options LeaderElectionOptions, events record.EventRecorder, watchdog *leaderelection.HealthzAdaptor, work leaderFunc) error {
	lock, err := newLock(client, options, events)
	if err != nil {
		return err
	}
	// The lease is renewed until the work has drained, which is after ctx ends.
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
		// Not ReleaseOnCancel: with it a lost lease is reported only after an
		// attempt to release it, by when it may be somebody else's.
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { elected <- leading },
			OnStoppedLeading: func() {},
			OnNewLeader: func(identity string) {
				klog.FromContext(ctx).Info("Leader elected", "lease", lock.Describe(), "leader", identity, "self", identity == lock.Identity())
			},
		},
	})
	if err != nil {
		return fmt.Errorf("preparing leader election: %w", err)
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
			// Something may still be at work: the lease has to expire.
			return workErr
		}
	}
	stop()
	<-ended
	releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := release(releasing, lock); err != nil {
		klog.FromContext(ctx).Error(err, "The lease was not released, the next leader will wait for it to expire", "lease", lock.Describe())
	}
	return nil
}

func newLock(client kubernetes.Interface, options LeaderElectionOptions, events record.EventRecorder) (resourcelock.Interface, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("finding an identity for leader election: %w", err)
	}
	// Two processes of one host must not take each other for themselves.
	identity := host + "_" + string(uuid.NewUUID())
	lock, err := resourcelock.New(options.ResourceLock, options.ResourceNamespace, options.ResourceName,
		client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity, EventRecorder: events})
	if err != nil {
		return nil, fmt.Errorf("preparing the lease: %w", err)
	}
	return lock, nil
}

// release gives the lease back if this process holds it. A renewal whose
// response nobody waited for may get in between, so it tries until ctx is done.
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
