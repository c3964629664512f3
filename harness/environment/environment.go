// Package environment sets up what a run stands on, and tears it down. Runs, standing
// clusters, the conformance suite and Go programs use it. The parts are set up in this
// order; all but the first are optional:
//
//	Start         the control plane of a provider
//	Record        the namespace of the workload, the history and the observer
//	StartProxy    the fault proxy between the subject and the API server
//	StartSubject  the controllers under test
//
// Inject then injects single faults, and package run runs whole scenarios. Stop stops
// everything in reverse order. No process, directory or cluster outlives the program, even
// if it is killed, unless Options.ControlPlane.Standing is set.
package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults/proxy"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/harness/workload"
)

// Namespace is the namespace of the workload.
const Namespace = existing.Namespace

// Options says which control plane to start.
type Options struct {
	// Provider is one of providers.Names(); "" means the default.
	Provider string
	// ControlPlane says what the provider starts. Start sets its directories.
	ControlPlane providers.Options
	// StateDir is the directory for credentials and databases. Start creates it, and Stop
	// removes it. If it is empty, Start uses a temporary directory.
	StateDir string
	// KeepState is true if StateDir exists already and the caller removes it.
	KeepState bool
	// LogDir is the directory for the logs of all components, which Start creates if it does
	// not exist. Stop does not remove it. If it is empty, the logs are in StateDir.
	LogDir string
	// Seed is the random seed of the faults that Inject injects.
	Seed uint64
	// Clock is the clock of the environment; nil means the real clock.
	Clock clock.WithTicker
	// Progress, if set, receives progress messages. It must return quickly.
	Progress func(message string)
}

// Environment is a control plane and what runs beside it. Its fields are set by the method
// that sets up the part, and must not be changed.
type Environment struct {
	Options

	// Cluster is the control plane. Admin is a client with all permissions; its requests go
	// directly to the API server.
	Cluster cluster.Cluster
	Admin   kubernetes.Interface
	// Dynamic connects like Admin. It is for objects whose Go type is not in client-go.
	Dynamic dynamic.Interface
	// Recorder writes the history. Dispatcher adds records to it and reports matches of
	// triggers. Both are nil until Record.
	Recorder   *history.Recorder
	Dispatcher *Dispatcher
	// Proxy is the fault proxy. It is nil until StartProxy.
	Proxy *proxy.Proxy
	// Subject is the controllers under test. It is nil until StartSubject, and if the
	// kubelet restarts the replicas (see StartSubject).
	Subject *subject.Subject
	// Pods says how the workload's pods run.
	Pods workload.Pods

	provider providers.Provider
	observer observer
	// records receives the records of the proxy, the faults and the subject. It is the
	// Dispatcher, or the argument of StartProxy.
	records proxy.Recorder
	watches *subjectWatches

	// teardowns are the functions that stop what is set up, in the order of the setup.
	teardowns Teardowns
}

// These timeouts bound the steps of the setup. They are far longer than a slow machine
// needs, so a step that exceeds its timeout fails.
const (
	clusterTimeout = 2 * time.Minute
	subjectTimeout = 60 * time.Second
	catchUpTimeout = 10 * time.Second
)

// stopTimeout bounds Stop.
const stopTimeout = 30 * time.Second

// Start starts the control plane of a provider. If it returns an error, nothing is left
// running.
func Start(ctx context.Context, o Options) (*Environment, error) {
	o.Provider = cmp.Or(o.Provider, providers.Default())
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	provider, err := providers.Named(o.Provider)
	if err != nil {
		return nil, err
	}
	e := &Environment{Options: o, provider: provider, records: discardRecords{}, watches: newSubjectWatches()}
	err = e.setUp(ctx, "directories", e.setUpDirectories)
	if err == nil {
		err = e.setUp(ctx, "control plane", e.setUpCluster)
	}
	if err != nil {
		return nil, errors.Join(err, e.Stop(ctx))
	}
	return e, nil
}

// Capabilities returns the capabilities of the environment's provider.
func (e *Environment) Capabilities() cluster.Capabilities { return e.provider.Capabilities }

// setUp sets up one part, and reports its duration if it is noticeable.
func (e *Environment) setUp(ctx context.Context, name string, setUp func(context.Context) error) error {
	start := e.Clock.Now()
	if err := setUp(ctx); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted while setting up the %s", name)
		}
		return fmt.Errorf("setting up the %s: %w", name, err)
	}
	if took := e.Clock.Since(start); took > 100*time.Millisecond {
		e.progress("%s ready after %.1f s", name, took.Seconds())
	}
	return nil
}

