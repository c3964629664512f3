// Package standin implements the program `standin`. On real kubelets, the containers of workload
// pods run this program instead of an application.
//
// The program does no work. It becomes ready after a delay. After SIGTERM, it exits after another
// delay. An HTTP request can make the program unready, or make it exit with an error. The command
// harness/cmd/standin imports only this package, because the program's image must be small.
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

// These are the HTTP paths that the program standin serves. With them, a fault makes the container
// unready, or makes it exit.
const (
	// Ready is the path of the readiness probe. GET returns status 200 if the container is
	// ready, and 503 otherwise. POST makes the container ready again after a POST to [Unready].
	Ready = "/ready"
	// Unready is the path whose POST requests make the container unready.
	Unready = "/unready"
	// Die is the path whose POST requests make the program exit with an error.
	Die = "/die"
)

// Options contains the delays of the program at its start and at its end.
type Options struct {
	// StartDelay is the time from the start of the program until the container is ready.
	StartDelay time.Duration
	// StopDelay is the time from SIGTERM until the program exits. During this time, the program
	// still serves requests.
	StopDelay time.Duration
}

// Args returns the options as command line arguments of the program.
func (o Options) Args() []string {
	return []string{"--start-delay=" + o.StartDelay.String(), "--stop-delay=" + o.StopDelay.String()}
}

// ErrDied is the error that [Serve] returns after a POST request to the path [Die]. A fault
// sends this request to make the container exit.
var ErrDied = errors.New("stand-in: exiting because of a POST request to " + Die)

// shutdownTimeout is the maximum time that Serve waits for HTTP requests in flight before it
// returns.
const shutdownTimeout = time.Second

// Serve serves HTTP requests until ctx is canceled, and then for another o.StopDelay. It then
// returns nil. Serve always closes the listener.
//
// After a POST request to [Die], Serve returns [ErrDied] without waiting for o.StopDelay.
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
		return fmt.Errorf("stand-in: serving HTTP requests on %s: %w", listener.Addr(), err)
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

// standin is the state of the running program standin, which replaces the application in the pods
// of a workload.
type standin struct {
	started atomic.Bool   // true after the time StartDelay has passed
	unready atomic.Bool   // true after a POST to Unready, until the next POST to Ready
	die     chan struct{} // receives a value after a POST to Die; its capacity is 1
}

// waitStopDelay waits for the stop delay and returns nil. If a POST request to Die arrives
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
