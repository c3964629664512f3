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

// TestServe follows a container through its life: it is ready after its start
// delay, not ready for as long as it is told so, and serves until the end of its stop
// delay.
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
		s.end()
		s.wait(delay - time.Second)
		s.expect(http.MethodGet, Ready, http.StatusOK)
		s.wait(2 * time.Second)
		if err := <-s.served; err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
}

// TestDie: it dies when told so, in its life and while it ends, and says that it
// will before it does.
func TestDie(t *testing.T) {
	for _, ending := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, Options{StopDelay: time.Hour})
			if ending {
				s.end()
				synctest.Wait()
			}
			begun := time.Now()
			s.expect(http.MethodPost, Die, http.StatusOK)
			if err := <-s.served; !errors.Is(err, ErrDied) || time.Since(begun) > answerWithin {
				t.Errorf("it ended with %v after %s", err, time.Since(begun))
			}
		})
	}
}

// life is one of a container.
type life struct {
	t      *testing.T
	client *http.Client
	end    context.CancelFunc
	served chan error
}

func start(t *testing.T, o Options) *life {
	pipes := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	s := &life{t: t, end: cancel, served: make(chan error, 1), client: &http.Client{
		Transport: &http.Transport{DialContext: pipes.dial, DisableKeepAlives: true},
	}}
	go func() { s.served <- Serve(ctx, pipes, o) }()
	synctest.Wait()
	return s
}

func (s *life) expect(method, path string, want int) {
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

func (s *life) wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// pipes is a listener in memory, as virtual time needs it.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }
