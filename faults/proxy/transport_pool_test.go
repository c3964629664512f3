package proxy

import (
	"net"
	"net/http"
	"sync"
	"testing"

	"k8s.io/utils/clock"
)

// TestBurstOpensConnectionsWhenFull sends more concurrent requests than one connection can
// carry. No request may wait for another request. The pool may open a connection only when all
// its connections are full.
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
	case <-all: // the API server has received every request and answered none
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
		t.Errorf("%d concurrent requests on one connection, want at most %d", most, streamsPerConn)
	}
	// A transport may dial more than once if its first requests arrive at the same time.
	if len(under) < 4 {
		t.Errorf("%d concurrent requests on %d connections, want at least 4", requests, len(under))
	}
}

func TestPoolReusesConnections(t *testing.T) {
	l := transportPool{newTransport: func() *http.Transport { return &http.Transport{} }}
	var taken []*pooledTransport
	for range streamsPerConn + 1 {
		taken = append(taken, l.acquire())
	}
	if first, last := taken[0], taken[streamsPerConn]; first == last || taken[streamsPerConn-1] != first {
		t.Error("expected a second transport only after the first is full")
	}
	l.release(taken[0])
	if l.acquire() != taken[0] {
		t.Error("expected the released stream to be used again")
	}
	if len(l.all) != 2 {
		t.Errorf("%d transports, want 2", len(l.all))
	}
}
