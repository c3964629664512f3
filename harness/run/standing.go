package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/kind"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/harness/subject/pods"
)

// StandingSubject is a subject on a standing cluster. There is no fault proxy, unless
// Route adds one, and no history.
type StandingSubject struct {
	Target   subject.Target
	Replicas int // 1 to scenario.SubjectsMax
	// Ours is the path of the workload-controller-manager, built from controllers/.
	Ours string
	// Route may change the client configuration of a replica, for example to add a
	// fault proxy. If Route is nil, the replica connects directly to the API server.
	// Route does not apply to replicas in pods.
	Route func(replica string, config *rest.Config) error
}

// standingSubjectTimeout bounds the start of a standing subject. The time to load its
// image does not count.
const standingSubjectTimeout = 2 * time.Minute

// Install starts the subject on a control plane that has none, and waits until a
// replica holds the lease. On kind, the replicas are pods that the kubelet restarts,
// and the result is nil. Elsewhere they are child processes, and the caller must stop
// the returned subject.
func (s StandingSubject) Install(ctx context.Context, c cluster.Cluster, p ControlPlane) (*subject.Subject, error) {
	admin, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return nil, err
	}
	if onKind, ok := c.(*kind.Cluster); ok {
		err = s.deploy(ctx, onKind, admin, p)
		if err != nil {
			err = fmt.Errorf("deploying the subject %s: %w", s.Target, err)
		}
		return nil, err
	}
	running, err := s.start(ctx, c, admin, p)
	if err != nil {
		err = fmt.Errorf("starting the subject %s: %w", s.Target, err)
	}
	return running, err
}

// deploy runs the subject in pods of the cluster.
func (s StandingSubject) deploy(ctx context.Context, c *kind.Cluster, admin kubernetes.Interface, p ControlPlane) error {
	image, err := loadTarget(ctx, c, s.Target, s.Ours, p.Dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, standingSubjectTimeout, fmt.Errorf("timed out after %s", standingSubjectTimeout))
	defer cancel()
	if err := subject.Grant(ctx, admin, s.Target, nil, pods.Account(), subject.LeaseNamespace); err != nil {
		return err
	}
	err = pods.Deploy(ctx, pods.Options{
		Subject: image, Settings: settingsOf(scenario.DefaultSubject(), subject.LeaseNamespace), Admin: admin, Node: c.ControlPlane(), Clock: clock.RealClock{},
	}, s.Replicas, c.Config(cluster.Subject).CAData)
	if err != nil {
		return err
	}
	const interval = 100 * time.Millisecond
	return cluster.Poll(ctx, interval, "a replica to hold the lease", func(ctx context.Context) error { return subject.CheckLeaseHeld(ctx, admin, subject.LeaseNamespace) })
}

// start runs the subject as processes of this machine. On an existing cluster, the
// caller must revoke the granted permissions.
func (s StandingSubject) start(ctx context.Context, c cluster.Cluster, admin kubernetes.Interface, p ControlPlane) (*subject.Subject, error) {
	binaries, err := embedded.FindBinaries(p.UpstreamDir)
	if err != nil {
		return nil, err
	}
	executable, err := s.Target.Executable(s.Ours, binaries.KubeControllerManager)
	if err != nil {
		return nil, err
	}
	account, namespace := subject.User(), subject.LeaseNamespace
	if _, exists := c.(*existing.Cluster); exists {
		account, namespace = existing.Account(), existing.Namespace
	}
	route := s.Route
	if route == nil {
		route = func(string, *rest.Config) error { return nil }
	}
	ctx, cancel := context.WithTimeout(ctx, standingSubjectTimeout)
	defer cancel()
	running, err := subject.Start(ctx, subject.Options{
		Target:   s.Target,
		Account:  account,
		Replicas: s.Replicas,
		Launch: subject.Local{
			Executable: executable, Settings: settingsOf(scenario.DefaultSubject(), namespace), Cluster: c,
			Route:    route,
			StateDir: p.Dir, LogDir: p.LogDir,
		}.Launcher(),
		Holder:         func(string) string { return "" },
		LeaseNamespace: namespace,
		Admin:          admin,
		Recorder:       discardRecorder{},
	})
	if err != nil {
		return nil, err
	}
	if err := running.WaitForLeader(ctx); err != nil {
		return nil, errors.Join(err, running.Stop(ctx))
	}
	return running, nil
}

// discardRecorder discards records, because a standing subject has no history.
type discardRecorder struct{}

func (discardRecorder) Append(history.Record) {}
