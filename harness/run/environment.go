package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/faults/proxy"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/kind"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/image"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/observe"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/harness/workload"
)

// namespace is the namespace of the workload.
const namespace = existing.Namespace

// These timeouts bound the steps of the setup. They are far longer than a slow machine
// needs, so a step that exceeds its timeout fails the run.
const (
	clusterTimeout = 2 * time.Minute
	subjectTimeout = 60 * time.Second
	catchUpTimeout = 10 * time.Second
)

// testEnvironment is everything that runs during a run: control plane, recorder,
// observer, fault proxy and subject.
type testEnvironment struct {
	*Options
	dir directory

	cluster    cluster.Cluster
	admin      kubernetes.Interface
	recorder   *history.Recorder
	dispatcher *triggerDispatcher // receives the records of the observer, the proxy, the faults and the workload
	monitor    *monitor
	observer   observer
	proxy      *proxy.Proxy
	subject    *subject.Subject
	pods       workload.Pods

	outages atomic.Int32 // number of active faults that make the control plane unavailable

	// teardowns are the functions that stop what is set up, in the order of the setup.
	teardowns Teardowns
}

// observer is the part of the run that records commits, from etcd or from the API
// server; see package observe.
type observer interface {
	CatchUp(ctx context.Context) error
	Stop()
}

// setUp sets up all parts in the order of their dependencies.
func (e *testEnvironment) setUp(ctx context.Context) error {
	for _, part := range []struct {
		name  string
		setUp func(context.Context) error
	}{
		{"guard", e.setUpGuard},
		{"control plane", e.setUpCluster},
		{"namespace", e.setUpNamespace},
		{"history", e.setUpHistory},
		{"observer", e.setUpObserver},
		{"fault proxy", e.setUpProxy},
		{"subject", e.setUpSubject},
		{"pod image", e.setUpPodImage},
	} {
		start := e.Clock.Now()
		if err := part.setUp(ctx); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("interrupted while setting up the %s", part.name)
			}
			return fmt.Errorf("setting up the %s: %w", part.name, err)
		}
		if took := e.Clock.Since(start); took > 100*time.Millisecond {
			e.progress("%s ready after %.1f s", part.name, took.Seconds())
		}
	}
	return nil
}

// setUpGuard creates the directory for state that must not outlive the run. A guard
// process removes it even if gauntlet is killed.
func (e *testEnvironment) setUpGuard(context.Context) error {
	remove, err := GuardDirectory(e.dir.state())
	if err != nil {
		return err
	}
	e.teardowns = append(e.teardowns, remove)
	return os.Mkdir(e.dir.state(), 0o700)
}

func (e *testEnvironment) setUpCluster(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	existingOptions := e.Existing
	existingOptions.Pods = e.Scenario.PodsMax()
	c, err := StartControlPlane(ctx, e.Provider, ControlPlane{
		Nodes:         e.Scenario.Cluster.Nodes,
		PodStartDelay: e.Scenario.Cluster.PodStartDelay,
		PodStopDelay:  e.Scenario.Cluster.PodStopDelay,
		Dir:           e.dir.state(),
		LogDir:        e.dir.logs(),
		UpstreamDir:   e.UpstreamDir,
		NodeImage:     e.NodeImage,
		Existing:      existingOptions,
		Relays:        e.Scenario.Subject.Replicas,
	})
	if err != nil {
		return err
	}
	e.cluster = c
	e.teardowns = append(e.teardowns, c.Stop)
	e.admin, err = kubernetes.NewForConfig(c.Config(cluster.Admin))
	return err
}

