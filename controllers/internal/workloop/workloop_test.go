package workloop

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"
)

// start runs a Loop in a synctest bubble. The returned function closes drain and waits until the
// Loop has stopped.
func start(ctx context.Context, loop *Loop, workers int) (stop func()) {
	drain, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		loop.Run(ctx, drain, nil, workers)
	}()
	return func() {
		close(drain)
		<-done
		time.Sleep(time.Minute) // wait until the queue's goroutines have ended, at their next tick
	}
}

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var at []time.Duration
		loop := New("test", func(context.Context, string) error {
			at = append(at, time.Since(begin))
			return errors.New("no")
		})
		loop.Add("ns/a")
		stop := start(t.Context(), loop, 5)
		time.Sleep(24 * time.Hour)
		stop()
		if len(at) < 40 {
			t.Fatalf("%d syncs in a day, want at least 40", len(at))
		}
		for i, wait := 1, 5*time.Millisecond; i < len(at); i, wait = i+1, min(2*wait, MaxRetryDelay) {
			if got := at[i] - at[i-1]; got != wait {
				t.Fatalf("retry %d after %s, want %s", i, got, wait)
			}
		}
	})
}

// TestManyFailingKeys checks that many failing keys do not delay a key that does not fail.
func TestManyFailingKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		loop := New("test", func(_ context.Context, key string) error {
			if key == "ns/other" {
				if at = append(at, time.Now()); len(at) > 1 {
					return nil
				}
			}
			return errors.New("no")
		})
		stop := start(t.Context(), loop, 5)
		for i := range 1000 {
			loop.Add(fmt.Sprintf("ns/%d", i))
		}
		time.Sleep(time.Hour)
		loop.Add("ns/other")
		time.Sleep(MaxRetryDelay)
		stop()
		if len(at) < 2 || at[1].Sub(at[0]) > time.Second {
			t.Errorf("synced at %v, want a second time within a second", at)
		}
	})
}

func TestSuccessResetsBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var at []time.Duration
		loop := New("test", func(context.Context, string) error {
			at = append(at, time.Since(begin))
			if len(at) == 3 || len(at) == 5 {
				return nil
			}
			return errors.New("no")
		})
		loop.Add("ns/a")
		stop := start(t.Context(), loop, 1)
		time.Sleep(time.Second)
		loop.Add("ns/a")
		time.Sleep(time.Second)
		stop()
		ms := time.Millisecond
		want := []time.Duration{0, 5 * ms, 15 * ms, 1000 * ms, 1005 * ms}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("syncs (-want +got):\n%s", diff)
		}
	})
}

func TestRetryAfterKeepsBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		outcomes := []error{errors.New("no"), RetryAfter(time.Second, "stale"), RetryAfter(time.Second, "stale"), errors.New("no"), nil}
		var at []time.Duration
		loop := New("test", func(context.Context, string) error {
			at = append(at, time.Since(begin))
			return outcomes[len(at)-1]
		})
		loop.Add("ns/a")
		stop := start(t.Context(), loop, 1)
		time.Sleep(time.Minute)
		stop()
		ms := time.Millisecond
		if diff := cmp.Diff([]time.Duration{0, 5 * ms, 1005 * ms, 2005 * ms, 2015 * ms}, at); diff != "" {
			t.Errorf("syncs (-want +got):\n%s", diff)
		}
	})
}

func TestOneSyncPerKeyAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, most, syncs := 0, 0, 0
		other := 0
		loop := New("test", func(_ context.Context, key string) error {
			if key == "ns/other" {
				other++
				return nil
			}
			running++
			syncs++
			most = max(most, running)
			time.Sleep(time.Second)
			running--
			return nil
		})
		stop := start(t.Context(), loop, 2)
		for range 3 {
			loop.Add("ns/a")
			synctest.Wait()
		}
		loop.Add("ns/other")
		synctest.Wait()
		if other != 1 {
			t.Error("another key was delayed")
		}
		time.Sleep(time.Minute)
		stop()
		if most != 1 || syncs != 2 {
			t.Errorf("%d syncs, %d concurrent; want 2 (one for all events during the first), 1 concurrent", syncs, most)
		}
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var finished []string
		loop := New("test", func(ctx context.Context, key string) error {
			time.Sleep(time.Second)
			if err := ctx.Err(); err != nil {
				return err
			}
			finished = append(finished, key)
			return nil
		})
		loop.Add("ns/held")
		loop.Add("ns/waiting")
		stop := start(t.Context(), loop, 1)
		synctest.Wait()
		stop()
		if diff := cmp.Diff([]string{"ns/held"}, finished); diff != "" {
			t.Errorf("finished while draining (-want +got):\n%s", diff)
		}
	})
}

func TestCancelAbortsSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		loop := New("test", func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() })
		loop.Add("ns/a")
		stop := start(ctx, loop, 1)
		synctest.Wait()
		cancel()
		stop() // returns only after the worker has stopped
	})
}

func TestWaitsForCacheSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var synced atomic.Bool
		var syncs atomic.Int64
		loop := New("test", func(context.Context, string) error { syncs.Add(1); return nil })
		loop.Add("ns/a")
		drain, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			loop.Run(t.Context(), drain, []cache.InformerSynced{synced.Load}, 1)
		}()
		time.Sleep(time.Hour)
		if syncs.Load() != 0 {
			t.Error("synced before the caches")
		}
		synced.Store(true)
		time.Sleep(time.Second)
		if got := syncs.Load(); got != 1 {
			t.Errorf("%d syncs once the caches were synced, want 1", got)
		}
		close(drain)
		<-done
		time.Sleep(time.Minute)
	})
}
