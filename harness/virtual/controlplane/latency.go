package controlplane

import (
	"math/rand/v2"
	"net/http"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"
)

// latencyMax is the maximum time between the arrival of a request and its execution. Without
// latency, the virtual clock would not advance between requests. Names of Events would then
// collide, because controllers derive them from the time.
const latencyMax = 2 * time.Millisecond

// latency delays each request by a random time, which depends on the seed. Before some requests, it
// also runs the Go garbage collector, which takes no virtual time.
type latency struct {
	mu      sync.Mutex
	random  *rand.Rand
	garbage *collector
}

func newLatency(seed uint64) *latency {
	return &latency{random: rand.New(rand.NewPCG(seed, 0)), garbage: newCollector()}
}

// before returns a handler that delays each request to the handler next.
func (l *latency) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		delay := l.random.Int64N(int64(latencyMax))
		collect := l.garbage.due()
		l.mu.Unlock()
		time.Sleep(time.Duration(delay))
		if collect {
			runtime.GC()
		}
		next.ServeHTTP(w, r)
	})
}

// collector decides when to collect garbage. The program runs with GOGC=off, because the Go runtime
// starts its collections by real time. Runs with the same seed could then have different histories.
type collector struct {
	requests  int
	collected uint64 // number of bytes that the program had allocated at the last collection
	allocated []metrics.Sample
}

const (
	// collectBytes is the number of bytes that the program allocates between two collections.
	collectBytes = 128 << 20
	// collectRequests is the number of requests after which the collector reads the allocated bytes.
	collectRequests = 20
)

func newCollector() *collector {
	return &collector{allocated: []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}}
}

// due counts a request, and reports whether to collect garbage now.
func (c *collector) due() bool {
	c.requests++
	if c.requests%collectRequests != 0 {
		return false
	}
	metrics.Read(c.allocated)
	bytes := c.allocated[0].Value.Uint64()
	if bytes-c.collected < collectBytes {
		return false
	}
	c.collected = bytes
	return true
}
