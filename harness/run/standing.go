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

// StandingSubject is a subject that stays on a control plane for others to use: with no
// fault proxy before it but the caller's own, and nothing of it recorded.
type StandingSubject struct {
	Target   subject.Target
	Replicas int // 1 to scenario.SubjectsMax
	// Ours is the executable of controllers/.
	Ours string
	// Route bends the configuration of a replica, which leads straight to the API
	// server; nil leaves it as it is. In pods there is no other way.
	Route func(replica string, config *rest.Config) error
}

// standingSubjectTimeout bounds the start of a resident, its image not counted.
const standingSubjectTimeout = 2 * time.Minute

// Install starts the resident on a control plane that has none, and returns when
// it leads. On kind it stands by itself, in pods that are started again when they
// end. Elsewhere it is processes of the caller's, which is to stop the subject
// that is returned.
func (r StandingSubject) Install(ctx context.Context, c cluster.Cluster, p ControlPlane) (*subject.Subject, error) {
	admin, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return nil, err
	}
	if onKind, ok := c.(*kind.Cluster); ok {
		err = r.deploy(ctx, onKind, admin, p)
		if err != nil {
			err = fmt.Errorf("deploying the subject %s: %w", r.Target, err)
		}
		return nil, err
	}
	s, err := r.start(ctx, c, admin, p)
	if err != nil {
		err = fmt.Errorf("starting the subject %s: %w", r.Target, err)
	}
	return s, err
}

// deploy puts the resident into the cluster's pods.
func (r StandingSubject) deploy(ctx context.Context, c *kind.Cluster, admin kubernetes.Interface, p ControlPlane) error {
	image, err := loadTarget(ctx, c, r.Target, r.Ours, p.Dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, standingSubjectTimeout, fmt.Errorf("not within %s", standingSubjectTimeout))
	defer cancel()
	if err := subject.Grant(ctx, admin, r.Target, pods.Account(), subject.LeaseNamespace); err != nil {
		return err
	}
	err = pods.Deploy(ctx, pods.Options{
		Subject: image, Settings: settingsOf(scenario.DefaultSubject(), subject.LeaseNamespace), Admin: admin, Node: c.ControlPlane(), Clock: clock.RealClock{},
	}, r.Replicas, c.Config(cluster.Subject).CAData)
	if err != nil {
		return err
	}
	const interval = 100 * time.Millisecond
	return cluster.Poll(ctx, interval, "it to lead", func(ctx context.Context) error { return subject.CheckLeaseHeld(ctx, admin, subject.LeaseNamespace) })
}

// start runs the resident as processes of this machine. On a cluster that is not the
// caller's own it is the caller's to take back what they were granted.
func (r StandingSubject) start(ctx context.Context, c cluster.Cluster, admin kubernetes.Interface, p ControlPlane) (*subject.Subject, error) {
	binaries, err := embedded.FindBinaries(p.UpstreamDir)
	if err != nil {
		return nil, err
	}
	executable, err := r.Target.Executable(r.Ours, binaries.KubeControllerManager)
	if err != nil {
		return nil, err
	}
	account, namespace := subject.User(), subject.LeaseNamespace
	if _, shared := c.(*existing.Cluster); shared {
		account, namespace = existing.Account(), existing.Namespace
	}
	route := r.Route
	if route == nil {
		route = func(string, *rest.Config) error { return nil }
	}
	ctx, cancel := context.WithTimeout(ctx, standingSubjectTimeout)
	defer cancel()
	s, err := subject.Start(ctx, subject.Options{
		Target:   r.Target,
		Account:  account,
		Replicas: r.Replicas,
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
	if err := s.WaitForLeader(ctx); err != nil {
		return nil, errors.Join(err, s.Stop(ctx))
	}
	return s, nil
}

// discardRecorder is a recorder where there is no history.
type discardRecorder struct{}

func (discardRecorder) Append(history.Record) {}
