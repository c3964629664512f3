// Package workloop runs a controller's syncs: a queue of keys, workers that
// take them, and retries that back off.
//
// A key is never synced by two workers at once, and a key that fails holds up
// no other. Retries of one key wait 5 ms, doubling to RetryMax; until they wait so
// long, all retries of a loop share a bucket of 10 a second, burst 100. A key is never
// given up.
package workloop

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// StaleRetryDelay is how soon a sync that was put off because of a stale cache is
// tried again if no event wakes the key earlier. Trying costs no call.
const StaleRetryDelay = time.Second

// What limits retries. Those of kube-controller-manager's queues are the same, but that
// a key of theirs may wait 1000 s: after a long outage that is as long again in which
// nothing happens (kubernetes#98656).
const (
	// MaxRetryDelay is how long a key waits at most that keeps failing.
	MaxRetryDelay = time.Minute
	minRetryDelay = 5 * time.Millisecond
	retryRate     = rate.Limit(10) // a second, of all keys together
	retryBurst    = 100
)

// SyncFunc brings the object under key ("namespace/name") to where it should
// be. An error makes the key come back later: after back-off, or, when it comes
// from RetryAfter, after the delay that it names.
type SyncFunc func(ctx context.Context, key string) error

// Loop is a queue and the workers that empty it.
type Loop struct {
	name  string
	sync  SyncFunc
	queue workqueue.TypedRateLimitingInterface[string]
}

// New returns a Loop whose queue appears in metrics under name.
func New(name string, sync SyncFunc) *Loop {
	return &Loop{
		name: name,
		sync: sync,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			newRateLimiter(),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: name},
		),
	}
}

// rateLimiter says when a key that failed comes back: after a back-off of its own, and when
// the bucket of all keys lets it. A key that waits RetryMax takes nothing out of that: 600
// of them would keep it empty, and every other key would wait for them.
type rateLimiter struct {
	workqueue.TypedRateLimiter[string] // the key's own
	bucket                             *rate.Limiter
}

func newRateLimiter() workqueue.TypedRateLimiter[string] {
	return rateLimiter{
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](minRetryDelay, MaxRetryDelay),
		rate.NewLimiter(retryRate, retryBurst),
	}
}

// When implements [workqueue.TypedRateLimiter].
func (l rateLimiter) When(key string) time.Duration {
	wait := l.TypedRateLimiter.When(key)
	if wait >= MaxRetryDelay {
		return wait
	}
	return max(wait, l.bucket.Reserve().Delay())
}

// Add has key synced as soon as a worker is free. A key that waits already is
// not queued twice; one that is being synced is synced again afterwards.
func (l *Loop) Add(key string) { l.queue.Add(key) }

// AddAfter has key synced once delay has passed. Of several delays of one key
// the shortest counts.
func (l *Loop) AddAfter(key string, delay time.Duration) { l.queue.AddAfter(key, delay) }

// Run starts the workers once all of synced report true, and returns when all
// have stopped. Closing drain lets each finish the key that it holds and take no
// other; cancelling ctx, which is the context of every sync, makes them give up
// at once. A Loop runs once.
func (l *Loop) Run(ctx context.Context, drain <-chan struct{}, synced []cache.InformerSynced, workers int) {
	var running sync.WaitGroup
	stopped := make(chan struct{})
	running.Go(func() {
		select {
		case <-ctx.Done():
		case <-drain:
		}
		close(stopped)
		l.queue.ShutDown()
	})
	if cache.WaitForCacheSync(stopped, synced...) {
		klog.FromContext(ctx).Info("Caches synced, starting workers", "controller", l.name, "workers", workers)
		for range workers {
			running.Go(func() { l.work(ctx, stopped) })
		}
	}
	running.Wait()
}

// HasSynced reports whether a Loop that waits for these would start its workers.
func HasSynced(synced []cache.InformerSynced) bool {
	for _, done := range synced {
		if !done() {
			return false
		}
	}
	return true
}

func (l *Loop) work(ctx context.Context, stopped <-chan struct{}) {
	for {
		key, shutdown := l.queue.Get()
		if shutdown {
			return
		}
		select {
		case <-stopped:
			// A queue that is shut down still hands out what it has.
			l.queue.Done(key)
			return
		default:
		}
		l.process(ctx, key)
	}
}

func (l *Loop) process(ctx context.Context, key string) {
	defer l.queue.Done(key)
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "controller", l.name, "key", key)
	start := time.Now()
	err := l.sync(klog.NewContext(ctx, logger), key)
	var later *retryAfter
	switch {
	case err == nil:
		l.queue.Forget(key)
		logger.V(4).Info("Synced", "duration", time.Since(start))
	case errors.As(err, &later):
		l.queue.AddAfter(key, later.delay)
		logger.V(4).Info("Sync put off", "reason", later.reason, "delay", later.delay)
	case ctx.Err() != nil:
		logger.V(2).Info("Sync interrupted by shutdown", "err", err)
	default:
		logger.Error(err, "Sync failed, will retry", "failures", l.queue.NumRequeues(key)+1)
		l.queue.AddRateLimited(key)
	}
}

// RetryAfter returns an error for a sync that did not fail but could not be
// done yet, because of reason. It leaves the key's back-off as it was.
func RetryAfter(delay time.Duration, reason string) error {
	return &retryAfter{delay: delay, reason: reason}
}

type retryAfter struct {
	delay  time.Duration
	reason string
}

func (r *retryAfter) Error() string { return "not yet: " + r.reason }
