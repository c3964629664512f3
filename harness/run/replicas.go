package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/kind"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/image"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/harness/subject/pods"
)

// replicaSetup is how the replicas of a subject run on a control plane.
type replicaSetup struct {
	launch         subject.Launcher
	account        rbacv1.Subject // who they are to the API server
	leaseNamespace string         // where they elect
}

// settingsOf is what a scenario asks of its subject, which elects in a namespace.
func settingsOf(asked scenario.Subject, leaseNamespace string) subject.Settings {
	return subject.Settings{
		QPS: asked.QPS, Burst: asked.Burst, Concurrency: asked.Concurrency, LeaseDuration: asked.LeaseDuration,
		LeaseNamespace: leaseNamespace,
	}
}

// localExecutable is what the processes of a subject run, with its needs there.
func localExecutable(o *Options) (string, error) {
	binaries, err := embedded.FindBinaries(o.UpstreamDir)
	if err != nil {
		return "", err
	}
	return o.Target.Executable(o.Ours, binaries.KubeControllerManager)
}

// localReplicas are processes of this machine.
func localReplicas(_ context.Context, s *testEnvironment) (replicaSetup, error) {
	executable, err := localExecutable(s.Options)
	if err != nil {
		return replicaSetup{}, err
	}
	return s.localReplicas(executable, subject.User(), subject.LeaseNamespace), nil
}

func (s *testEnvironment) localReplicas(executable string, account rbacv1.Subject, leaseNamespace string) replicaSetup {
	return replicaSetup{
		launch: subject.Local{
			Executable:  executable,
			Settings:    settingsOf(s.Scenario.Subject, leaseNamespace),
			Cluster:     s.cluster,
			Route:       s.route,
			ServesDebug: true,
			StateDir:    s.dir.state(),
			LogDir:      s.dir.logs(),
		}.Launcher(),
		account:        account,
		leaseNamespace: leaseNamespace,
	}
}

// podReplicas are pods of a kind cluster, each behind a relay.
func podReplicas(ctx context.Context, s *testEnvironment) (replicaSetup, error) {
	c, ok := s.cluster.(*kind.Cluster)
	if !ok {
		return replicaSetup{}, fmt.Errorf("a subject in pods needs a kind cluster, not a %T", s.cluster)
	}
	var target, relay pods.Image
	loads, ctx := errgroup.WithContext(ctx)
	loads.Go(func() (err error) {
		target, err = loadTarget(ctx, c, s.Target, s.Ours, s.dir.state())
		return err
	})
	loads.Go(func() (err error) {
		relay.Reference, err = loadBinary(ctx, s.dir.state(), image.Spec{
			Reference: "localhost/gauntlet/relay:run", Binary: s.Gauntlet, Args: []string{"relay"},
		}, c.ControlPlane())
		return err
	})
	if err := loads.Wait(); err != nil {
		return replicaSetup{}, err
	}
	return replicaSetup{
		launch: pods.Launcher(pods.Options{
			Subject: target, Settings: settingsOf(s.Scenario.Subject, subject.LeaseNamespace), Admin: s.admin, Node: c.ControlPlane(), Clock: s.Clock,
		}, pods.RelayOptions{
			Image: relay, Route: s.route,
			Lost: func(replica string, err error) {
				s.recorder.Append(history.Record{Gap: &history.Gap{Source: replica + "'s way to the proxy", Detail: err.Error()}})
			},
		}, s.dir.logs()),
		account:        pods.Account(),
		leaseNamespace: subject.LeaseNamespace,
	}, nil
}

// podsPreflight is what keeps a subject from running in pods, as far as can be told
// before there is a cluster.
func podsPreflight(o *Options) error {
	if o.Direct {
		return errors.New("on kind a subject has no way to the API server but the fault proxy")
	}
	if _, ok := o.Target.Image(); ok || o.Target == subject.Upstream {
		return nil // what the engine or the node has will be seen there
	}
	_, err := o.Target.Executable(o.Ours, "")
	return err
}

// loadTarget puts the image of a target onto a cluster's control plane, if it is
// not there already. What it has to write it writes into dir.
func loadTarget(ctx context.Context, c *kind.Cluster, target subject.Target, ours, dir string) (pods.Image, error) {
	if target == subject.Upstream {
		return upstreamImage(ctx, c)
	}
	if reference, ok := target.Image(); ok {
		archive := filepath.Join(dir, "image.tar")
		defer os.Remove(archive)
		has, err := kind.SaveImage(ctx, reference, archive)
		if err == nil && has { // else it is the node's, or the pod will say that it is not
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

// upstreamImage is the one that the cluster's own kube-controller-manager runs
// from.
func upstreamImage(ctx context.Context, c *kind.Cluster) (pods.Image, error) {
	admin, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return pods.Image{}, err
	}
	node, err := admin.CoreV1().Nodes().Get(ctx, c.ControlPlane().Name(), metav1.GetOptions{})
	if err != nil {
		return pods.Image{}, fmt.Errorf("asking for the images of the control plane's node: %w", err)
	}
	reference, err := kind.ControllerManagerImage(node)
	return pods.Image{Reference: reference, Command: []string{"kube-controller-manager"}}, err
}

// loadBinary makes an image of a binary, puts it onto nodes, and returns its name.
func loadBinary(ctx context.Context, dir string, spec image.Spec, nodes ...*kind.Node) (string, error) {
	archive, err := os.CreateTemp(dir, "image-*.tar")
	if err != nil {
		return "", fmt.Errorf("making the image %s: %w", spec.Reference, err)
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
