// Package standin is what a container of a workload does where kubelets are real:
// nothing, as the pause container, but it starts and ends as slowly as it is told,
// and it can be told over HTTP to be unready for a time, or to die. The program
// harness/cmd/standin is this package and nothing else: every pod runs one, so it
// has to be small.
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

// Port is where it listens.
const Port = 8080

// What it answers to: a GET of Ready is the readiness probe, with status 200 or
// 503. A POST tells it what to be.
const (
	Ready   = "/ready"
	Unready = "/unready"
	Die     = "/die"
)

// Options says how it starts and ends.
type Options struct {
	// StartDelay is the time from its start to its being ready.
	StartDelay time.Duration
	// StopDelay is the time from its being asked to end to its end. It goes on as
	// before meanwhile.
	StopDelay time.Duration
}

// Args are the arguments of the program for its options.
func (o Options) Args() []string {
	return []string{"--start-delay=" + o.StartDelay.String(), "--stop-delay=" + o.StopDelay.String()}
}

// ErrDied is what Serve returns when it was told to die.
var ErrDied = errors.New("told to die")

// answerWithin bounds how long an answer that is under way may hold up the end.
const answerWithin = time.Second

// Serve answers on a listener, which it closes, until ctx ends and for the stop
// delay after that.
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
		return fmt.Errorf("serving: %w", err)
	case <-s.die:
		err = ErrDied
	case <-ctx.Done():
		err = s.linger(o.StopDelay)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
	defer cancel()
	if server.Shutdown(ctx) != nil { // an answer that nobody takes
		_ = server.Close()
	}
	return err
}

// standin is a container in its life.
type standin struct {
	started, unready atomic.Bool
	die              chan struct{}
}

// linger takes its time to end, unless it is told to die.
func (s *standin) linger(delay time.Duration) error {
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
		default: // it is told already
		}
	})
	return mux
}
