package proxy

import (
	"net"
	"net/http"
	"sync"
	"testing"

	"k8s.io/utils/clock"
)

// TestBurstOpensConnectionsWhenFull sends far more requests at once than a connection to the API server
// carries: none waits for another, and a new connection is opened only when the
// ones there are full.
func TestBurstOpensConnectionsWhenFull(t *testing.T) {
	const requests = 4*streamsPerConn - 20
	var mu sync.Mutex
	under := map[net.Conn]int{}
	total, most := 0, 0
	all, proceed := make(chan struct{}), make(chan struct{})
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := r.Context().Value(connKey{}).(net.Conn)
		mu.Lock()
		under[conn]++
		most = max(most, under[conn])
		if total++; total == requests {
			close(all)
		}
		mu.Unlock()
		<-proceed
		respond(w, r, http.StatusCreated, pod("web", 3))
	}))
	client := f.client(t, contentTypes["protobuf"])
	var creates sync.WaitGroup
	failed := make(chan error, requests)
	for range requests {
		creates.Go(func() {
			if err := createOnce(t.Context(), client); err != nil {
				failed <- err
			}
		})
	}
	select {
	case <-all: // every one is at the API server, though none has been answered
	case err := <-failed:
		t.Error(err)
	}
	close(proceed)
	creates.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	if most > streamsPerConn {
		t.Errorf("%d requests at a time over one connection, want %d at most", most, streamsPerConn)
	}
	// A lane whose first requests come all at once may dial more than once.
	if len(under) < 4 {
		t.Errorf("%d requests at a time over %d connections, want 4 at least", requests, len(under))
	}
}

func TestPoolReusesConnections(t *testing.T) {
	l := transportPool{newTransport: func() *http.Transport { return &http.Transport{} }}
	var taken []*pooledTransport
	for range streamsPerConn + 1 {
		taken = append(taken, l.acquire())
	}
	if first, last := taken[0], taken[streamsPerConn]; first == last || taken[streamsPerConn-1] != first {
		t.Error("want a second lane once the first is full, and not before")
	}
	l.release(taken[0])
	if l.acquire() != taken[0] {
		t.Error("want the place that was left to be taken again")
	}
	if len(l.all) != 2 {
		t.Errorf("%d lanes, want 2", len(l.all))
	}
}
