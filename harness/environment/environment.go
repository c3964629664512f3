// Package environment starts and stops the components of a run: control plane, history, fault proxy
// and subject. The subject is the program with the controllers under test. Callers start the
// components in this order; all but the first are optional:
//
//	Start         the control plane of a provider
//	Record        the namespace of the workload, the history and the observer
//	StartProxy    the fault proxy between the subject and the API server
//	StartSubject  the controllers under test
//
// Inject then injects single faults, and package run runs whole scenarios. Stop stops all
// components in reverse order. If the program is killed, a second process, the guard, stops and
// removes the components. With Options.ControlPlane.Standing, the guard does nothing.
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

	"github.com/kube-gauntlet/gauntlet/faults/inprocess"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/faults/proxy"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/harness/workload"
)

// Namespace is the name of the workload's namespace, unless RecordOptions.Namespace is set.
const Namespace = existing.Namespace

// Options says which control plane [Start] starts, and where its files are.
type Options struct {
	// Provider is the name of a provider, such as "kind". Empty means providers.Default().
	Provider string
	// ControlPlane contains the options for the provider. Start fills in the fields Dir and LogDir.
	ControlPlane providers.Options
	// StateDir is the directory for credentials and databases. Unless KeepState is true, Start
	// creates this directory and Stop removes it. Empty means a new temporary directory.
	StateDir string
	// KeepState means that StateDir already exists, and that Stop does not remove it.
	KeepState bool
	// LogDir is the directory for the logs of all components. Start creates this directory if
	// necessary, and Stop does not remove it. Empty means StateDir; Stop then removes the logs with
	// StateDir.
	LogDir string
	// Seed is the random seed of the faults that [Environment.Inject] injects.
	Seed uint64
	// Clock is the clock of the history and the faults. Nil means the system clock.
	Clock clock.WithTicker
	// Progress is called with messages for users while components start, such as "control plane
	// ready after 4.4 s". Progress must return quickly. It may be nil.
	Progress func(message string)
}

// Environment is a running control plane with the components of a run. Callers must not change the
// fields. A field that contains a component is nil until that component has started.
type Environment struct {
	Options

	// Cluster is the control plane. Admin is a client with all permissions, which connects directly
	// to the API server, not through the fault proxy.
	Cluster cluster.Cluster
	Admin   kubernetes.Interface
	// Dynamic is a client with the same connection and permissions as Admin. It is for objects
	// whose Go types are not in client-go.
	Dynamic dynamic.Interface
	// Recorder writes the history. Dispatcher adds records to the history, and starts a fault when
	// a record matches the fault's trigger. Recorder and Dispatcher are nil until Record is called.
	Recorder   *history.Recorder
	Dispatcher *Dispatcher
	// Interceptor records the requests of the controllers under test and applies the effects of
	// faults. Proxy is the fault proxy, which passes the requests to Interceptor. Interceptor and
	// Proxy are nil until StartProxy is called.
	Interceptor *interceptor.Interceptor
	Proxy       Proxy
	// Subject runs the controllers under test. It is nil until StartSubject is called. It stays nil
	// if the replicas run in pods without a fault proxy. The kubelet then manages the replicas; see
	// StartSubject.
	Subject *subject.Subject
	// Pods contains the container image, the start delay and the stop delay of the workload's pods.
	Pods workload.Pods

	provider providers.Provider
	observer observer // records committed object versions; nil until Record is called
	// records receives the records of the proxy and the faults. It is the recorder that the caller
	// passed to StartProxy, or else the Dispatcher. Without a history, it is discardRecords.
	records interceptor.Recorder
	watches *subjectWatches

	stopped bool // whether Stop was called
	// namespace is the name of the namespace that Record records.
	namespace string
	// teardowns contains the functions with which Stop stops the components, in the order in which
	// the components were started. The functions that stop the control plane come first. Their
	// number is in the field controlPlaneTeardowns.
	teardowns             Teardowns
	controlPlaneTeardowns int
}

// Proxy is the fault proxy, through which the replicas of the controllers under test connect to the
// API server. It records their requests and injects faults.
type Proxy interface {
	// Route makes config connect to the fault proxy as a replica of the controllers under test.
	Route(replica string, config *rest.Config) error
	// Stop stops the fault proxy and breaks all connections through it.
	Stop(ctx context.Context) error
}

