package standin

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestArgs(t *testing.T) {
	want := []string{"--start-delay=1.5s", "--stop-delay=0s"}
	if diff := cmp.Diff(want, Options{StartDelay: 1500 * time.Millisecond}.Args()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestServe checks the readiness during and after the start delay, and during the stop delay. It
// also checks the effect of POST requests to Unready and Ready.
func TestServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = time.Minute
		s := start(t, Options{StartDelay: delay, StopDelay: delay})
		s.expect(http.MethodGet, Ready, http.StatusServiceUnavailable)
		s.wait(delay)
		s.expect(http.MethodGet, Ready, http.StatusOK)
		s.expect(http.MethodPost, Unready, http.StatusOK)
		s.expect(http.MethodGet, Ready, http.StatusServiceUnavailable)
		s.expect(http.MethodPost, Ready, http.StatusOK)
		s.expect(http.MethodGet, Ready, http.StatusOK)
		s.expect(http.MethodGet, "/", http.StatusNotFound)
		s.terminate()
		s.wait(delay - time.Second)
		s.expect(http.MethodGet, Ready, http.StatusOK)
		s.wait(2 * time.Second)
		if err := <-s.served; err != nil {
			t.Errorf("Serve() = %v, want no error", err)
		}
	})
}

// TestDie checks that Serve responds to a POST request to Die and then returns ErrDied. During the
// stop delay, Serve must do the same.
func TestDie(t *testing.T) {
	for _, terminating := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, Options{StopDelay: time.Hour})
			if terminating {
				s.terminate()
				synctest.Wait()
			}
			started := time.Now()
			s.expect(http.MethodPost, Die, http.StatusOK)
			if err := <-s.served; !errors.Is(err, ErrDied) || time.Since(started) > shutdownTimeout {
				t.Errorf("Serve() = %v after %s, want %v within %s", err, time.Since(started), ErrDied, shutdownTimeout)
			}
		})
	}
}

// testServer runs Serve in a goroutine, and has an HTTP client for it.
type testServer struct {
	t         *testing.T
	client    *http.Client
	terminate context.CancelFunc
	served    chan error // receives the error that Serve returns
}

func start(t *testing.T, o Options) *testServer {
	listener := &memoryListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	s := &testServer{t: t, terminate: cancel, served: make(chan error, 1), client: &http.Client{
		Transport: &http.Transport{DialContext: listener.dial, DisableKeepAlives: true},
	}}
	go func() { s.served <- Serve(ctx, listener, o) }()
	synctest.Wait()
	return s
}

func (s *testServer) expect(method, path string, want int) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, "http://standin"+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != want {
		s.t.Errorf("%s %s: %s, want %d", method, path, response.Status, want)
	}
}

func (s *testServer) wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// memoryListener is a net.Listener in memory, without sockets. The virtual time of
// testing/synctest does not advance while a goroutine waits for a socket.
type memoryListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	close(l.closed)
	return nil
}

func (l *memoryListener) Addr() net.Addr { return &net.UnixAddr{} }
