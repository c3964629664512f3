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

	"github.com/kube-gauntlet/gauntlet/controllers/internal/podfacts"
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
	// announcer takes events for as long as the process runs: those of the
	// controllers, and those of the election, which comes before and after them.
	announcer *announcer
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
	m.announcer = newAnnouncer(context.WithoutCancel(ctx), &corev1client.EventSinkImpl{Interface: client.CoreV1().Events("")})
	defer m.announcer.stop()
	if err := m.work(working, watchdog); err != nil {
		return err
	}
	if ctx.Err() == nil {
		return context.Cause(working)
	}
	return nil
}

func (m *Manager) work(ctx context.Context, watchdog *leaderelection.HealthzAdaptor) error {
	if !m.options.LeaderElection.Enabled {
		return m.lead(context.WithoutCancel(ctx), ctx.Done())
	}
	client, err := m.clients(leaderElectionClient)
	if err != nil {
		return err
	}
	return elect(ctx, client, m.options.LeaderElection, m.announcer.recorder(Name), watchdog, m.lead)
}

func (m *Manager) handler(watchdog *leaderelection.HealthzAdaptor) http.Handler {
	alive := check{watchdog.Name(), watchdog.Check}
	synced := check{"informers", func(*http.Request) error {
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
	return newHandler([]check{alive}, []check{alive, synced}, m.options.Serving.AllowedPaths)
}

// lead runs the controllers until drain is closed and their workers are done,
// for at most drainTimeout, or until ctx is cancelled.
func (m *Manager) lead(ctx context.Context, drain <-chan struct{}) error {
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	team, err := m.assemble(ctx)
	if err != nil {
		return err
	}
	m.running.Store(&team.controllers)
	defer m.running.Store(nil)
	team.factory.StartWithContext(ctx)
	// Informers outlive the workers, and stop before lead returns.
	defer team.factory.Shutdown()
	defer abort()

	done := make(chan struct{})
	go func() {
		defer close(done)
		team.run(ctx, drain, m.options)
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

// team is the controllers of one term of leadership, with what they share.
type team struct {
	factory     informers.SharedInformerFactory
	entries     []entry
	controllers []controller
}

// assemble makes the controllers that the options enable and this build has.
func (m *Manager) assemble(ctx context.Context) (*team, error) {
	enabled, err := m.options.enabled()
	if err != nil {
		return nil, err
	}
	reader, err := m.clients(informersClient)
	if err != nil {
		return nil, err
	}
	resync := time.Duration(float64(m.options.MinResyncPeriod) * (1 + rand.Float64())) // apart, so that replicas do not resync in step
	t := &team{factory: informers.NewSharedInformerFactoryWithOptions(reader, resync, informers.WithTransform(trim))}
	for _, e := range enabled {
		writer, err := m.clients(e.name)
		if err != nil {
			return nil, err
		}
		c, err := e.build(ctx, environment{client: writer, informers: t.factory, events: m.announcer.recorder, options: m.options})
		if err != nil {
			return nil, fmt.Errorf("making %s: %w", e.name, err)
		}
		t.entries, t.controllers = append(t.entries, e), append(t.controllers, c)
	}
	return t, nil
}

// run runs all controllers until all have stopped.
func (t *team) run(ctx context.Context, drain <-chan struct{}, options *Options) {
	controllermetrics.Register()
	running := controllermetrics.NewControllerManagerMetrics(Name)
	var all sync.WaitGroup
	all.Go(func() { // also when there is no controller to wait for
		select {
		case <-ctx.Done():
		case <-drain:
		}
	})
	for i, e := range t.entries {
		all.Go(func() {
			running.ControllerStarted(e.name)
			defer running.ControllerStopped(e.name)
			t.controllers[i].Run(ctx, drain, e.workers(options))
		})
	}
	all.Wait()
}

// trim keeps of what the API server sends what the controllers read: of pods, by
// far the most, little; of anything else all but the managed fields, which make
// up much of a cache.
func trim(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		return podfacts.Trim(pod), nil
	}
	if accessor, err := meta.Accessor(object); err == nil && accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
