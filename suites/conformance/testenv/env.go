// Package testenv provides the environment of conformance specs. Each test process has
// one control plane with a subject. Each spec has a namespace of its own, whose
// objects are watched from the beginning.
//
// A spec sends requests through its [Namespace] and states guarantees of the
// controllers in three ways:
//
//	Always                   an invariant that holds after every change, with or without faults
//	Eventually               a condition that becomes true while faults are active
//	EventuallyWithoutFaults  a condition that becomes true after all faults are healed
//
// Waits do not sleep or poll. Instead, they evaluate their query after every watch
// event. The error of a failed wait has the last states of the queried value and the
// last events of the namespace.
package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults/proxy"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// Options configures an Env.
type Options struct {
	Provider string // one of run.Providers()
	Target   subject.Target
	// Ours is the path of the workload-controller-manager binary.
	Ours string
	// UpstreamDir holds the binaries of etcd, Kubernetes and KWOK. Empty means the
	// cache that harness/upstream fills.
	UpstreamDir string
	// NodeImage is the image of a kind node. Empty means the default of the provider.
	NodeImage string
	// Existing selects the cluster of provider existing.
	Existing existing.Options
	// LogDir is the directory for the logs of all components. Stop does not remove it.
	LogDir string
	// Profile is the set of background faults. Nil means none.
	Profile *Profile
	// Seed is the random seed of the faults.
	Seed uint64
}

// Env is a control plane with a subject.
type Env struct {
	options Options
	cluster cluster.Cluster
	admin   kubernetes.Interface
	subject *subject.Subject // nil if it runs in pods
	proxy   *proxy.Proxy     // nil on kind
	// simulatedNodes is true if KWOK simulates the nodes, so that no containers run.
	simulatedNodes bool
	recorder       *subjectRecorder
	// stops contains the functions that stop the components, in the order of the start of
	// the components.
	stops run.Teardowns
}

// nodeCount is the number of nodes for pods.
const nodeCount = 2

// stopTimeout limits how long Stop may take.
const stopTimeout = 30 * time.Second

// Start starts a control plane and a subject, and waits until the subject holds its
// lease. It stops everything before it returns an error.
func Start(ctx context.Context, o Options) (*Env, error) {
	e := &Env{options: o, recorder: newSubjectRecorder()}
	if err := e.start(ctx); err != nil {
		return nil, errors.Join(err, e.Stop(ctx))
	}
	return e, nil
}

func (e *Env) start(ctx context.Context) error {
	dir, err := e.makeDirectories()
	if err != nil {
		return err
	}
	controlPlane := run.ControlPlane{
		Nodes: nodeCount, Dir: dir, LogDir: e.options.LogDir, UpstreamDir: e.options.UpstreamDir, NodeImage: e.options.NodeImage,
		Existing: e.options.Existing,
	}
	if e.cluster, err = run.StartControlPlane(ctx, e.options.Provider, controlPlane); err != nil {
		return err
	}
	e.stops = append(e.stops, e.cluster.Stop)
	if e.admin, err = kubernetes.NewForConfig(e.cluster.Config(cluster.Admin)); err != nil {
		return err
	}
	if e.simulatedNodes, err = hasSimulatedNodes(ctx, e.admin); err != nil {
		return err
	}
	if !e.cluster.Capabilities().Has(cluster.SubjectInPods) { // pods connect directly to the API server
		if e.proxy, err = run.StartProxy(ctx, e.cluster, e.recorder, clock.RealClock{}); err != nil {
			return err
		}
		e.stops = append(e.stops, e.proxy.Stop)
	}
	if !e.cluster.Capabilities().Has(cluster.OwnsControlPlane) {
		e.stops = append(e.stops, func(ctx context.Context) error { return subject.Revoke(ctx, e.admin) })
	}
	standing := run.StandingSubject{Target: e.options.Target, Replicas: 1, Ours: e.options.Ours, Route: e.proxy.Route}
	if e.subject, err = standing.Install(ctx, e.cluster, controlPlane); err != nil {
		return err
	}
	if e.subject != nil {
		e.stops = append(e.stops, e.subject.Stop)
	}
	return nil
}

// hasSimulatedNodes reports whether a cluster has KWOK nodes. The provider is not
// enough to decide this, because an existing cluster may have simulated nodes.
func hasSimulatedNodes(ctx context.Context, admin kubernetes.Interface) (bool, error) {
	nodes, err := admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "type=kwok"})
	if err != nil {
		return false, fmt.Errorf("listing simulated nodes: %w", err)
	}
	return len(nodes.Items) > 0, nil
}

// makeDirectories creates the log directory and a state directory. Stop removes the
// state directory.
func (e *Env) makeDirectories() (string, error) {
	dir, err := os.MkdirTemp("", "gauntlet-conformance-")
	if err != nil {
		return "", err
	}
	remove, err := run.GuardDirectory(dir)
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	e.stops = append(e.stops, remove)
	if e.options.LogDir, err = filepath.Abs(e.options.LogDir); err != nil {
		return "", err
	}
	return dir, os.MkdirAll(e.options.LogDir, 0o755)
}

// Stop stops all components, last started first, and removes their state.
func (e *Env) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	stops := e.stops
	e.stops = nil
	return stops.Run(ctx)
}

// componentErr returns an error if a part of the control plane or the subject has
// exited.
func (e *Env) componentErr() error {
	if err := e.cluster.Err(); err != nil {
		return err
	}
	if e.subject != nil {
		return e.subject.Err()
	}
	return nil
}

// subjectFailed returns a channel that closes when the subject exits, or nil if the
// subject runs in pods.
func (e *Env) subjectFailed() <-chan struct{} {
	if e.subject == nil {
		return nil
	}
	return e.subject.Failed()
}

// proxyMissing returns an error if there is no fault proxy.
func (e *Env) proxyMissing() error {
	if e.proxy == nil {
		return fmt.Errorf("provider %s has no fault proxy", e.options.Provider)
	}
	return nil
}