// These timeouts limit the steps in which an Environment starts its components. Each step takes
// much less time, even on a slow machine. A timeout therefore means that the step has failed.
const (
	clusterTimeout = 2 * time.Minute  // each of: starting the cluster, creating the namespace, loading an image
	installTimeout = 2 * time.Minute  // creating all objects of a subject file, until the API server serves its custom resources
	subjectTimeout = 60 * time.Second // starting all replicas, until one holds the lease and has opened its watches
	catchUpTimeout = 10 * time.Second // the wait of CatchUp for records
)

// stopTimeout limits the duration of [Environment.Stop] and [Environment.Reset], so that neither
// hangs.
const stopTimeout = 30 * time.Second

// Start starts the control plane of a provider, and returns it as an Environment without other
// components. If Start returns an error, it has stopped all processes and removed the state
// directory.
func Start(ctx context.Context, o Options) (*Environment, error) {
	o.Provider = cmp.Or(o.Provider, providers.Default())
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	provider, err := providers.Named(o.Provider)
	if err != nil {
		return nil, err
	}
	e := &Environment{Options: o, provider: provider}
	e.clear()
	err = e.setUp(ctx, "directories", e.setUpDirectories)
	if err == nil {
		err = e.setUp(ctx, "control plane", e.setUpCluster)
	}
	if err != nil {
		return nil, errors.Join(err, e.Stop(ctx))
	}
	e.controlPlaneTeardowns = len(e.teardowns)
	return e, nil
}

// On returns an Environment that uses a control plane that the caller has started. Stop does not
// stop this control plane. Options.Provider must be the name of the control plane's provider, and
// the directory Options.LogDir must exist.
func On(c cluster.Cluster, o Options) (*Environment, error) {
	provider, err := providers.Named(o.Provider)
	if err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	e := &Environment{Options: o, provider: provider}
	e.clear()
	return e, e.use(c)
}

// canStart returns an error if a component must not be started now. This is the case if the
// component already runs, or if Stop was called. The argument component is a text for the error,
// such as "the fault proxy". The argument runs is true if the component runs.
func (e *Environment) canStart(component string, runs bool) error {
	switch {
	case e.stopped:
		return fmt.Errorf("starting %s: the environment has been stopped; start a new environment", component)
	case runs:
		return fmt.Errorf("starting %s: this component already runs; call Reset before you start it again", component)
	}
	return nil
}

// clear sets the fields of all components except the control plane to their initial values. These
// components can then be started again.
func (e *Environment) clear() {
	e.Recorder, e.Dispatcher, e.Interceptor, e.Proxy, e.Subject, e.observer = nil, nil, nil, nil, nil, nil
	e.records, e.watches, e.namespace = discardRecords{}, newSubjectWatches(), Namespace
}

// Capabilities returns what the provider of this environment can do, such as run the subject in
// pods.
func (e *Environment) Capabilities() cluster.Capabilities { return e.provider.Capabilities }

// setUp starts the component with the given name. The argument setUp is the function that starts
// the component. If it takes more than 100 ms, the method setUp reports the duration through
// Options.Progress.
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

