// Package manager runs the controllers in one process. It defines the flags, runs leader
// election, starts the controllers with shared informers, and serves health checks and
// metrics. On shutdown, it waits until the workers have finished their syncs, and then releases
// the lease.
//
// The variable catalog lists the controllers.
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

// Name is the name of the binary. The Lease and the service account of the binary have the same
// name.
const Name = "workload-controller-manager"

// These constants limit the duration of a graceful stop. They are long, because the sync of one
// worker may still have to send up to 500 requests.
const (
	drainTimeout = 15 * time.Second // maximum time for workers to finish their current syncs
	abortTimeout = 2 * time.Second  // maximum time for workers to return after their context is canceled
)

// These are the clients that belong to no single controller. Each has its own rate limit. See
// [Clients].
const (
	leaderElectionClient = "leader-election"
	eventsClient         = "events"
	informersClient      = "shared-informers"
)

// Manager runs the controllers of workload-controller-manager. Call its method Run only once.
type Manager struct {
	options *Options
	clients Clients
	// events sends the events of the controllers and of leader election to the API server. It
	// stops when Run returns.
	events *eventBroadcasters
	// running contains the running controllers, or nil if this replica is not the leader. The
	// readiness check uses this field.
	running atomic.Pointer[[]controller]
}

// New returns a Manager. Call options.Validate first, because New does not validate the options.
func New(options *Options, clients Clients) *Manager {
	return &Manager{options: options, clients: clients}
}

// Run runs the controllers until ctx is done, and returns nil after a graceful stop. The stop
// takes at most drainTimeout plus abortTimeout plus releaseTimeout. Run returns an error earlier
// if this process loses the lease, or if the controllers cannot run.
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

// runElected runs the controllers while this replica holds the lease. Without leader election,
// it runs the controllers immediately.
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

// handler returns the HTTP handler for the health checks and metrics of this process. The watchdog
// reports an error if the leader has not renewed its lease for too long.
func (m *Manager) handler(watchdog *leaderelection.HealthzAdaptor) http.Handler {
	alive := healthCheck{watchdog.Name(), watchdog.Check}
	synced := healthCheck{"informers", func(*http.Request) error {
		running := m.running.Load()
		if running == nil {
			return nil // a replica without the lease is ready
		}
		for _, c := range *running {
			if !c.HasSynced() {
				return errors.New("informer caches are not synced yet")
			}
		}
		return nil
	}}
	return newHandler([]healthCheck{alive}, []healthCheck{alive, synced}, m.options.Serving.AllowedPaths)
}

// runControllers runs the controllers until the caller closes the channel drain. It then waits at
// most drainTimeout until the workers have finished their syncs. If ctx is canceled, or after
// drainTimeout, it aborts the syncs. It returns an error if the workers do not stop after that.
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
	// Stop the informers after the workers have stopped, but before runControllers returns.
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
		klog.FromContext(ctx).Info("Stopping, waiting for workers to finish their syncs", "timeout", drainTimeout)
		select {
		case <-done:
			return nil
		case <-ctx.Done():
		case <-time.After(drainTimeout):
			klog.FromContext(ctx).Info("Workers did not finish their syncs in time, canceling the syncs", "timeout", drainTimeout)
			abort()
		}
	}
	select {
	case <-done:
		return nil
	case <-time.After(abortTimeout):
		return fmt.Errorf("workers did not stop within %s after their context was canceled", abortTimeout)
	}
}

// controllerSet contains the controllers that this process runs, and the informers that they
// share.
type controllerSet struct {
	factory     informers.SharedInformerFactory
	descriptors []controllerDescriptor
	controllers []controller
}

// newControllerSet returns the controllers that the flag --controllers enables. It builds them,
// but does not start them.
func (m *Manager) newControllerSet(ctx context.Context) (*controllerSet, error) {
	enabled, err := m.options.enabled()
	if err != nil {
		return nil, err
	}
	reader, err := m.clients(informersClient)
	if err != nil {
		return nil, err
	}
	// The period is random, so that replicas do not resync at the same time.
	resync := time.Duration(float64(m.options.MinResyncPeriod) * (1 + rand.Float64()))
	s := &controllerSet{factory: informers.NewSharedInformerFactoryWithOptions(reader, resync, informers.WithTransform(trim))}
	for _, e := range enabled {
		writer, err := m.clients(e.name)
		if err != nil {
			return nil, err
		}
		c, err := e.build(ctx, controllerContext{client: writer, informers: s.factory, events: m.events.recorder, options: m.options})
		if err != nil {
			return nil, fmt.Errorf("creating controller %s: %w", e.name, err)
		}
		s.descriptors, s.controllers = append(s.descriptors, e), append(s.controllers, c)
	}
	return s, nil
}

// run runs all controllers of the set. It returns when all of them have stopped.
func (s *controllerSet) run(ctx context.Context, drain <-chan struct{}, options *Options) {
	controllermetrics.Register()
	running := controllermetrics.NewControllerManagerMetrics(Name)
	var all sync.WaitGroup
	all.Go(func() { // makes run wait for drain or ctx even if no controller is enabled
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

// trim returns an object without some of its fields, so that the informer cache stays small. A pod
// keeps only the fields that podutil.Trim keeps. All other objects lose only managedFields.
func trim(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		return podutil.Trim(pod), nil
	}
	if accessor, err := meta.Accessor(object); err == nil && accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
