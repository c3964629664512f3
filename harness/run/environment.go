package run

import (
	"context"
	"errors"
	"fmt"
	"net/url"
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
	"github.com/kube-gauntlet/gauntlet/harness/observe"
	"github.com/kube-gauntlet/gauntlet/harness/process"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/harness/workload"
)

// namespace is where the workload of a run lives.
const namespace = existing.Namespace

// Bounds on how long the parts of a stage may take to stand. They are far above
// what a slow machine needs: reaching one is an error of its own.
const (
	clusterTimeout = 2 * time.Minute
	subjectTimeout = 60 * time.Second
	catchUpTimeout = 10 * time.Second
)

// testEnvironment is everything that stands while a run goes on.
type testEnvironment struct {
	*Options
	dir directory

	cluster    cluster.Cluster
	admin      kubernetes.Interface
	recorder   *history.Recorder
	dispatcher *triggerDispatcher // to it go the records of all witnesses
	monitor    *monitor
	observer   observer
	proxy      *proxy.Proxy
	subject    *subject.Subject
	pods       workload.Pods

	outages atomic.Int32 // faults in force that have the control plane out of order

	// teardowns holds how to stop what stands, in the order in which it was raised.
	teardowns []func(context.Context) error
}

// observer is the witness of the truth, wherever it watches; see package observe.
type observer interface {
	CatchUp(ctx context.Context) error
	Stop()
}

// setUp brings up everything, in the order in which it depends on each other.
func (s *testEnvironment) setUp(ctx context.Context) error {
	for _, part := range []struct {
		name  string
		raise func(context.Context) error
	}{
		{"guard", s.setUpGuard},
		{"control plane", s.setUpCluster},
		{"namespace", s.setUpNamespace},
		{"history", s.setUpHistory},
		{"observer", s.setUpObserver},
		{"fault proxy", s.setUpProxy},
		{"subject", s.setUpSubject},
		{"pods' image", s.setUpPodImage},
	} {
		begun := s.Clock.Now()
		if err := part.raise(ctx); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("interrupted while raising the %s", part.name)
			}
			return fmt.Errorf("raising the %s: %w", part.name, err)
		}
		if took := s.Clock.Since(begun); took > 100*time.Millisecond {
			s.progress("%s up in %.1f s", part.name, took.Seconds())
		}
	}
	return nil
}

// setUpGuard makes the directory of what must not outlive the run, and sees to
// it that it does not, be gauntlet killed.
func (s *testEnvironment) setUpGuard(context.Context) error {
	release, err := process.GuardDirectory(s.dir.state())
	if err != nil {
		return err
	}
	s.teardowns = append(s.teardowns, func(context.Context) error {
		defer release()
		return os.RemoveAll(s.dir.state())
	})
	return os.Mkdir(s.dir.state(), 0o700)
}

func (s *testEnvironment) setUpCluster(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	shared := s.Existing
	shared.Pods = s.Scenario.PodsMax()
	c, err := StartControlPlane(ctx, s.Provider, ControlPlane{
		Nodes:         s.Scenario.Cluster.Nodes,
		PodStartDelay: s.Scenario.Cluster.PodStartDelay,
		PodStopDelay:  s.Scenario.Cluster.PodStopDelay,
		Dir:           s.dir.state(),
		LogDir:        s.dir.logs(),
		UpstreamDir:   s.UpstreamDir,
		NodeImage:     s.NodeImage,
		Existing:      shared,
		Relays:        s.Scenario.Subject.Replicas,
	})
	if err != nil {
		return err
	}
	s.cluster = c
	s.teardowns = append(s.teardowns, c.Stop)
	s.admin, err = kubernetes.NewForConfig(c.Config(cluster.Admin))
	return err
}

