// Package manager runs the workload controllers as one process: it reads the
// flags, waits to be leader, starts the controllers on shared informers, serves
// health and metrics, and on the way out lets workers finish and gives the
// lease back.
//
// It knows nothing of what the controllers do; those that there are stand in
// one table, catalogue.
package manager

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/leaderelection"
	controllermetrics "k8s.io/component-base/metrics/prometheus/controllers"
	"k8s.io/klog/v2"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/podutil"
)

// Name is the name of the binary, of its lease and of its service account.
const Name = "workload-controller-manager"

// Bounds on stopping. A worker can hold a burst of 500 requests.
const (
	drainTimeout = 15 * time.Second // for workers to finish what they hold
	abortTimeout = 2 * time.Second  // for workers that were told to give up
)

// Purposes of clients.
const (
	leaderElectionClient = "leader-election"
	eventsClient         = "events"
	informersClient      = "shared-informers"
)

// Manager is one run of the controllers.
type Manager struct {
	options *Options
	clients Clients
	// events takes events for as long as the process runs: those of the
	// controllers, and those of the election, which comes before and after them.
	events *eventBroadcasters
	// running is the controllers at work, once they are.
	running atomic.Pointer[[]controller]
}

// New returns a Manager with options, which must be valid, that reaches the API
// server through clients.
func New(options *Options, clients Clients) *Manager {
	return &Manager{options: options, clients: clients}
}

// Run works until ctx is done and returns nil once it has stopped in good
// order, which takes no longer than drainTimeout, abortTimeout and
// releaseTimeout together. It returns early, with an error, when the
// lease is lost or something it needs fails.
func (m *Manager) Run(ctx context.Context) error {
	working, stopWorking := context.WithCancelCause(ctx)
	defer stopWorking(nil)
	watchdog := leaderelection.NewLeaderHealthzAdaptor(20 * time.Second)
	if m.options.Serving.SecurePort != 0 {
		stopServing, err := serve(m.options.Serving, m.handler(watchdog), stopWorking)
		if err != nil {
			return err
		}
		defer stopServing()
	}
	client, err := m.clients(eventsClient)
	if err != nil {
		return err
	}
	m.events = newEventBroadcasters(context.WithoutCancel(ctx), &corev1client.EventSinkImpl{Interface: client.CoreV1().Events("")})
	defer m.events.stop()
	if err := m.runElected(working, watchdog); err != nil {
		return err
	}
	if ctx.Err() == nil {
		return context.Cause(working)
	}
	return nil
}

func (m *Manager) runElected(ctx context.Context, watchdog *leaderelection.HealthzAdaptor) error {
	if !m.options.LeaderElection.Enabled {
		return m.runControllers(context.WithoutCancel(ctx), ctx.Done())
	}
	client, err := m.clients(leaderElectionClient)
	if err != nil {
		return err
	}
	return runWhenElected(ctx, client, m.options.LeaderElection, m.events.recorder(Name), watchdog, m.runControllers)
}

func (m *Manager) handler(watchdog *leaderelection.HealthzAdaptor) http.Handler {
	alive := healthCheck{watchdog.Name(), watchdog.Check}
	synced := healthCheck{"informers", func(*http.Request) error {
		running := m.running.Load()
		if running == nil {
			return nil // a standby is as ready as it can be
		}
		for _, c := range *running {
			if !c.HasSynced() {
				return errors.New("caches are not synced yet")
			}
		}
		return nil
	}}
	return newHandler([]healthCheck{alive}, []healthCheck{alive, synced}, m.options.Serving.AllowedPaths)
}

// runControllers runs the controllers until drain is closed and their workers are done,
// for at most drainTimeout, or until ctx is cancelled.
func (m *Manager) runControllers(ctx context.Context, drain <-chan struct{}) error {
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	set, err := m.newControllerSet(ctx)
	if err != nil {
		return err
	}
	m.running.Store(&set.controllers)
	defer m.running.Store(nil)
	set.factory.StartWithContext(ctx)
	// Informers outlive the workers, and stop before lead returns.
	defer set.factory.Shutdown()
	defer abort()

	done := make(chan struct{})
	go func() {
		defer close(done)
		set.run(ctx, drain, m.options)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	case <-drain:
		klog.FromContext(ctx).Info("Stopping: workers finish what they hold", "limit", drainTimeout)
		select {
		case <-done:
			return nil
		case <-ctx.Done():
		case <-time.After(drainTimeout):
			klog.FromContext(ctx).Info("Workers did not finish in time, aborting them")
			abort()
		}
	}
	select {
	case <-done:
		return nil
	case <-time.After(abortTimeout):
		return fmt.Errorf("workers did not stop within %s of being told to give up", abortTimeout)
	}
}

// controllerSet is the controllers of one term of leadership, with what they share.
type controllerSet struct {
	factory     informers.SharedInformerFactory
	descriptors []controllerDescriptor
	controllers []controller
}

// newControllerSet makes the controllers that the options enable and this build has.
func (m *Manager) newControllerSet(ctx context.Context) (*controllerSet, error) {
	enabled, err := m.options.enabled()
	if err != nil {
		return nil, err
	}
	reader, err := m.clients(informersClient)
	if err != nil {
		return nil, err
	}
	resync := time.Duration(float64(m.options.MinResyncPeriod) * (1 + rand.Float64())) // apart, so that replicas do not resync in step
	s := &controllerSet{factory: informers.NewSharedInformerFactoryWithOptions(reader, resync, informers.WithTransform(trim))}
	for _, e := range enabled {
		writer, err := m.clients(e.name)
		if err != nil {
			return nil, err
		}
		c, err := e.build(ctx, controllerContext{client: writer, informers: s.factory, events: m.events.recorder, options: m.options})
		if err != nil {
			return nil, fmt.Errorf("making %s: %w", e.name, err)
		}
		s.descriptors, s.controllers = append(s.descriptors, e), append(s.controllers, c)
	}
	return s, nil
}

// run runs all controllers until all have stopped.
func (s *controllerSet) run(ctx context.Context, drain <-chan struct{}, options *Options) {
	controllermetrics.Register()
	running := controllermetrics.NewControllerManagerMetrics(Name)
	var all sync.WaitGroup
	all.Go(func() { // also when there is no controller to wait for
		select {
		case <-ctx.Done():
		case <-drain:
		}
	})
	for i, e := range s.descriptors {
		all.Go(func() {
			running.ControllerStarted(e.name)
			defer running.ControllerStopped(e.name)
			s.controllers[i].Run(ctx, drain, e.workers(options))
		})
	}
	all.Wait()
}

// trim keeps of what the API server sends what the controllers read: of pods, by
// far the most, little; of anything else all but the managed fields, which make
// up much of a cache.
func trim(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		return podutil.Trim(pod), nil
	}
	if accessor, err := meta.Accessor(object); err == nil && accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