// setUpDirectories creates the state directory and the log directory. If the program is killed, the
// guard process removes the state directory.
func (e *Environment) setUpDirectories(context.Context) (err error) {
	if !e.KeepState {
		if e.StateDir == "" {
			e.StateDir, err = os.MkdirTemp("", "gauntlet-")
		} else if e.StateDir, err = filepath.Abs(e.StateDir); err == nil {
			err = os.Mkdir(e.StateDir, 0o700) // it must not exist, because Stop removes it
		}
		if err == nil {
			err = e.guard(e.StateDir)
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

// guard makes Stop remove the directory dir, which the environment has created. If the program is killed before Stop, the guard
// process, a second process of the program, removes dir.
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

// setUpCluster starts the cluster of the environment's provider and creates the clients Admin and
// Dynamic.
func (e *Environment) setUpCluster(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	e.ControlPlane.Dir, e.ControlPlane.LogDir = e.StateDir, e.LogDir
	if on := &e.ControlPlane.Existing; len(on.CleanupCommand) == 0 {
		on.CleanupCommand = cleanupCommand(*on)
	}
	c, err := e.provider.Start(ctx, e.ControlPlane)
	if err != nil {
		return err
	}
	if !e.ControlPlane.Standing {
		e.teardowns = append(e.teardowns, c.Stop)
	}
	return e.use(c)
}

// use stores the cluster c, which has started, as the control plane of the environment. It then
// creates the clients Admin and Dynamic.
func (e *Environment) use(c cluster.Cluster) (err error) {
	e.Cluster = c
	e.Pods.StartDelay, e.Pods.StopDelay = e.ControlPlane.PodStartDelay, e.ControlPlane.PodStopDelay
	if e.Dynamic, err = dynamic.NewForConfig(c.Config(cluster.Admin)); err != nil {
		return err
	}
	e.Admin, err = kubernetes.NewForConfig(c.Config(cluster.Admin))
	return err
}

// StartProxy starts the fault proxy between the controllers under test and the API server.
//
// The proxy and the faults append their records to the argument records. If it is nil, they append
// their records to the history that Record has created. Without a history, the records are
// discarded.
func (e *Environment) StartProxy(ctx context.Context, records interceptor.Recorder) error {
	if err := e.canStart("the fault proxy", e.Proxy != nil); err != nil {
		return err
	}
	if records != nil {
		e.records = records
	}
	return e.setUp(ctx, "fault proxy", func(ctx context.Context) error {
		e.Interceptor = interceptor.New(e.records, e.Clock)
		started, err := e.startProxy(ctx, e.Cluster.Config(cluster.Subject))
		if err != nil {
			return err
		}
		e.Proxy = started
		e.teardowns = append(e.teardowns, started.Stop)
		return nil
	})
}

// startProxy starts the fault proxy. The argument direct is the configuration with which the proxy
// connects to the API server. If the controllers under test are linked into this program, they
// call the proxy's functions, and the proxy opens no sockets.
func (e *Environment) startProxy(ctx context.Context, direct *rest.Config) (Proxy, error) {
	if e.Capabilities().Has(cluster.SubjectLinked) {
		return inprocess.NewProxy(e.Interceptor, direct.Transport), nil
	}
	target, err := url.Parse(direct.Host)
	if err != nil {
		return nil, err
	}
	// The proxy must run until Stop, even if ctx is canceled.
	return proxy.Start(context.WithoutCancel(ctx), proxy.Options{
		Target: target, TargetCA: direct.CAData, Interceptor: e.Interceptor, Clock: e.Clock,
	})
}

// ProxyConfig returns a client configuration that connects to the fault proxy and has all
// permissions. Call StartProxy first.
//
// A client with this configuration counts as a replica of the controllers under test with the given
// name. The history contains the client's requests, and faults act on these requests.
func (e *Environment) ProxyConfig(name string) (*rest.Config, error) {
	if e.stopped || e.Proxy == nil {
		return nil, errors.New("ProxyConfig: the fault proxy does not run; call StartProxy first")
	}
	config := rest.CopyConfig(e.Cluster.Config(cluster.Admin))
	return config, e.Proxy.Route(name, config)
}

// Failed waits until the control plane, the recorder or the subject (the controllers under test)
// fails. It returns the failure. If ctx is canceled first, Failed returns nil.
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
		return e.Subject.Err()
	case <-ctx.Done():
		return nil
	}
}

// Stop stops all components in reverse order of their start, and removes the state directory. Stop
// completes even if ctx is canceled. A second call does nothing.
//
// After 30 seconds, Stop cancels the steps that are not complete.
func (e *Environment) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	teardowns := e.teardowns
	e.teardowns, e.stopped = nil, true
	return teardowns.Run(ctx)
}

// Reset stops all components except the control plane, in reverse order of their start. After
// Reset, Record, StartProxy and StartSubject may be called again.
//
// Reset deletes no objects of the workload. It deletes the pods in which the program under test
// runs. If other people also use the cluster (cluster.Shared), Reset also deletes the program's
// ClusterRoles and ClusterRoleBindings.
func (e *Environment) Reset(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	started := e.teardowns[e.controlPlaneTeardowns:]
	e.teardowns = slices.Clip(e.teardowns[:e.controlPlaneTeardowns])
	err := started.Run(ctx)
	e.clear()
	return err
}

// RecordedNamespace returns the name of the namespace that Record records. This is
// RecordOptions.Namespace, or [Namespace] if that option is empty.
func (e *Environment) RecordedNamespace() string { return e.namespace }

// Teardowns is a list of functions that stop components. The functions are in the order in which
// the components were started.
type Teardowns []func(context.Context) error

// Run calls all functions in reverse order, even after an error, and joins the errors.
func (t Teardowns) Run(ctx context.Context) error {
	var errs []error
	for _, stop := range slices.Backward(t) {
		errs = append(errs, stop(ctx))
	}
	return errors.Join(errs...)
}

// progress formats a message for users and passes it to e.Progress. If e.Progress is nil, it does
// nothing.
func (e *Environment) progress(format string, args ...any) {
	if e.Progress != nil {
		e.Progress(fmt.Sprintf(format, args...))
	}
}

// discardRecords is a recorder that discards all records. An Environment without a history uses it.
type discardRecords struct{}

func (discardRecords) Append(history.Record) {}
