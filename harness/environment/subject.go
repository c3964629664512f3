package environment

import (
	"context"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/pods"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// SubjectOptions says which controllers to start, and how.
type SubjectOptions struct {
	Target subject.Target
	// Controllers are the controllers under test, which the control plane must not run; see
	// Options.ControlPlane. Nil means kube.DefaultControllers().
	Controllers []kube.Controller
	// Spec has the number of replicas and their settings, as in a scenario. Without a lease
	// duration, all settings but Replicas have the defaults of scenarios.
	Spec scenario.Subject
	// Ours is the path of the workload-controller-manager, built from controllers/.
	Ours string
	// Gauntlet is the path of the gauntlet executable. If the subject runs in pods, it must be
	// statically linked, because its command `relay` runs beside the subject. The program
	// `standin`, which the workload's pods run on kind, must be in the same directory.
	Gauntlet string
}

// StartSubject starts the controllers under test with the permissions that they need. It
// returns when a replica holds the lease and, if the history contains the subject's
// requests, watches all resources that it needs.
//
// The replicas are processes of this machine, or pods if the provider has the capability
// SubjectInPods. They connect through the fault proxy if there is one. Without a fault
// proxy, the kubelet restarts replicas in pods, and Subject stays nil.
func (e *Environment) StartSubject(ctx context.Context, o SubjectOptions) error {
	return e.setUp(ctx, "subject", func(ctx context.Context) error {
		if err := o.complete(); err != nil {
			return err
		}
		if e.Capabilities().Has(cluster.SubjectInPods) && e.Proxy == nil {
			return e.deploySubject(ctx, &o)
		}
		return e.startSubject(ctx, &o)
	})
}

// complete sets the defaults of the options.
func (o *SubjectOptions) complete() (err error) {
	if o.Spec.LeaseDuration == 0 {
		replicas := max(o.Spec.Replicas, 1)
		o.Spec = scenario.DefaultSubject()
		o.Spec.Replicas = replicas
	}
	if o.Controllers == nil {
		o.Controllers, err = kube.ControllersNamed()
	}
	return err
}

// settings returns the subject's settings.
func (o *SubjectOptions) settings(leaseNamespace string) subject.Settings {
	return subject.Settings{
		Controllers: o.Controllers,
		QPS:         o.Spec.QPS, Burst: o.Spec.Burst, Concurrency: o.Spec.Concurrency, LeaseDuration: o.Spec.LeaseDuration,
		LeaseNamespace: leaseNamespace,
	}
}

// Preflight returns an error if a provider cannot run the subject, for example because an
// executable is missing. It starts nothing.
func (o SubjectOptions) Preflight(provider string, upstreamDir string) error {
	p, err := providers.Named(provider)
	if err != nil {
		return err
	}
	if err := errors.Join(o.complete(), o.Target.CheckControllers(o.Controllers)); err != nil {
		return err
	}
	if !p.Capabilities.Has(cluster.SubjectInPods) {
		_, err = o.executable(upstreamDir)
		return err
	}
	if _, ok := o.Target.Image(); ok || o.Target == subject.Upstream {
		return nil // the start checks whether the container engine or the node has the image
	}
	_, err = o.Target.Executable(o.Ours, "")
	return err
}

// executable returns the path of the executable that replicas run on this machine. It
// returns an error if the executable is missing.
func (o *SubjectOptions) executable(upstreamDir string) (string, error) {
	if o.Target != subject.Upstream {
		return o.Target.Executable(o.Ours, "")
	}
	upstream, err := providers.UpstreamControllerManager(upstreamDir)
	if err != nil {
		return "", err
	}
	return o.Target.Executable(o.Ours, upstream)
}

// replicaSetup says how the replicas of a subject run.
type replicaSetup struct {
	launch         subject.Launcher
	account        rbacv1.Subject // identity of the replicas at the API server
	leaseNamespace string         // namespace of the leader-election lease
}

// startSubject starts replicas that this program starts, stops and pauses.
func (e *Environment) startSubject(ctx context.Context, o *SubjectOptions) error {
	prepare := e.processReplicas
	if e.Capabilities().Has(cluster.SubjectInPods) {
		prepare = e.podReplicas
	}
	replicas, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, subjectTimeout)
	defer cancel()
	e.Subject, err = subject.Start(ctx, subject.Options{
		Target:         o.Target,
		Controllers:    o.Controllers,
		Account:        replicas.account,
		LeaseNamespace: replicas.leaseNamespace,
		Replicas:       o.Spec.Replicas,
		Launch:         replicas.launch,
		Holder:         e.holder,
		Admin:          e.Admin,
		Recorder:       e.subjectRecords(),
	})
	if err != nil {
		return err
	}
	e.teardowns = append(e.teardowns, e.Subject.Stop)
	if err := e.Subject.WaitForLeader(ctx); err != nil {
		return err
	}
	if e.watches.recording && e.Proxy != nil {
		e.watches.require(kube.Watched(o.Controllers))
	}
	return e.watches.wait(ctx)
}

