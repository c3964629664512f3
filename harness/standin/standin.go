// Package standin is the program that workload containers run on real kubelets.
//
// It does no work. It delays its readiness and its termination as configured, and an
// HTTP request makes it unready or makes it exit. The command harness/cmd/standin
// contains only this package, because every pod runs it and it has to be small.
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

// Port is the TCP port that the program listens on.
const Port = 8080

// The HTTP paths that the program serves.
const (
	// Ready is the path of the readiness probe. GET returns status 200 if the container
	// is ready and 503 if not. POST makes the container ready again after Unready.
	Ready = "/ready"
	// Unready makes the container unready. Its method is POST.
	Unready = "/unready"
	// Die makes the program exit with an error. Its method is POST.
	Die = "/die"
)

// Options are the settings of the program.
type Options struct {
	// StartDelay is the time from the start of the program until the container is
	// ready.
	StartDelay time.Duration
	// StopDelay is the time from SIGTERM until the program exits. The program continues to
	// serve requests during this time.
	StopDelay time.Duration
}

// Args returns the command line arguments of the program for these options.
func (o Options) Args() []string {
	return []string{"--start-delay=" + o.StartDelay.String(), "--stop-delay=" + o.StopDelay.String()}
}

// ErrDied is the error that Serve returns after a POST request to Die.
var ErrDied = errors.New("exiting because of a POST request to " + Die)

// shutdownTimeout is the time that HTTP requests in flight have to finish before Serve
// returns.
const shutdownTimeout = time.Second

// Serve serves HTTP requests until ctx is canceled and the stop delay has passed.
// It closes the listener.
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
	if server.Shutdown(ctx) != nil { // a client does not read its response
		_ = server.Close()
	}
	return err
}

// standin is the state of a running program.
type standin struct {
	started, unready atomic.Bool
	die              chan struct{}
}

// waitStopDelay waits for the stop delay. It returns ErrDied early after a request to Die.
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
		default: // an earlier request is pending
		}
	})
	return mux
}