// setUpNamespace creates the run's namespace and waits for its default service account.
// Without that account, the API server rejects pods.
func (e *testEnvironment) setUpNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	if _, exists := e.cluster.(*existing.Cluster); !exists {
		_, err := e.admin.CoreV1().Namespaces().Create(ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	accounts, err := e.admin.CoreV1().ServiceAccounts(namespace).Watch(ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=default"})
	if err != nil {
		return err
	}
	defer accounts.Stop()
	for event := range accounts.ResultChan() {
		if event.Type == watch.Added || event.Type == watch.Modified {
			return nil
		}
	}
	return errors.New("the watch ended before ServiceAccount " + namespace + "/default existed")
}

func (e *testEnvironment) setUpHistory(context.Context) (err error) {
	e.monitor = newMonitor()
	e.monitor.withoutProxy = e.Direct
	e.recorder, err = history.Create(e.dir.history(), history.Start{
		Scenario:  e.Scenario.Name,
		Seed:      e.Scenario.Seed,
		Subject:   e.Target.String(),
		Provider:  e.Provider,
		Namespace: namespace,
	}, e.Clock, e.monitor.observe)
	if err != nil {
		return err
	}
	e.dispatcher = newTriggerDispatcher(e.recorder, e.Clock)
	stop := e.recorder.RecordStalls(e.Clock)
	e.teardowns = append(e.teardowns, func(context.Context) error {
		stop()
		return e.recorder.Close()
	})
	return nil
}

// observedKinds returns the kinds that the run observes.
func observedKinds() []kube.Kind {
	controllers, _ := kube.ControllersNamed() // the default controllers have rows
	return kube.Observed(controllers)
}

// setUpObserver starts the observer, which follows etcd if etcd is reachable.
func (e *testEnvironment) setUpObserver(ctx context.Context) error {
	provider, ok := e.cluster.(cluster.EtcdProvider)
	if !ok {
		observer, err := observe.Start(ctx, observe.Options{
			Config:    e.cluster.Config(cluster.Admin),
			Namespace: namespace,
			Kinds:     observedKinds(),
			Recorder:  e.dispatcher,
		})
		if err != nil {
			return err
		}
		return e.useObserver(observer)
	}
	etcd, err := provider.Etcd(ctx)
	if err != nil {
		return err
	}
	e.teardowns = append(e.teardowns, func(context.Context) error { return etcd.Close() })
	follower, err := observe.Follow(ctx, observe.FollowOptions{Etcd: etcd, Namespace: namespace, Kinds: observedKinds(), Recorder: e.dispatcher})
	if err != nil {
		return err
	}
	return e.useObserver(follower)
}

// useObserver makes o the observer of the run.
func (e *testEnvironment) useObserver(o observer) error {
	e.observer = o
	e.teardowns = append(e.teardowns, func(context.Context) error { o.Stop(); return nil })
	return nil
}

func (e *testEnvironment) setUpProxy(ctx context.Context) (err error) {
	if e.Direct {
		return nil
	}
	e.proxy, err = StartProxy(ctx, e.cluster, e.dispatcher, e.Clock)
	if err != nil {
		return err
	}
	e.teardowns = append(e.teardowns, e.proxy.Stop)
	return nil
}

// setUpSubject starts the subject, and waits until a replica holds the lease and
// watches all required resources.
func (e *testEnvironment) setUpSubject(ctx context.Context) (err error) {
	p, err := providerNamed(e.Provider)
	if err != nil {
		return err
	}
	replicas, err := p.setUpReplicas(ctx, e)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, subjectTimeout)
	defer cancel()
	e.subject, err = subject.Start(ctx, subject.Options{
		Target:         e.Target,
		Account:        replicas.account,
		LeaseNamespace: replicas.leaseNamespace,
		Replicas:       e.Scenario.Subject.Replicas,
		Launch:         replicas.launch,
		Holder:         e.holder,
		Admin:          e.admin,
		Recorder:       e.recorder,
	})
	if err != nil {
		return err
	}
	e.teardowns = append(e.teardowns, e.subject.Stop)
	if err := e.subject.WaitForLeader(ctx); err != nil {
		return err
	}
	return e.monitor.waitWatching(ctx)
}

// setUpPodImage loads the image of the workload's pods on the nodes of a kind cluster.
func (e *testEnvironment) setUpPodImage(ctx context.Context) error {
	e.pods.StartDelay, e.pods.StopDelay = e.Scenario.Cluster.PodStartDelay, e.Scenario.Cluster.PodStopDelay
	c, ok := e.cluster.(*kind.Cluster)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	reference, err := loadBinary(ctx, e.dir.state(), image.Spec{
		Reference: "localhost/gauntlet/standin:run", Binary: filepath.Join(filepath.Dir(e.Gauntlet), "standin"),
	}, c.Workers()...)
	e.pods.Image = reference
	return err
}

// holder returns the replica that uses a leader-election identity, "" if there is none.
func (e *testEnvironment) holder(identity string) string {
	_ = e.recorder.Flush() // a failure of the recorder ends the run elsewhere
	return e.monitor.holder(identity)
}

// route changes a replica's client configuration so that the replica connects through
// the fault proxy, unless the run is direct.
func (e *testEnvironment) route(replica string, config *rest.Config) error {
	if e.Direct {
		return nil
	}
	return e.proxy.Route(replica, config)
}

// keepUp calls Options.KeepUp, if set, with the path of an admin kubeconfig, before the
// teardown.
func (e *testEnvironment) keepUp(ctx context.Context) error {
	path := filepath.Join(e.dir.state(), "admin.kubeconfig")
	if err := cluster.WriteKubeconfig(path, e.cluster.Config(cluster.Admin)); err != nil {
		return err
	}
	e.KeepUp(ctx, path)
	return nil
}