// subjectRecords returns the recorder of the starts and ends of replicas.
func (e *Environment) subjectRecords() subject.Recorder {
	if e.Recorder == nil {
		return discardRecords{}
	}
	return e.Recorder
}

// holder returns the replica that uses a leader-election identity, "" if there is none.
func (e *Environment) holder(identity string) string {
	if e.Recorder != nil {
		_ = e.Recorder.Flush() // Failed reports a failure of the recorder
	}
	return e.watches.holder(identity)
}

// route changes a replica's client configuration so that the replica connects through
// the fault proxy, if there is one.
func (e *Environment) route(replica string, config *rest.Config) error {
	if e.Proxy == nil {
		return nil
	}
	return e.Proxy.Route(replica, config)
}

// processReplicas returns the setup for replicas that are processes of this machine. On a
// cluster with other users, the service account and the lease are in the namespace of the
// workload, and Stop revokes the cluster-wide permissions.
func (e *Environment) processReplicas(_ context.Context, o *SubjectOptions) (replicaSetup, error) {
	executable, err := o.executable(e.ControlPlane.UpstreamDir)
	if err != nil {
		return replicaSetup{}, err
	}
	account, namespace := subject.User(), subject.LeaseNamespace
	if shared, ok := e.Cluster.(cluster.Shared); ok {
		account, namespace = shared.SubjectAccount(), shared.Namespace()
		e.teardowns = append(e.teardowns, func(ctx context.Context) error { return subject.Revoke(ctx, e.Admin) })
	}
	return replicaSetup{
		launch: subject.Local{
			Executable:  executable,
			Settings:    o.settings(namespace),
			Cluster:     e.Cluster,
			Route:       e.route,
			ServesDebug: e.Recorder != nil,
			StateDir:    e.StateDir,
			LogDir:      e.LogDir,
		}.Launcher(),
		account:        account,
		leaseNamespace: namespace,
	}, nil
}

// podReplicas returns the setup for replicas that are pods of the cluster. Each pod
// contains a relay to the fault proxy.
func (e *Environment) podReplicas(ctx context.Context, o *SubjectOptions) (replicaSetup, error) {
	node, target, relay, err := e.loadSubject(ctx, o)
	if err != nil {
		return replicaSetup{}, err
	}
	return replicaSetup{
		launch: pods.Launcher(pods.Options{
			Subject: target, Settings: o.settings(subject.LeaseNamespace), Admin: e.Admin, Node: node, Clock: e.Clock,
		}, pods.RelayOptions{
			Image: relay, Route: e.route,
			Lost: func(replica string, err error) {
				e.records.Append(history.Record{Gap: &history.Gap{Source: replica + "'s connection to the fault proxy", Detail: err.Error()}})
			},
		}, e.LogDir),
		account:        pods.Account(),
		leaseNamespace: subject.LeaseNamespace,
	}, nil
}

// deployTimeout bounds the start of a subject that the kubelet restarts. The time to load
// its image does not count.
const deployTimeout = 2 * time.Minute

// deploySubject runs the subject in pods that the kubelet restarts.
func (e *Environment) deploySubject(ctx context.Context, o *SubjectOptions) error {
	nodes, err := e.nodes()
	if err != nil {
		return err
	}
	image, err := e.loadTarget(ctx, nodes, o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, deployTimeout, fmt.Errorf("timed out after %s", deployTimeout))
	defer cancel()
	if err := subject.Grant(ctx, e.Admin, o.Target, o.Controllers, pods.Account(), subject.LeaseNamespace); err != nil {
		return err
	}
	err = pods.Deploy(ctx, pods.Options{
		Subject: image, Settings: o.settings(subject.LeaseNamespace), Admin: e.Admin, Node: nodes.ControlPlane(), Clock: e.Clock,
	}, o.Spec.Replicas, e.Cluster.Config(cluster.Subject).CAData)
	if err != nil {
		return err
	}
	const interval = 100 * time.Millisecond
	return cluster.Poll(ctx, interval, "a replica to hold the lease", func(ctx context.Context) error {
		return subject.CheckLeaseHeld(ctx, e.Admin, subject.LeaseNamespace)
	})
}