// setUpNamespace makes the run's namespace and waits for its service account,
// without which no pod is admitted.
func (s *testEnvironment) setUpNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	if _, made := s.cluster.(*existing.Cluster); !made {
		_, err := s.admin.CoreV1().Namespaces().Create(ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	accounts, err := s.admin.CoreV1().ServiceAccounts(namespace).Watch(ctx,
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
	return errors.New("its service account was not made")
}

func (s *testEnvironment) setUpHistory(context.Context) (err error) {
	s.monitor = newMonitor()
	s.monitor.withoutProxy = s.Direct
	s.recorder, err = history.Create(s.dir.history(), history.Start{
		Scenario:  s.Scenario.Name,
		Seed:      s.Scenario.Seed,
		Subject:   s.Target.String(),
		Provider:  s.Provider,
		Namespace: namespace,
	}, s.Clock, s.monitor.observe)
	if err != nil {
		return err
	}
	s.dispatcher = newTriggerDispatcher(s.recorder, s.Clock)
	stop := s.recorder.RecordStalls(s.Clock)
	s.teardowns = append(s.teardowns, func(context.Context) error {
		stop()
		return s.recorder.Close()
	})
	return nil
}

// setUpObserver starts the witness of the truth, at etcd if that is within reach.
func (s *testEnvironment) setUpObserver(ctx context.Context) error {
	stored, ok := s.cluster.(cluster.EtcdProvider)
	if !ok {
		observer, err := observe.Start(ctx, observe.Options{
			Config:    s.cluster.Config(cluster.Admin),
			Namespace: namespace,
			Resources: observe.Resources,
			Recorder:  s.dispatcher,
		})
		if err != nil {
			return err
		}
		return s.useObserver(observer)
	}
	etcd, err := stored.Etcd(ctx)
	if err != nil {
		return err
	}
	s.teardowns = append(s.teardowns, func(context.Context) error { return etcd.Close() })
	follower, err := observe.Follow(ctx, observe.FollowOptions{Etcd: etcd, Namespace: namespace, Recorder: s.dispatcher})
	if err != nil {
		return err
	}
	return s.useObserver(follower)
}

// useObserver has the truth witnessed by an observer from here on.
func (s *testEnvironment) useObserver(by observer) error {
	s.observer = by
	s.teardowns = append(s.teardowns, func(context.Context) error { by.Stop(); return nil })
	return nil
}

func (s *testEnvironment) setUpProxy(ctx context.Context) (err error) {
	if s.Direct {
		return nil
	}
	direct := s.cluster.Config(cluster.Subject)
	target, err := url.Parse(direct.Host)
	if err != nil {
		return err
	}
	s.proxy, err = proxy.Start(context.WithoutCancel(ctx), proxy.Options{
		Target:   target,
		TargetCA: direct.CAData,
		Recorder: s.dispatcher,
		Clock:    s.Clock,
	})
	if err != nil {
		return err
	}
	s.teardowns = append(s.teardowns, s.proxy.Stop)
	return nil
}

// setUpSubject starts the subject and waits until it leads and watches.
func (s *testEnvironment) setUpSubject(ctx context.Context) (err error) {
	p, err := providerNamed(s.Provider)
	if err != nil {
		return err
	}
	replicas, err := p.setUpReplicas(ctx, s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, subjectTimeout)
	defer cancel()
	s.subject, err = subject.Start(ctx, subject.Options{
		Target:         s.Target,
		Account:        replicas.account,
		LeaseNamespace: replicas.leaseNamespace,
		Replicas:       s.Scenario.Subject.Replicas,
		Launch:         replicas.launch,
		Holder:         s.holder,
		Admin:          s.admin,
		Recorder:       s.recorder,
	})
	if err != nil {
		return err
	}
	s.teardowns = append(s.teardowns, s.subject.Stop)
	if err := s.subject.WaitForLeader(ctx); err != nil {
		return err
	}
	return s.monitor.waitWatching(ctx)
}

// setUpPodImage makes sure of what the workload's pods run.
func (s *testEnvironment) setUpPodImage(ctx context.Context) error {
	s.pods.StartDelay, s.pods.StopDelay = s.Scenario.Cluster.PodStartDelay, s.Scenario.Cluster.PodStopDelay
	c, ok := s.cluster.(*kind.Cluster)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	reference, err := loadBinary(ctx, s.dir.state(), image.Spec{
		Reference: "localhost/gauntlet/standin:run", Binary: filepath.Join(filepath.Dir(s.Gauntlet), "standin"),
	}, c.Workers()...)
	s.pods.Image = reference
	return err
}

// holder names the replica that takes part in elections under an identity.
func (s *testEnvironment) holder(identity string) string {
	_ = s.recorder.Flush() // what fails the recorder ends the run; here it only has to be seen
	return s.monitor.holder(identity)
}

// route leads a replica to the API server through the fault proxy, unless the
// run does without.
func (s *testEnvironment) route(replica string, config *rest.Config) error {
	if s.Direct {
		return nil
	}
	return s.proxy.Route(replica, config)
}

// keepUp leaves everything standing until the caller has had enough.
func (s *testEnvironment) keepUp(ctx context.Context) error {
	path := filepath.Join(s.dir.state(), "admin.kubeconfig")
	if err := cluster.WriteKubeconfig(path, s.cluster.Config(cluster.Admin)); err != nil {
		return err
	}
	s.KeepUp(ctx, path)
	return nil
}