// setUpDirectories creates the state and log directories. A guard process removes the
// state directory even if this program is killed.
func (e *Environment) setUpDirectories(context.Context) (err error) {
	switch {
	case e.KeepState:
	case e.StateDir == "":
		if e.StateDir, err = os.MkdirTemp("", "gauntlet-"); err != nil {
			return err
		}
		err = e.guard(e.StateDir)
	default:
		if err = e.guard(e.StateDir); err == nil {
			err = os.Mkdir(e.StateDir, 0o700)
		}
	}
	if err != nil {
		return err
	}
	if e.LogDir, err = filepath.Abs(cmp.Or(e.LogDir, e.StateDir)); err != nil {
		return err
	}
	return os.MkdirAll(e.LogDir, 0o755)
}

// guard makes a guard process remove a directory if the program is killed. Stop removes
// it otherwise.
func (e *Environment) guard(dir string) error {
	release, err := process.GuardDirectory(dir)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	e.teardowns = append(e.teardowns, func(context.Context) error {
		defer release()
		return os.RemoveAll(dir)
	})
	return nil
}

func (e *Environment) setUpCluster(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	e.ControlPlane.Dir, e.ControlPlane.LogDir = e.StateDir, e.LogDir
	c, err := e.provider.Start(ctx, e.ControlPlane)
	if err != nil {
		return err
	}
	e.Cluster = c
	if !e.ControlPlane.Standing {
		e.teardowns = append(e.teardowns, c.Stop)
	}
	e.Pods.StartDelay, e.Pods.StopDelay = e.ControlPlane.PodStartDelay, e.ControlPlane.PodStopDelay
	if e.Dynamic, err = dynamic.NewForConfig(c.Config(cluster.Admin)); err != nil {
		return err
	}
	e.Admin, err = kubernetes.NewForConfig(c.Config(cluster.Admin))
	return err
}

// StartProxy starts the fault proxy between the subject and the API server. The proxy and
// the faults write to records; nil means the history of Record.
func (e *Environment) StartProxy(ctx context.Context, records proxy.Recorder) error {
	if records != nil {
		e.records = records
	}
	return e.setUp(ctx, "fault proxy", func(ctx context.Context) error {
		direct := e.Cluster.Config(cluster.Subject)
		target, err := url.Parse(direct.Host)
		if err != nil {
			return err
		}
		// The proxy runs until Stop, even after ctx is canceled.
		e.Proxy, err = proxy.Start(context.WithoutCancel(ctx), proxy.Options{
			Target: target, TargetCA: direct.CAData, Recorder: e.records, Clock: e.Clock,
		})
		if err != nil {
			return err
		}
		e.teardowns = append(e.teardowns, e.Proxy.Stop)
		return nil
	})
}

// ProxyConfig returns a client configuration with all permissions that connects through the
// fault proxy, which StartProxy has started. The history shows the requests of the client
// under the given name. Faults act on them as on those of a replica.
func (e *Environment) ProxyConfig(name string) (*rest.Config, error) {
	config := rest.CopyConfig(e.Cluster.Config(cluster.Admin))
	return config, e.Proxy.Route(name, config)
}

// Failed returns an error as soon as a component fails, and nil when ctx is done.
func (e *Environment) Failed(ctx context.Context) error {
	var recorder, subjectFailed <-chan struct{}
	if e.Recorder != nil {
		recorder = e.Recorder.Failed()
	}
	if e.Subject != nil {
		subjectFailed = e.Subject.Failed()
	}
	select {
	case <-e.Cluster.Failed():
		return e.Cluster.Err()
	case <-recorder:
		return e.Recorder.Flush()
	case <-subjectFailed:
		return fmt.Errorf("%w: %w", ErrSubjectDied, e.Subject.Err())
	case <-ctx.Done():
		return nil
	}
}

// ErrSubjectDied means that a replica of the subject has exited unexpectedly.
var ErrSubjectDied = errors.New("the subject ended unexpectedly")

// Stop stops everything in reverse order of the setup and removes the state. It takes at
// most 30 seconds, even if ctx is canceled, and may be called again.
func (e *Environment) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	teardowns := e.teardowns
	e.teardowns = nil
	return teardowns.Run(ctx)
}

// Teardowns are functions that stop what was set up, in the order of the setup.
type Teardowns []func(context.Context) error

// Run calls the functions in reverse order, and joins their errors.
func (t Teardowns) Run(ctx context.Context) error {
	var errs []error
	for _, stop := range slices.Backward(t) {
		errs = append(errs, stop(ctx))
	}
	return errors.Join(errs...)
}

func (e *Environment) progress(format string, args ...any) {
	if e.Progress != nil {
		e.Progress(fmt.Sprintf(format, args...))
	}
}

// discardRecords discards records. It is used until there is a history.
type discardRecords struct{}

func (discardRecords) Append(history.Record) {}
