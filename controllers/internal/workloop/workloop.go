// Package workloop runs the syncs of a controller. It has a work queue of keys, worker
// goroutines that sync the keys, and retries with exponential backoff.
//
// Two workers never sync the same key at the same time. A failing key does not delay other
// keys. The first retry of a key waits 5 ms, and each further retry twice as long, up to
// MaxRetryDelay. All retries with a shorter delay share a token bucket of 10 per second with a
// burst of 100. The loop never gives up a key.
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

// StaleRetryDelay is the time after which a sync that found a stale cache is retried. An event
// may cause a sync earlier. The retry makes no API call while the cache is still stale.
const StaleRetryDelay = time.Second

// These are the limits of retries. They equal those of kube-controller-manager's work queues,
// except for MaxRetryDelay.
//
// Upstream's maximum is 1000 s, so recovery after a long outage can take as long as the outage
// (kubernetes/kubernetes#98656).
const (
	// MaxRetryDelay is the maximum delay of a retry.
	MaxRetryDelay = time.Minute
	minRetryDelay = 5 * time.Millisecond
	retryRate     = rate.Limit(10) // per second, for all keys together
	retryBurst    = 100
)

// SyncFunc reconciles the object with the given key, "namespace/name". If it returns an error,
// the loop retries the key with backoff. After an error from RetryAfter, the loop retries the
// key after the given delay instead.
type SyncFunc func(ctx context.Context, key string) error

// Loop is a work queue with the workers that sync its keys.
type Loop struct {
	name  string
	sync  SyncFunc
	queue workqueue.TypedRateLimitingInterface[string]
}

// New returns a Loop whose work queue has the given name in metrics.
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

// rateLimiter delays a retry by the backoff of its key and by a token bucket for all keys.
//
// A retry with a delay of MaxRetryDelay takes no token. Otherwise, 600 such keys would keep the
// bucket empty and delay all other keys.
type rateLimiter struct {
	workqueue.TypedRateLimiter[string] // backoff per key
	bucket                             *rate.Limiter
}

// newRateLimiter returns the rate limiter for the retries of one loop.
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

// Add adds a key to the queue. A key that is already in the queue is not added twice. A key
// that is being synced is synced again afterwards.
func (l *Loop) Add(key string) { l.queue.Add(key) }

// AddAfter adds a key to the queue after a delay. If it was called several times for a key, the
// earliest time counts.
func (l *Loop) AddAfter(key string, delay time.Duration) { l.queue.AddAfter(key, delay) }

// Run starts the workers when all functions in synced return true. It returns when all workers
// have stopped. It can be called once.
//
// After drain is closed, each worker finishes its current sync and starts no other. The context
// of all syncs is ctx; if it is canceled, the syncs are aborted.
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

// HasSynced reports whether all functions in synced return true.
func HasSynced(synced []cache.InformerSynced) bool {
	for _, done := range synced {
		if !done() {
			return false
		}
	}
	return true
}

// work syncs keys from the queue until the queue is shut down.
func (l *Loop) work(ctx context.Context, stopped <-chan struct{}) {
	for {
		key, shutdown := l.queue.Get()
		if shutdown {
			return
		}
		select {
		case <-stopped:
			// The queue still returns its keys after ShutDown.
			l.queue.Done(key)
			return
		default:
		}
		l.process(ctx, key)
	}
}

// process syncs one key and schedules the retry, if one is necessary.
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

// RetryAfter returns an error for a sync that cannot run yet, for the given reason. The loop
// retries the key after delay, without a change of its backoff.
func RetryAfter(delay time.Duration, reason string) error {
	return &retryAfter{delay: delay, reason: reason}
}

// retryAfter is the error that RetryAfter returns.
type retryAfter struct {
	delay  time.Duration
	reason string
}

func (r *retryAfter) Error() string { return "sync deferred: " + r.reason }
