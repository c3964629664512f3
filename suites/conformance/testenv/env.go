// Package world is what a conformance spec lives in: a control plane with a
// subject on it, once for each process that runs specs, and in it a namespace for
// each spec, which is watched from its first moment on.
//
// A spec does what users do through its [Namespace], and states what the
// controllers promise in three ways:
//
//	Always      a thing that is never otherwise, faults or not; it is looked at
//	            whenever anything in the namespace changes
//	Eventually  a thing that comes about, through whatever faults there are
//	InTheEnd    a thing that has come about, and stays, once every fault is healed
//
// Nothing in here sleeps or polls: whatever is waited for is looked at when the
// watch tells of a change. A wait that was in vain tells the last states that it
// saw, and the events of the namespace.
package testenv

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/proxy"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/process"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// Options says what world to make.
type Options struct {
	Provider string // one of run.Providers()
	Target   subject.Target
	// Ours is the executable of controllers/.
	Ours string
	// UpstreamDir holds the binaries of etcd, Kubernetes and KWOK; empty is the
	// cache that harness/upstream fills.
	UpstreamDir string
	// NodeImage is the image of a kind node; empty is the provider's choice.
	NodeImage string
	// Existing says which cluster to use that somebody else made.
	Existing existing.Options
	// LogDir is where the logs of all components go, and stay.
	LogDir string
	// Profile is what goes wrong in the background while specs run; nil is nothing.
	Profile *Profile
	// Seed is that of whatever the faults draw.
	Seed uint64
}

// Env is a control plane with a subject on it.
type Env struct {
	options Options
	cluster cluster.Cluster
	admin   kubernetes.Interface
	subject *subject.Subject // nil where it stands by itself
	proxy   *proxy.Proxy     // nil where there is none
	// simulatedNodes says that nobody runs what pods hold: their nodes are KWOK's.
	simulatedNodes bool
	recorder   *subjectRecorder
	// stops holds how to end what was started, in the order of the starts.
	stops []func(context.Context) error
}

// nodeCount is how many nodes take pods.
const nodeCount = 2

// stopTimeout bounds the end of a world.
const stopTimeout = 30 * time.Second

// Start brings up a world and returns when the subject leads. After an error
// nothing is left.
func Start(ctx context.Context, o Options) (*Env, error) {
	w := &Env{options: o, recorder: newSubjectRecorder()}
	if err := w.start(ctx); err != nil {
		return nil, errors.Join(err, w.Stop(ctx))
	}
	return w, nil
}

func (w *Env) start(ctx context.Context) error {
	dir, err := w.makeDirectories()
	if err != nil {
		return err
	}
	plane := run.ControlPlane{
		Nodes: nodeCount, Dir: dir, LogDir: w.options.LogDir, UpstreamDir: w.options.UpstreamDir, NodeImage: w.options.NodeImage,
		Existing: w.options.Existing,
	}
	if w.cluster, err = run.StartControlPlane(ctx, w.options.Provider, plane); err != nil {
		return err
	}
	w.stops = append(w.stops, w.cluster.Stop)
	if w.admin, err = kubernetes.NewForConfig(w.cluster.Config(cluster.Admin)); err != nil {
		return err
	}
	if w.simulatedNodes, err = hasSimulatedNodes(ctx, w.admin); err != nil {
		return err
	}
	if w.options.Provider != faults.Kubelets { // where the subject is in pods
		if err := w.startProxy(ctx); err != nil {
			return err
		}
	}
	if w.options.Provider == faults.Existing {
		w.stops = append(w.stops, func(ctx context.Context) error { return subject.Revoke(ctx, w.admin) })
	}
	resident := run.StandingSubject{Target: w.options.Target, Replicas: 1, Ours: w.options.Ours, Route: w.proxy.Route}
	if w.subject, err = resident.Install(ctx, w.cluster, plane); err != nil {
		return err
	}
	if w.subject != nil {
		w.stops = append(w.stops, w.subject.Stop)
	}
	return nil
}

// hasSimulatedNodes reports whether the kubelets of a cluster are simulated, which an
// existing one need not be by its provider: KWOK's nodes are labelled so, by those
// who make them.
func hasSimulatedNodes(ctx context.Context, admin kubernetes.Interface) (bool, error) {
	nodes, err := admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "type=kwok"})
	if err != nil {
		return false, fmt.Errorf("looking for simulated nodes: %w", err)
	}
	return len(nodes.Items) > 0, nil
}

// makeDirectories makes the directory of what must not outlive the world.
func (w *Env) makeDirectories() (string, error) {
	dir, err := os.MkdirTemp("", "gauntlet-conformance-")
	if err != nil {
		return "", err
	}
	release, err := process.GuardDirectory(dir)
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	w.stops = append(w.stops, func(context.Context) error {
		defer release()
		return os.RemoveAll(dir)
	})
	if w.options.LogDir, err = filepath.Abs(w.options.LogDir); err != nil {
		return "", err
	}
	return dir, os.MkdirAll(w.options.LogDir, 0o755)
}

// startProxy puts the fault proxy in the subject's way, through which it goes
// also when nothing goes wrong.
func (w *Env) startProxy(ctx context.Context) error {
	direct := w.cluster.Config(cluster.Subject)
	target, err := url.Parse(direct.Host)
	if err != nil {
		return err
	}
	w.proxy, err = proxy.Start(context.WithoutCancel(ctx), proxy.Options{
		Target: target, TargetCA: direct.CAData, Recorder: w.recorder, Clock: clock.RealClock{},
	})
	if err != nil {
		return err
	}
	w.stops = append(w.stops, w.proxy.Stop)
	return nil
}

// Stop ends everything, the last first, and removes what was made.
func (w *Env) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	var all []error
	for i := len(w.stops) - 1; i >= 0; i-- {
		all = append(all, w.stops[i](ctx))
	}
	w.stops = nil
	return errors.Join(all...)
}

// componentErr is nil, or which part of the control plane or the subject has ended by
// itself.
func (w *Env) componentErr() error {
	if err := w.cluster.Err(); err != nil {
		return err
	}
	if w.subject != nil {
		return w.subject.Err()
	}
	return nil
}

// subjectFailed is closed when the subject has ended by itself; nil where nobody
// would know.
func (w *Env) subjectFailed() <-chan struct{} {
	if w.subject == nil {
		return nil
	}
	return w.subject.Failed()
}

// proxyMissing is nil, or why nothing can be made to go wrong between the subject and
// the API server.
func (w *Env) proxyMissing() error {
	if w.proxy == nil {
		return fmt.Errorf("on %s there is no fault proxy before the subject", w.options.Provider)
	}
	return nil
}
