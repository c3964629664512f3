// Package controlplane is a control plane in virtual time. It implements [cluster.Cluster].
//
// All its parts are goroutines of this process: an etcd in memory, kube-apiserver's registries and
// handlers, simulated kubelets and a simulated scheduler. The garbage collector and the controllers of
// namespaces, quotas, default ServiceAccounts and nodes are those of kube-controller-manager; see
// controllers.go and nodes.go. Clients reach the API server by function calls.
//
// In a bubble of testing/synctest, time advances only while all goroutines wait.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/virtual"
	"github.com/kube-gauntlet/gauntlet/harness/internal/memetcd"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/harness/virtual/apiserver"
	"github.com/kube-gauntlet/gauntlet/harness/virtual/simulation"
	"github.com/kube-gauntlet/gauntlet/harness/virtual/subjects"
)

// ControlPlane is a running control plane. Create it with [Start].
type ControlPlane struct {
	etcd       *memetcd.Store
	apiServer  *apiServer
	simulation *simulation.Simulation
	stop       func() // stops the controllers of the control plane, except nodeControllers
	// nodeControllers are the controllers that act on lost nodes.
	nodeControllers *nodeControllers
}

var (
	_ cluster.Cluster      = (*ControlPlane)(nil)
	_ cluster.EtcdProvider = (*ControlPlane)(nil)
	_ cluster.Restartable  = (*ControlPlane)(nil)
	_ subject.Linker       = (*ControlPlane)(nil)
)

// Start starts a control plane in virtual time. The seed determines the latency of requests. Of the
// options, Start uses only Nodes, PodStartDelay, PodStopDelay and Controllers. The caller must have called
// [apiserver.Prepare] outside of the bubble of testing/synctest.
func Start(ctx context.Context, seed uint64, o providers.Options) (*ControlPlane, error) {
	moveIntoBubble()
	etcd := memetcd.New()
	c := &ControlPlane{etcd: etcd, apiServer: newAPIServer(etcd, seed)}
	c.nodeControllers = &nodeControllers{config: c.component("kube-controller-manager")}
	if err := c.apiServer.start(ctx, apiserver.Options{}); err != nil {
		return nil, err
	}
	if err := c.createNamespaces(ctx); err != nil {
		return nil, errors.Join(err, c.Stop(ctx))
	}
	var err error
	if c.stop, err = startControllers(context.WithoutCancel(ctx), c.component("kube-controller-manager"), o.Controllers); err != nil {
		return nil, errors.Join(err, c.Stop(ctx))
	}
	scheduler, schedulerErr := kubernetes.NewForConfig(c.component("kube-scheduler"))
	kubelet, kubeletErr := kubernetes.NewForConfig(c.component("kubelet"))
	if err = errors.Join(schedulerErr, kubeletErr); err == nil {
		c.simulation, err = simulation.Start(ctx, simulation.Options{
			Nodes: o.Nodes, StartDelay: o.PodStartDelay, StopDelay: o.PodStopDelay, Scheduler: scheduler, Kubelet: kubelet,
			NodeDeleted: func() { c.nodeDeleted(ctx) },
		})
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop(ctx))
	}
	return c, nil
}

// createNamespaces creates the namespaces default and kube-system, which every cluster has.
func (c *ControlPlane) createNamespaces(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return err
	}
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
		if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// Name returns "virtual", the name of the provider.
func (c *ControlPlane) Name() string { return virtual.Name }

// Capabilities returns the capabilities of the provider.
func (c *ControlPlane) Capabilities() cluster.Capabilities { return virtual.Capabilities }

// Config returns a client configuration for a role, such as the program under test. Its Transport
// calls the API server as a function, without a network.
func (c *ControlPlane) Config(role cluster.Role) *rest.Config {
	return &rest.Config{
		Host: "http://apiserver", Transport: c.apiServer, WarningHandler: rest.NoWarnings{}, UserAgent: "gauntlet-" + string(role), QPS: -1,
	}
}

// component returns the client configuration of a component of the control plane, such as
// kube-scheduler.
func (c *ControlPlane) component(name string) *rest.Config {
	config := c.Config(cluster.Support)
	config.UserAgent, config.ContentType = name, runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

// recoveryTimeout limits how long [ControlPlane.Health] waits for a halted component.
const recoveryTimeout = time.Minute

// Health waits until no part of the control plane is halted, at most for a minute.
func (c *ControlPlane) Health(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, recoveryTimeout, fmt.Errorf("the control plane did not recover within %s", recoveryTimeout))
	defer cancel()
	if err := c.apiServer.awaitRunning(ctx); err != nil {
		return err
	}
	return c.etcd.AwaitRunning(ctx)
}

// Failed returns nil, a channel that is never closed, because no part of this control plane exits
// on its own.
func (c *ControlPlane) Failed() <-chan struct{} { return nil }

// Err returns nil, because no part of this control plane fails on its own.
func (c *ControlPlane) Err() error { return nil }

// Etcd returns a client of the etcd in memory.
func (c *ControlPlane) Etcd(ctx context.Context) (*clientv3.Client, error) {
	return c.etcd.Client(context.WithoutCancel(ctx)), nil
}

// Main returns the function that runs a replica of the controllers under test in this process. It
// implements [subject.Linker].
func (c *ControlPlane) Main(target subject.Target) (subject.Main, error) {
	return subjects.Main(target)
}

// Halt stops the API server or etcd, as if its process was killed. It implements
// [cluster.Restartable].
func (c *ControlPlane) Halt(_ context.Context, component cluster.Component) error {
	switch component {
	case cluster.APIServer:
		c.apiServer.halt()
	case cluster.Etcd:
		c.etcd.Halt()
	default:
		return errNotHalted(component)
	}
	return nil
}

// Resume starts the API server or etcd again after [ControlPlane.Halt]. It implements
// [cluster.Restartable].
func (c *ControlPlane) Resume(ctx context.Context, component cluster.Component) error {
	switch component {
	case cluster.APIServer:
		// Clients must list again, so the new API server has a watch cache, which is empty.
		return c.apiServer.start(ctx, apiserver.Options{WatchCache: true})
	case cluster.Etcd:
		c.etcd.Resume()
		return nil
	}
	return errNotHalted(component)
}

// errNotHalted returns the error of Halt and Resume for an unknown component.
func errNotHalted(component cluster.Component) error {
	return fmt.Errorf("component %q cannot be halted: expected %s or %s", component, cluster.APIServer, cluster.Etcd)
}

// Stop stops all parts of the control plane.
func (c *ControlPlane) Stop(context.Context) error {
	if c.simulation != nil {
		c.simulation.Stop()
	}
	c.nodeControllers.stop()
	if c.stop != nil {
		c.stop()
	}
	c.etcd.Resume() // requests may wait for etcd
	c.apiServer.stop()
	return nil
}
