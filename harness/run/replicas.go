package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/kind"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/image"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/harness/subject/pods"
)

// replicaSetup says how the replicas of a subject run.
type replicaSetup struct {
	launch         subject.Launcher
	account        rbacv1.Subject // identity of the replicas at the API server
	leaseNamespace string         // namespace of the leader-election lease
}

// settingsOf returns the subject's settings from a scenario.
func settingsOf(spec scenario.Subject, leaseNamespace string) subject.Settings {
	return subject.Settings{
		QPS: spec.QPS, Burst: spec.Burst, Concurrency: spec.Concurrency, LeaseDuration: spec.LeaseDuration,
		LeaseNamespace: leaseNamespace,
	}
}

// localExecutable returns the path of the executable that replicas run on this machine.
// It returns an error if an upstream binary is missing.
func localExecutable(o *Options) (string, error) {
	binaries, err := embedded.FindBinaries(o.UpstreamDir)
	if err != nil {
		return "", err
	}
	return o.Target.Executable(o.Ours, binaries.KubeControllerManager)
}

// localReplicas returns the setup for replicas that are processes of this machine.
func localReplicas(_ context.Context, e *testEnvironment) (replicaSetup, error) {
	executable, err := localExecutable(e.Options)
	if err != nil {
		return replicaSetup{}, err
	}
	return e.localReplicas(executable, subject.User(), subject.LeaseNamespace), nil
}

func (e *testEnvironment) localReplicas(executable string, account rbacv1.Subject, leaseNamespace string) replicaSetup {
	return replicaSetup{
		launch: subject.Local{
			Executable:  executable,
			Settings:    settingsOf(e.Scenario.Subject, leaseNamespace),
			Cluster:     e.cluster,
			Route:       e.route,
			ServesDebug: true,
			StateDir:    e.dir.state(),
			LogDir:      e.dir.logs(),
		}.Launcher(),
		account:        account,
		leaseNamespace: leaseNamespace,
	}
}

// podReplicas returns the setup for replicas that are pods of a kind cluster. Each pod
// contains a relay to the fault proxy.
func podReplicas(ctx context.Context, e *testEnvironment) (replicaSetup, error) {
	c, ok := e.cluster.(*kind.Cluster)
	if !ok {
		return replicaSetup{}, fmt.Errorf("expected a kind cluster for a subject in pods, found %T", e.cluster)
	}
	var target, relay pods.Image
	loads, ctx := errgroup.WithContext(ctx)
	loads.Go(func() (err error) {
		target, err = loadTarget(ctx, c, e.Target, e.Ours, e.dir.state())
		return err
	})
	loads.Go(func() (err error) {
		relay.Reference, err = loadBinary(ctx, e.dir.state(), image.Spec{
			Reference: "localhost/gauntlet/relay:run", Binary: e.Gauntlet, Args: []string{"relay"},
		}, c.ControlPlane())
		return err
	})
	if err := loads.Wait(); err != nil {
		return replicaSetup{}, err
	}
	return replicaSetup{
		launch: pods.Launcher(pods.Options{
			Subject: target, Settings: settingsOf(e.Scenario.Subject, subject.LeaseNamespace), Admin: e.admin, Node: c.ControlPlane(), Clock: e.Clock,
		}, pods.RelayOptions{
			Image: relay, Route: e.route,
			Lost: func(replica string, err error) {
				e.recorder.Append(history.Record{Gap: &history.Gap{Source: replica + "'s connection to the fault proxy", Detail: err.Error()}})
			},
		}, e.dir.logs()),
		account:        pods.Account(),
		leaseNamespace: subject.LeaseNamespace,
	}, nil
}

// podsPreflight returns an error if the options do not allow a subject in pods. It needs no
// cluster.
func podsPreflight(o *Options) error {
	if o.Direct {
		return errors.New("on kind, the subject reaches the API server only through the fault proxy; a direct run needs another provider")
	}
	if _, ok := o.Target.Image(); ok || o.Target == subject.Upstream {
		return nil // the start checks whether the container engine or the node has the image
	}
	_, err := o.Target.Executable(o.Ours, "")
	return err
}

// loadTarget loads the image of a target on the cluster's control-plane node, if it is
// not there yet. It writes temporary files to dir.
func loadTarget(ctx context.Context, c *kind.Cluster, target subject.Target, ours, dir string) (pods.Image, error) {
	if target == subject.Upstream {
		reference, err := c.ControllerManagerImage(ctx)
		return pods.Image{Reference: reference, Command: []string{"kube-controller-manager"}}, err
	}
	if reference, ok := target.Image(); ok {
		archive := filepath.Join(dir, "image.tar")
		defer os.Remove(archive)
		has, err := c.SaveImage(ctx, reference, archive)
		if err == nil && has { // otherwise the node may have the image; if not, the pod's start fails
			err = c.ControlPlane().LoadImage(ctx, archive)
		}
		return pods.Image{Reference: reference}, err
	}
	binary, err := target.Executable(ours, "")
	if err != nil {
		return pods.Image{}, err
	}
	reference, err := loadBinary(ctx, dir, image.Spec{Reference: "localhost/gauntlet/subject:run", Binary: binary}, c.ControlPlane())
	return pods.Image{Reference: reference}, err
}

// loadBinary builds an image with a binary, loads it on nodes, and returns its
// reference.
func loadBinary(ctx context.Context, dir string, spec image.Spec, nodes ...cluster.Node) (string, error) {
	archive, err := os.CreateTemp(dir, "image-*.tar")
	if err != nil {
		return "", fmt.Errorf("building the image %s: %w", spec.Reference, err)
	}
	defer os.Remove(archive.Name())
	if err := errors.Join(image.Write(archive, spec), archive.Close()); err != nil {
		return "", err
	}
	loads, ctx := errgroup.WithContext(ctx)
	for _, node := range nodes {
		loads.Go(func() error { return node.LoadImage(ctx, archive.Name()) })
	}
	return spec.Reference, loads.Wait()
}
