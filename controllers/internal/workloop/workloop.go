// Package workloop runs the syncs of a controller. It has a work queue of keys, worker
// goroutines that sync the keys, and retries with exponential backoff. A key is the
// "namespace/name" of an object.
//
// Two workers never sync the same key at the same time. The first retry of a failing key waits
// 5 ms. Each further retry waits twice as long, up to MaxRetryDelay. The loop never gives up a key.
//
// All retries with a delay below MaxRetryDelay share a token bucket of 10 per second with a burst
// of 100. Keys that do not fail need no token, so failing keys do not delay them.
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

// StaleRetryDelay is the delay of the retry after a sync has found a stale informer cache. An
// informer event may cause an earlier sync. If the cache is still stale, the retry sends no API
// request.
const StaleRetryDelay = time.Second

// These constants limit the retries of failing keys. They equal the limits of
// kube-controller-manager's work queues, except for MaxRetryDelay.
//
// In kube-controller-manager, the maximum delay is 1000 s. Recovery after a long outage can then
// take as long as the outage (kubernetes/kubernetes#98656).
const (
	// MaxRetryDelay is the maximum delay of a retry with backoff.
	MaxRetryDelay = time.Minute
	minRetryDelay = 5 * time.Millisecond
	retryRate     = rate.Limit(10) // retries per second, for all keys together
	retryBurst    = 100
)

// SyncFunc reconciles the object with the given key, "namespace/name". After an error, the loop
// retries the key with backoff. After an error from RetryAfter, the loop retries the key after
// the delay in that error.
type SyncFunc func(ctx context.Context, key string) error

// Loop contains a work queue, and runs the workers that sync the keys in the queue.
type Loop struct {
	name  string
	sync  SyncFunc
	queue workqueue.TypedRateLimitingInterface[string]

	// BeforeWork is called once, when all event handlers have received their initial lists, and
	// before the workers start. Set it before Run. It may be nil.
	BeforeWork func()
}

// New returns a Loop. To sync a key, the Loop calls the argument sync. The argument name is the
// name of the work queue in metrics.
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

// rateLimiter determines the delay of a retry. The delay is the backoff of the key, or longer if
// the token bucket of all keys is empty.
//
// A retry with a delay of MaxRetryDelay takes no token. Otherwise, 600 such keys, with one retry
// per minute each, would use all 10 tokens per second. The retries of all other keys would then
// wait.
type rateLimiter struct {
	workqueue.TypedRateLimiter[string] // computes the backoff of each key
	bucket                             *rate.Limiter
}

// newRateLimiter returns the rate limiter for the retries of one Loop.
func newRateLimiter() workqueue.TypedRateLimiter[string] {
	return rateLimiter{
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](minRetryDelay, MaxRetryDelay),
		rate.NewLimiter(retryRate, retryBurst),
	}
}

// When returns the delay before the next retry of key. It implements
// [workqueue.TypedRateLimiter].
func (l rateLimiter) When(key string) time.Duration {
	wait := l.TypedRateLimiter.When(key)
	if wait >= MaxRetryDelay {
		return wait
	}
	return max(wait, l.bucket.Reserve().Delay())
}

// Add adds a key to the work queue. It does nothing if the key is already in the queue. If a
// worker is syncing the key, the key is synced once more afterwards.
func (l *Loop) Add(key string) { l.queue.Add(key) }

// AddAfter adds a key to the work queue after a delay. Of several calls for a key, the earliest
// time counts.
func (l *Loop) AddAfter(key string, delay time.Duration) { l.queue.AddAfter(key, delay) }

// Run starts the workers when all event handlers have received their initial lists. The argument
// synced is the result of AddEventHandlers. Run returns when all workers have stopped. Call Run
// only once.
//
// After the caller closes the channel drain, each worker finishes its current sync and starts no
// other. All syncs use ctx. If the caller cancels ctx, the current syncs are aborted, and the
// workers stop.
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
		if l.BeforeWork != nil {
			l.BeforeWork()
		}
		for range workers {
			running.Go(func() { l.work(ctx, stopped) })
		}
	}
	running.Wait()
}

// HasSynced reports whether all event handlers have received their initial lists. The argument
// synced is the result of AddEventHandlers.
func HasSynced(synced []cache.InformerSynced) bool {
	for _, done := range synced {
		if !done() {
			return false
		}
	}
	return true
}

// work syncs keys from the work queue until the queue is shut down, or the channel stopped is
// closed.
func (l *Loop) work(ctx context.Context, stopped <-chan struct{}) {
	for {
		key, shutdown := l.queue.Get()
		if shutdown {
			return
		}
		select {
		case <-stopped:
			// After ShutDown, Get still returns the keys that are in the queue.
			l.queue.Done(key)
			return
		default:
		}
		l.process(ctx, key)
	}
}

// process syncs one key. If a retry is necessary, process adds the key to the work queue again.
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
		logger.V(4).Info("Sync deferred", "reason", later.reason, "delay", later.delay)
	case ctx.Err() != nil:
		logger.V(2).Info("Sync aborted by shutdown", "err", err)
	default:
		logger.Error(err, "Sync failed, will retry", "failures", l.queue.NumRequeues(key)+1)
		l.queue.AddRateLimited(key)
	}
}

// RetryAfter returns an error that a SyncFunc returns if the sync cannot run yet. The loop retries
// the key after the given delay, and does not change the backoff of the key. The log contains the
// reason.
func RetryAfter(delay time.Duration, reason string) error {
	return &retryAfter{delay: delay, reason: reason}
}

// retryAfter is the error that RetryAfter returns. It tells the loop how long to wait before the
// retry, and the reason for the log.
type retryAfter struct {
	delay  time.Duration
	reason string
}

func (r *retryAfter) Error() string { return "sync deferred: " + r.reason }
