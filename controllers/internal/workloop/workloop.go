// Package workloop runs the syncs of a controller. It has a work queue of keys,
// workers that process the keys, and retries with exponential backoff.
//
// Two workers never sync one key at the same time, and a failing key does not delay
// other keys. Retries of one key wait 5 ms, doubling to MaxRetryDelay. Retries that
// wait less than MaxRetryDelay also share a token bucket of 10 per second with a burst
// of 100. The loop never stops retrying a key.
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

// StaleRetryDelay is the retry delay of a sync that found a stale cache. An event may
// enqueue the key earlier. A retry makes no API call.
const StaleRetryDelay = time.Second

// Retry limits. They equal those of kube-controller-manager's work queues, except that
// a key waits at most MaxRetryDelay instead of 1000 s. With 1000 s, recovery after a
// long outage can take as long as the outage (kubernetes/kubernetes#98656).
const (
	// MaxRetryDelay is the longest backoff of a failing key.
	MaxRetryDelay = time.Minute
	minRetryDelay = 5 * time.Millisecond
	retryRate     = rate.Limit(10) // per second, for all keys together
	retryBurst    = 100
)

// SyncFunc reconciles the object under key ("namespace/name"). If it returns an error,
// the loop retries the key with backoff. If the error comes from RetryAfter, the loop
// retries the key after that delay instead.
type SyncFunc func(ctx context.Context, key string) error

// Loop is a work queue and the workers that process its keys.
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

// rateLimiter delays retries by a backoff per key and by a token bucket for all keys. A
// key that waits MaxRetryDelay takes no token, because 600 such keys would keep the
// bucket empty and delay every other key.
type rateLimiter struct {
	workqueue.TypedRateLimiter[string] // backoff per key
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

// Add enqueues key. A key that is already in the queue is not added twice. A key that
// is being synced is synced again afterwards.
func (l *Loop) Add(key string) { l.queue.Add(key) }

// AddAfter enqueues key after delay. If a key has several delays, the shortest
// applies.
func (l *Loop) AddAfter(key string, delay time.Duration) { l.queue.AddAfter(key, delay) }

// Run starts the workers once every function in synced returns true, and returns when all
// workers have stopped. Closing drain lets each worker finish its current key and take no
// other. Canceling ctx, which is the context of every sync, aborts the syncs. A Loop runs
// once.
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

// HasSynced reports whether every function in synced returns true.
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
			// After ShutDown, the queue still returns the keys that it holds.
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
		logger.V(4).Info("Sync deferred", "reason", later.reason, "delay", later.delay)
	case ctx.Err() != nil:
		logger.V(2).Info("Sync aborted by shutdown", "err", err)
	default:
		logger.Error(err, "Sync failed, will retry", "failures", l.queue.NumRequeues(key)+1)
		l.queue.AddRateLimited(key)
	}
}

// RetryAfter returns an error for a sync that could not run yet, for the given reason.
// The loop retries the key after delay and leaves its backoff unchanged.
func RetryAfter(delay time.Duration, reason string) error {
	return &retryAfter{delay: delay, reason: reason}
}

type retryAfter struct {
	delay  time.Duration
	reason string
}

func (r *retryAfter) Error() string { return "sync deferred: " + r.reason }
