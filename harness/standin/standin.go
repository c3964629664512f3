// Package standin implements the program `standin`, which the containers of workload pods run on
// real kubelets.
//
// The program does no work. It becomes ready after a delay, and exits after another delay when it
// receives SIGTERM. An HTTP request makes it unready, or makes it exit with an error. The command
// harness/cmd/standin imports only this package, because its image must be small.
package standin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Port is the TCP port on which the program serves HTTP.
const Port = 8080

// The HTTP paths that the program serves.
const (
	// Ready is the path of the readiness probe. GET returns status 200 if the container is ready
	// and 503 if not. POST makes the container ready again after POST [Unready].
	Ready = "/ready"
	// Unready is the path for POST requests that make the container unready.
	Unready = "/unready"
	// Die is the path for POST requests that make the program exit with an error.
	Die = "/die"
)

// Options has the delays of the program.
type Options struct {
	// StartDelay is the time from the start of the program until the container is
	// ready.
	StartDelay time.Duration
	// StopDelay is the time from SIGTERM until the program exits. The program continues to
	// serve requests during this time.
	StopDelay time.Duration
}

// Args returns the options as command line arguments of the program.
func (o Options) Args() []string {
	return []string{"--start-delay=" + o.StartDelay.String(), "--stop-delay=" + o.StopDelay.String()}
}

// ErrDied is the error of [Serve] after a POST request to [Die].
var ErrDied = errors.New("exiting because of a POST request to " + Die)

// shutdownTimeout is the time in which Serve lets HTTP requests in flight finish before it returns.
const shutdownTimeout = time.Second

// Serve serves HTTP requests until ctx is canceled, and then for the time o.StopDelay. It then
// returns nil. It closes the listener.
//
// After a POST request to [Die], it returns [ErrDied] without this delay.
func Serve(ctx context.Context, listener net.Listener, o Options) error {
	s := &standin{die: make(chan struct{}, 1)}
	start := time.AfterFunc(o.StartDelay, func() { s.started.Store(true) })
	defer start.Stop()
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	var err error
	select {
	case err := <-served:
		return fmt.Errorf("serving HTTP requests: %w", err)
	case <-s.die:
		err = ErrDied
	case <-ctx.Done():
		err = s.waitStopDelay(o.StopDelay)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if server.Shutdown(ctx) != nil { // a request is still in flight after shutdownTimeout
		_ = server.Close()
	}
	return err
}

// standin is the state of a running stand-in program.
type standin struct {
	started atomic.Bool   // whether the start delay has passed
	unready atomic.Bool   // whether the last POST request was to Unready, not to Ready
	die     chan struct{} // receives a value after a POST request to Die; has capacity 1
}

// waitStopDelay returns nil after the stop delay. If the program receives a POST request to Die
// during the delay, waitStopDelay returns ErrDied immediately.
func (s *standin) waitStopDelay(delay time.Duration) error {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.die:
		return ErrDied
	}
}

// handler returns the HTTP handler for the paths Ready, Unready and Die.
func (s *standin) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Ready, func(w http.ResponseWriter, _ *http.Request) {
		if !s.started.Load() || s.unready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("POST "+Ready, func(http.ResponseWriter, *http.Request) { s.unready.Store(false) })
	mux.HandleFunc("POST "+Unready, func(http.ResponseWriter, *http.Request) { s.unready.Store(true) })
	mux.HandleFunc("POST "+Die, func(http.ResponseWriter, *http.Request) {
		select {
		case s.die <- struct{}{}:
		default: // the channel already has a value of an earlier request
		}
	})
	return mux
}
