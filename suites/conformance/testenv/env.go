// Package testenv provides the control plane and the program under test for the Ginkgo specs of
// the conformance suite. Each test process starts one control plane for each program under test.
// Each spec has its own namespace, and testenv watches the objects in this namespace.
//
// A spec sends requests through its [Namespace]. It states the guarantees of the controllers in
// three ways:
//
//	Always                   an invariant that holds after every change, with or without faults
//	Eventually               a condition that becomes true while faults are active
//	EventuallyWithoutFaults  a condition that becomes true after all faults are healed
//
// A wait does not poll: it evaluates its query after every watch event. The error of a failed wait
// contains the last values of the query and the last Event objects of the namespace.
package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/e2eframework"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// Options are the options for an environment that Start creates.
type Options struct {
	Provider string // name of the provider of the control plane; one of providers.Names()
	// StartCluster starts the control plane in this process. Nil means that the provider starts it.
	StartCluster StartCluster
	Target       subject.Target
	// Ours is the path of the executable workload-controller-manager, which contains our
	// controllers.
	Ours string
	// UpstreamDir is the directory that contains the binaries of etcd, Kubernetes and KWOK. If
	// it is empty, Start uses the cache that `gauntlet setup` fills.
	UpstreamDir string
	// NodeImage is the container image of a kind node. If it is empty, the provider uses its
	// default image.
	NodeImage string
	// Existing selects the cluster for --provider=existing.
	Existing cluster.Existing
	// LogDir is the directory for the logs of all components. Stop does not remove it.
	LogDir string
	// Profile selects the faults that are active while Ginkgo specs run. Nil means no faults.
	Profile *Profile
	// Seed is the seed of the random numbers that all faults draw.
	Seed uint64
}

// StartCluster starts a control plane in this process. The seed determines its random numbers.
type StartCluster func(ctx context.Context, seed uint64, o providers.Options) (cluster.Cluster, error)

// Env is an environment for Ginkgo specs: a control plane on which a program under test runs.
type Env struct {
	options Options
	env     *environment.Environment
	// teardowns contains the functions that stop the control plane and all other components.
	teardowns environment.Teardowns
	objects   *resources.Resources // administrator's client for all namespaces
	// simulatedNodes is true if the nodes are simulated. No containers run on simulated nodes.
	simulatedNodes bool
	recorder       *subjectRecorder
}

// nodeCount is the number of nodes in the control plane on which pods can run.
const nodeCount = 2

// clusterName is the name under which e2e-framework stores the cluster in a context.
const clusterName = "conformance"

// Start starts a control plane and a program under test, and waits until the program holds its
// lease. After an error, Start stops everything that it has started.
func Start(ctx context.Context, o Options) (*Env, error) {
	e := &Env{options: o, recorder: newSubjectRecorder()}
	create := e.create
	if o.StartCluster != nil {
		create = e.createInProcess
	}
	err := create(ctx)
	if err == nil {
		err = e.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, e.Stop(ctx))
	}
	return e, nil
}

// create creates a cluster of the provider.
func (e *Env) create(ctx context.Context) error {
	o := &e.options
	provider, err := e2eframework.New(o.Provider)
	if err != nil {
		return err
	}
	e.teardowns = append(e.teardowns, provider.Destroy)
	ctx, err = envfuncs.CreateClusterWithOpts(provider, clusterName,
		e2eframework.WithNodes(nodeCount), e2eframework.WithLogDir(o.LogDir), e2eframework.WithSeed(o.Seed),
		e2eframework.WithControlPlane(func(plane *providers.Options) {
			// With Controllers nil, the control plane does not run the controllers under test.
			plane.Controllers, plane.UpstreamDir, plane.NodeImage, plane.Existing = nil, o.UpstreamDir, o.NodeImage, o.Existing
		}))(ctx, envconf.New())
	if err != nil {
		return err
	}
	e.env, err = e2eframework.Environment(ctx, clusterName)
	return err
}

// createInProcess starts a control plane with the function StartCluster of the options.
func (e *Env) createInProcess(ctx context.Context) error {
	o := &e.options
	if err := os.MkdirAll(o.LogDir, 0o755); err != nil {
		return err
	}
	plane := providers.Options{Nodes: nodeCount}
	c, err := o.StartCluster(ctx, o.Seed, plane)
	if err != nil {
		return err
	}
	e.teardowns = append(e.teardowns, c.Stop)
	e.env, err = environment.On(c, environment.Options{Provider: o.Provider, ControlPlane: plane, LogDir: o.LogDir, Seed: o.Seed})
	if err != nil {
		return err
	}
	e.teardowns = append(e.teardowns, e.env.Stop)
	return nil
}

// start starts the fault proxy and the program under test, and creates the client for Ginkgo
// specs.
func (e *Env) start(ctx context.Context) (err error) {
	config := e.env.Cluster.Config(cluster.Admin)
	config.WarningHandler = rest.NoWarnings{} // do not warn: the specs use the deprecated Endpoints API on purpose
	if e.objects, err = resources.New(config); err != nil {
		return err
	}
	if e.simulatedNodes, err = e.hasSimulatedNodes(ctx); err != nil {
		return err
	}
	if !e.env.Capabilities().Has(cluster.SubjectInPods) { // a subject in pods connects directly to the API server
		if err := e.env.StartProxy(ctx, e.recorder); err != nil {
			return err
		}
	}
	return e.env.StartSubject(ctx, environment.SubjectOptions{Target: e.options.Target, Ours: e.options.Ours})
}

// hasSimulatedNodes reports whether nodes of the cluster are simulated. The capabilities of the
// provider are not enough to decide this, because KWOK may also simulate nodes of an existing
// cluster. hasSimulatedNodes therefore looks for nodes with KWOK's label.
func (e *Env) hasSimulatedNodes(ctx context.Context) (bool, error) {
	if e.env.Capabilities().Has(cluster.SimulatedKubelets) {
		return true, nil
	}
	var nodes corev1.NodeList
	if err := e.in("").List(ctx, &nodes, resources.WithLabelSelector("type=kwok")); err != nil {
		return false, fmt.Errorf("listing the nodes with the label type=kwok: %w", err)
	}
	return len(nodes.Items) > 0, nil
}

// Stop stops all components in the reverse order of their start, and removes their state.
func (e *Env) Stop(ctx context.Context) error { return e.teardowns.Run(ctx) }

// in returns a client for the objects in a namespace. The namespace "" means the whole cluster.
func (e *Env) in(namespace string) *resources.Resources {
	copied := *e.objects
	return copied.WithNamespace(namespace)
}

// componentErr returns an error if a component of the control plane or the program under test has
// exited.
func (e *Env) componentErr() error {
	if err := e.env.Cluster.Err(); err != nil {
		return err
	}
	if e.env.Subject != nil {
		return e.env.Subject.Err()
	}
	return nil
}

// subjectFailed returns a channel that is closed when the program under test exits. It returns nil
// if the program runs in pods.
func (e *Env) subjectFailed() <-chan struct{} {
	if e.env.Subject == nil {
		return nil
	}
	return e.env.Subject.Failed()
}

// proxyMissing returns an error if no fault proxy stands between the program under test and the
// API server. Without this proxy, faults and the recording of requests are impossible.
func (e *Env) proxyMissing() error {
	if e.env.Proxy == nil {
		return fmt.Errorf("provider %s has no fault proxy between the subject and the API server", e.options.Provider)
	}
	return nil
}
