package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/faults/inprocess"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/pods"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// SubjectOptions says which subject (program under test) [Environment.StartSubject] starts, and
// with which settings.
type SubjectOptions struct {
	// Target says which program is under test, such as subject.Upstream.
	Target subject.Target
	// Controllers lists the controllers under test. Options.ControlPlane.Controllers must be equal,
	// so that the control plane does not run the same controllers. Nil means
	// [kube.DefaultControllers].
	Controllers []kube.Controller
	// Kinds describes Kinds that the controllers under test watch and that package kube does not
	// know, such as custom resources.
	Kinds []kube.Kind
	// Spec contains the number of replicas and their settings, like the field subject of a scenario.
	// If Spec.LeaseDuration is 0, only Spec.Replicas counts, and all other settings have their
	// default values.
	Spec scenario.Subject
	// Ours is the path of workload-controller-manager, the executable of the subject `ours`. `make
	// build` builds it.
	Ours string
	// Gauntlet is the path of the gauntlet executable. If the program under test runs in pods, a
	// sidecar container runs `gauntlet relay`. This executable must then be statically linked. On
	// kind, the workload's pods run the executable `standin`, which must be in the same directory.
	Gauntlet string
}

// StartSubject grants the subject (the program under test) its RBAC permissions ([subject.Grant]),
// and starts the subject. For the target [subject.Program], it does nothing.
//
// StartSubject returns when the subject is ready:
//
//   - A replica holds the lease, if gauntlet knows the Lease of the program.
//   - The leader watches all resources that the controllers need, if Record and StartProxy were
//     called.
//   - All replicas accept connections to their webhooks, if they have webhooks.
//
// The replicas are local processes, or pods if the provider has the capability SubjectInPods. The
// replicas connect to the fault proxy if StartProxy was called, and otherwise directly to the API
// server.
//
// Without a fault proxy, the kubelet manages replicas in pods, and restarts them. The field
// e.Subject then stays nil.
func (e *Environment) StartSubject(ctx context.Context, o SubjectOptions) error {
	if err := e.canStart("the subject", e.Subject != nil); err != nil {
		return err
	}
	if o.Target == subject.Program {
		return nil
	}
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

// complete replaces o.Controllers by its default if it is nil. It replaces o.Spec by its default
// if o.Spec.LeaseDuration is 0. The new Spec keeps the number of replicas, but has at least one.
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

// watched returns the Kinds that the leader must watch before the controllers under test count as
// ready.
func (o *SubjectOptions) watched() []kube.Kind {
	watched := kube.Watched(o.Controllers)
	for _, kind := range o.Kinds {
		if slices.ContainsFunc(o.Controllers, func(c kube.Controller) bool { return slices.Contains(c.Watches, kind.Name) }) {
			watched = append(watched, kind)
		}
	}
	return watched
}

// settings returns the settings with which each replica starts, such as its rate limit. The
// argument leaseNamespace is the namespace of the replicas' leader-election Lease.
func (o *SubjectOptions) settings(leaseNamespace string) subject.Settings {
	return subject.Settings{
		Controllers: o.Controllers,
		QPS:         o.Spec.QPS, Burst: o.Spec.Burst, Concurrency: o.Spec.Concurrency, LeaseDuration: o.Spec.LeaseDuration,
		LeaseNamespace: leaseNamespace,
	}
}

// Preflight returns an error if the named provider cannot run the program under test. For example,
// an executable is missing. Preflight starts nothing.
//
// The argument upstreamDir is the value of providers.Options.UpstreamDir.
func (o SubjectOptions) Preflight(provider string, upstreamDir string) error {
	p, err := providers.Named(provider)
	if err != nil {
		return err
	}
	switch o.Target {
	case subject.Program:
		return nil
	case subject.Target{}:
		return errors.New("found no SubjectOptions.Target; expected subject.Ours, subject.Upstream, or the result of subject.ParseTarget or subject.Command")
	}
	if err := errors.Join(o.complete(), o.Target.CheckControllers(o.Controllers), CheckTarget(p, o.Target)); err != nil {
		return err
	}
	if p.Capabilities.Has(cluster.SubjectLinked) {
		return nil // CheckTarget has checked that the subject is linked
	}
	if !p.Capabilities.Has(cluster.SubjectInPods) {
		_, err = o.executable(upstreamDir)
		return err
	}
	if _, ok := o.Target.Image(); ok || o.Target == subject.Upstream {
		return nil // StartSubject checks whether the container engine or the node has the image
	}
	_, err = o.Target.Executable(o.Ours, "")
	return err
}

// CheckTarget returns an error if the provider can never run the target, a program under test. For
// example, an image needs a provider that runs the program in pods. CheckTarget does not check
// whether this machine has the program.
func CheckTarget(provider providers.Provider, target subject.Target) error {
	linked := provider.Capabilities.Has(cluster.SubjectLinked)
	_, isPackage := target.Package()
	_, isImage := target.Image()
	ownProgram := providers.With(cluster.OwnsControlPlane, cluster.SubjectAsProcess) // for a program with flags and objects of its own
	switch {
	case target.Definition() != nil && !slices.Contains(ownProgram, provider.Name):
		return fmt.Errorf("subject %s: found provider %s; expected --provider=%s, which has its own control plane and runs the subject as a process",
			target, provider.Name, nearest.List(ownProgram, "or"))
	case isPackage && !linked:
		return fmt.Errorf("subject %s: found provider %s; expected --provider=%s, or an executable as --subject=exec:PATH",
			target, provider.Name, nearest.List(providers.With(cluster.SubjectLinked), "or"))
	case linked && isImage:
		return fmt.Errorf("subject %s: found provider %s; expected --provider=%s", target, provider.Name, nearest.List(providers.With(cluster.SubjectInPods), "or"))
	case linked && !isPackage && target != subject.Ours && target != subject.Upstream:
		return fmt.Errorf("subject %s: found provider %s; expected --provider=%s, or one of the subjects that are linked into gauntlet-virtual: %s, %s and go:PATH",
			target, provider.Name, nearest.List(providers.With(cluster.SubjectAsProcess), "or"), subject.Ours, subject.Upstream)
	}
	if isImage {
		if err := provider.Capabilities.Require("subject "+target.String(), cluster.SubjectInPods); err != nil {
			return fmt.Errorf("%w%s, or --subject=exec:PATH", err, providers.Alternatives(err))
		}
	}
	return nil
}

// executable returns the path of the program that local replicas run. If the file is missing,
// executable returns an error.
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

// replicaSetup says how to start the replicas of a program under test, and as which user they
// authenticate.
type replicaSetup struct {
	launch         subject.Launcher
	account        rbacv1.Subject    // user or ServiceAccount of the replicas
	leaseNamespace string            // namespace of the leader-election Lease of the replicas
	webhooks       *subject.Webhooks // webhooks of a program that a subject file describes; nil for other programs
}

// startSubject starts a subject (program under test) with replicas that gauntlet manages. Faults
// can stop, pause and restart such replicas. The kubelet does not restart them.
func (e *Environment) startSubject(ctx context.Context, o *SubjectOptions) error {
	prepare := e.processReplicas
	switch {
	case e.Capabilities().Has(cluster.SubjectInPods):
		prepare = e.podReplicas
	case e.Capabilities().Has(cluster.SubjectLinked):
		prepare = e.linkedReplicas
	}
	replicas, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	d := o.Target.Definition()
	if d != nil {
		if err := e.install(ctx, d.Namespace, replicas.webhooks.Objects(), replicas.account); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, subjectTimeout)
	defer cancel()
	if d != nil {
		replicas.webhooks.CopySecret(ctx, e.Admin)
	}
	start := e.Clock.Now()
	e.Subject, err = subject.Start(ctx, subject.Options{
		Target:         o.Target,
		Controllers:    o.Controllers,
		Account:        replicas.account,
		LeaseNamespace: replicas.leaseNamespace,
		Replicas:       o.Spec.Replicas,
		Launch:         replicas.launch,
		Holder:         e.holder,
		Leader:         e.lastLeaseWriter,
		Admin:          e.Admin,
		Recorder:       e.subjectRecords(),
	})
	if err != nil {
		return err
	}
	e.teardowns = append(e.teardowns, e.Subject.Stop)
	err = e.Subject.WaitForLeader(ctx)
	if err == nil {
		if e.watches.recording && e.Proxy != nil {
			e.watches.require(o.watched())
		}
		err = e.watches.wait(ctx, e.Subject.Err, func(text string) { e.progress("waiting for the subject: %s", text) })
		if errors.Is(err, context.DeadlineExceeded) && d != nil {
			err = fmt.Errorf("%w; if the program never watches one of these resources, describe its controllers in the section operator of the subject file", err)
		}
	}
	if err == nil && replicas.webhooks != nil {
		err = e.waitForWebhooks(ctx, replicas.webhooks)
	}
	if err != nil {
		return e.Subject.ExplainStart(err, e.Clock.Since(start))
	}
	return nil
}

// waitForWebhooks waits until all replicas accept connections to their webhooks. If a replica ends
// unexpectedly during the wait, waitForWebhooks returns that replica's error.
func (e *Environment) waitForWebhooks(ctx context.Context, webhooks *subject.Webhooks) error {
	const interval = 20 * time.Millisecond
	err := cluster.Poll(ctx, interval, "the webhooks of the subject", func(ctx context.Context) error {
		if e.Subject.Err() != nil {
			return nil
		}
		return webhooks.Listening(ctx)
	})
	return cmp.Or(e.Subject.Err(), err)
}

// subjectRecords returns the recorder to which the subject reports that a replica starts or ends.
// Without a history, that recorder discards all records.
func (e *Environment) subjectRecords() subject.Recorder {
	if e.Recorder == nil {
		return discardRecords{}
	}
	return e.Recorder
}

// holder returns the name of the running replica, such as subject-0, with the given leader-election
// identity. It returns "" if no running replica has this identity.
func (e *Environment) holder(identity string) string {
	if e.Recorder != nil {
		_ = e.Recorder.Flush() // e.watches has then observed all records; Environment.Failed returns the error of Flush
	}
	return e.watches.holder(identity)
}

// lastLeaseWriter returns the name of the running replica that last wrote its identity to a Lease.
// It returns "" if that replica has ended, or if no replica has written a Lease.
func (e *Environment) lastLeaseWriter() string {
	if e.Recorder != nil {
		_ = e.Recorder.Flush() // e.watches has then observed all records; Environment.Failed returns the error of Flush
	}
	return e.watches.lastWriter()
}

// route changes config, a replica's client configuration, so that the replica connects to the fault
// proxy. Without a fault proxy, route does not change config.
func (e *Environment) route(replica string, config *rest.Config) error {
	if e.Proxy == nil {
		return nil
	}
	return e.Proxy.Route(replica, config)
}

// processReplicas returns a replicaSetup that starts the program under test as local processes.
//
// On a cluster that other people also use (cluster.Shared), the program's ServiceAccount and Lease
// are in the run's namespace. The program's ClusterRoles and ClusterRoleBindings are outside this
// namespace, so Stop and Reset of the Environment delete them.
func (e *Environment) processReplicas(ctx context.Context, o *SubjectOptions) (replicaSetup, error) {
	executable, err := o.executable(e.ControlPlane.UpstreamDir)
	if err != nil {
		return replicaSetup{}, err
	}
	account, namespace := subject.User(), subject.LeaseNamespace
	if shared, ok := e.Cluster.(cluster.Shared); ok {
		account, namespace = shared.SubjectAccount(), shared.Namespace()
		e.teardowns = append(e.teardowns, func(ctx context.Context) error { return subject.Revoke(ctx, e.Admin) })
	}
	var webhooks *subject.Webhooks
	if d := o.Target.Definition(); d != nil {
		if webhooks, err = subject.ServeWebhooks(ctx, d, e.StateDir, o.Spec.Replicas); err != nil {
			return replicaSetup{}, err
		}
		e.teardowns = append(e.teardowns, webhooks.Stop)
	}
	return replicaSetup{
		launch: subject.Local{
			Executable:  executable,
			Webhooks:    webhooks,
			Target:      o.Target,
			Settings:    o.settings(namespace),
			Cluster:     e.Cluster,
			Route:       e.route,
			ServesDebug: e.Recorder != nil,
			StateDir:    e.StateDir,
			LogDir:      e.LogDir,
		}.Launcher(),
		account:        account,
		leaseNamespace: namespace,
		webhooks:       webhooks,
	}, nil
}

// linkedReplicas returns a replicaSetup for replicas that run as goroutines of this process. The
// controllers under test are linked into the executable of this process.
func (e *Environment) linkedReplicas(_ context.Context, o *SubjectOptions) (replicaSetup, error) {
	linker, ok := e.Cluster.(subject.Linker)
	if !ok {
		return replicaSetup{}, fmt.Errorf("provider %s cannot start replicas in this process: found a cluster of type %T; expected a cluster that implements subject.Linker", e.Provider, e.Cluster)
	}
	main, err := linker.Main(o.Target)
	if err != nil {
		return replicaSetup{}, err
	}
	disconnect := func(string) {}
	if proxy, ok := e.Proxy.(*inprocess.Proxy); ok {
		disconnect = proxy.Disconnect
	}
	return replicaSetup{
		launch: subject.Linked{
			Target: o.Target, Main: main, Settings: o.settings(subject.LeaseNamespace), Cluster: e.Cluster,
			Route: e.route, Disconnect: disconnect,
		}.Launcher(),
		account:        subject.User(),
		leaseNamespace: subject.LeaseNamespace,
	}, nil
}

// podReplicas returns a replicaSetup for replicas that run as pods on the control plane node. The
// relay container in each pod forwards the replica's requests to the fault proxy.
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

// deployTimeout limits the time until a deployed replica holds the lease. The time to load the
// image of the program under test does not count.
const deployTimeout = 2 * time.Minute

// deploySubject starts a subject (program under test) in pods that the kubelet restarts. The
// replicas connect directly to the API server. deploySubject returns when a replica holds the
// lease.
func (e *Environment) deploySubject(ctx context.Context, o *SubjectOptions) error {
	nodes, err := e.nodes()
	if err != nil {
		return err
	}
	image, err := e.loadTarget(ctx, nodes, o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, deployTimeout, fmt.Errorf("the controllers under test were not deployed within %s: expected a running replica that holds the lease", deployTimeout))
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
