// Package run runs one scenario against one subject. It is the only package that uses all
// parts of the harness. The phases of a run are:
//
//	scenario     write scenario.yaml and environment.json to the run directory
//	environment  set up the control plane, recorder, observer, proxy and subject
//	chaos        run the workload and the faults, while the observer records
//	settle       heal all faults; wait until the subject has converged and is quiet
//	snapshot     collect diagnostics before anything stops
//	tear down    stop everything in reverse order
//	check        run the checks on the recorded history
//	report       write verdicts.json, junit.xml, summary.md and report.html
//
// A run that is aborted is checked too. A violation in its history is a failure; a
// guarantee that the history cannot show is unknown.
package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// Options says what to run, where, and where to write the results.
type Options struct {
	Scenario *scenario.Scenario // with its Seed set
	Target   subject.Target
	// Workload is the workload if the scenario has an external workload. Otherwise it is nil.
	// Run calls it. A program that calls Start passes its workload to Session.Chaos.
	Workload Workload
	// Provider is one of providers.Names(); "" means the default.
	Provider string
	// Out is the parent directory of the run directory.
	Out string
	// Ours is the path of the workload-controller-manager, built from controllers/.
	Ours string
	// Gauntlet is the path of the gauntlet executable. If the subject runs in pods, it
	// must be statically linked, because its command `relay` runs beside the subject.
	// The program `standin`, which the workload's pods run on kind, must be in the same
	// directory.
	Gauntlet string
	// UpstreamDir holds the binaries of etcd, Kubernetes and KWOK. If it is empty, the
	// run uses the cache that harness/upstream fills.
	UpstreamDir string
	// NodeImage is the image of a kind node. If it is empty, the provider uses its
	// default image.
	NodeImage string
	// Existing selects an existing cluster and says how to use it.
	Existing cluster.Existing
	// Direct omits the fault proxy, to measure its overhead. Scenarios with faults are
	// then not allowed.
	Direct bool
	// KeepUp, if set, is called after the run, before anything is torn down. The
	// teardown begins when it returns.
	KeepUp func(ctx context.Context, kubeconfig string)
	// Progress, if set, receives progress messages. It must return quickly.
	Progress func(message string)

	Clock    clock.WithTicker // nil means the real clock
	Revision string           // revision of gauntlet
	// Versions are the versions of the control plane's components. Nil means those that the
	// provider states.
	Versions map[string]string
}

// Workload creates, changes and deletes objects in the namespace environment.Namespace, with
// the clients of s.Environment. The faults of the scenario act until it returns; see also
// Session.Converged. It must return soon after ctx ends. Its error aborts the run.
type Workload func(ctx context.Context, s *Session) error

// Run runs a scenario, checks its history and writes the reports. The error says why
// the run was aborted. An aborted run is checked too, unless it has no history.
func Run(ctx context.Context, o Options) (*reports.Run, error) {
	if err := o.checkWorkload(); err != nil {
		return nil, err
	}
	s, err := newSession(&o)
	if err != nil {
		return nil, err
	}
	if err = s.setUp(ctx); err == nil {
		err = s.runPhases(ctx)
	}
	return s.End(ctx, err)
}

// Preflight returns an error if the options do not allow the run. For example, the provider
// does not support a fault, or an executable is missing. Preflight starts nothing.
func (o *Options) Preflight() error {
	provider, err := providers.Named(o.Provider)
	if err != nil {
		return err
	}
	if err := o.checkWorkload(); err != nil {
		return err
	}
	if err := Supported(o.Scenario, o.Provider); err != nil {
		return err
	}
	if o.Direct && provider.Capabilities.Has(cluster.SubjectInPods) {
		return fmt.Errorf("on %s, the subject reaches the API server only through the fault proxy; a direct run needs another provider", o.Provider)
	}
	if err := provider.Preflight(o.controlPlane()); err != nil {
		return err
	}
	return o.subject().Preflight(o.Provider, o.UpstreamDir)
}

// checkWorkload returns an error unless the options have exactly one workload.
func (o *Options) checkWorkload() error {
	switch external := o.Scenario.ExternalWorkload != nil; {
	case external && o.Workload == nil:
		return o.Scenario.Errorf("externalWorkload", "the workload of this scenario is in a Go program; run that program instead")
	case !external && o.Workload != nil:
		return o.Scenario.Errorf("workload", "found steps besides Options.Workload; expected externalWorkload")
	}
	return nil
}

// controlPlane returns the control plane that the run needs.
func (o *Options) controlPlane() providers.Options {
	return providers.Options{
		Nodes:         o.Scenario.Cluster.Nodes,
		Pods:          o.Scenario.PodsMax(),
		Controllers:   o.Scenario.Controllers(),
		PodStartDelay: o.Scenario.Cluster.PodStartDelay,
		PodStopDelay:  o.Scenario.Cluster.PodStopDelay,
		UpstreamDir:   o.UpstreamDir,
		NodeImage:     o.NodeImage,
		Existing:      o.Existing,
		Relays:        o.Scenario.Subject.Replicas,
	}
}

// subject returns the subject that the run starts.
func (o *Options) subject() environment.SubjectOptions {
	return environment.SubjectOptions{
		Target: o.Target, Controllers: o.Scenario.Controllers(), Spec: o.Scenario.Subject, Ours: o.Ours, Gauntlet: o.Gauntlet,
	}
}

// runPhases runs the phases whose history is checked: chaos and settle.
func (s *Session) runPhases(ctx context.Context) error {
	ctx, cancel := s.supervise(ctx)
	defer cancel()
	if err := s.Chaos(ctx, s.Options.Workload); err != nil {
		return s.endReason(ctx, err)
	}
	if err := s.Settle(ctx); err != nil {
		return s.endReason(ctx, err)
	}
	if s.KeepUp != nil {
		return s.keepUp(ctx)
	}
	return nil
}

// errInterrupted aborts a run at the user's request.
var errInterrupted = errors.New("interrupted")

// supervise returns a context that is canceled when the control plane, the recorder or
// the subject fails.
func (s *Session) supervise(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() { cancel(s.Environment.Failed(ctx)) }()
	return ctx, func() { cancel(context.Canceled) }
}

// endReason returns the reason for which a phase was aborted. If the phase was not
// aborted, it returns err.
func (s *Session) endReason(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return err
	case errors.Is(cause, environment.ErrSubjectDied): // the history shows the exit and the checks report it
		s.progress("%v", s.Environment.Subject.Err())
		return nil
	case errors.Is(cause, context.Canceled):
		return errInterrupted
	default:
		return cause
	}
}

func (o *Options) progress(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// keepUp calls Options.KeepUp with the path of an admin kubeconfig, before the teardown.
func (s *Session) keepUp(ctx context.Context) error {
	path := filepath.Join(s.dir.state(), "admin.kubeconfig")
	if err := cluster.WriteKubeconfig(path, s.Environment.Cluster.Config(cluster.Admin)); err != nil {
		return err
	}
	s.KeepUp(ctx, path)
	return nil
}
