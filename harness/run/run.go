// Package run runs one scenario on one subject. It is the only package that uses all parts of
// the harness. A run has the following parts:
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
// The checks also run after an aborted run. If the history shows a violation, the verdict is
// fail. If it does not show whether a guarantee held, the verdict of this guarantee is unknown.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// Options says which scenario to run on which subject, on which control plane, and where to
// write the results.
type Options struct {
	Scenario *scenario.Scenario // its field Seed is the random seed of the run
	Target   subject.Target
	// BuiltFromUpstream is true if Target is a modified kube-controller-manager, such as a
	// mutant. A violation that matches a known upstream issue then has the verdict
	// known-upstream, as for [subject.Upstream].
	BuiltFromUpstream bool
	// Baseline is what runs of the scenario without faults have in common. It may be nil. Run writes
	// it to the run directory, and the checks compare the run with it.
	Baseline *baseline.Baseline
	// Workload is the workload of a scenario with an external workload, and nil for all other
	// scenarios. Run calls it. A program that calls Start passes its workload to
	// [Session.Chaos] instead.
	Workload Workload
	// Provider is one of providers.Names(); "" means [providers.Default].
	Provider string
	// On is a control plane that is already running, such as that of a standing cluster. The run
	// then starts no control plane, and ignores the fields Provider and Existing. End does not stop
	// this control plane.
	On *environment.Environment
	// Namespace is the namespace that the run records. Empty means environment.Namespace.
	Namespace string
	// Out is the parent directory of the run directory.
	Out string
	// Ours is the path of the executable workload-controller-manager, built from controllers/.
	Ours string
	// Gauntlet is the path of the gauntlet executable. If the subject runs in pods, the
	// executable must be statically linked, because it also runs as relay in these pods. The
	// directory of Gauntlet must also contain the program standin, which the workload's pods
	// run on kind. An external workload whose pods run other images does not need Gauntlet.
	Gauntlet string
	// UpstreamDir is the directory with the binaries of etcd, Kubernetes and KWOK. If it is
	// empty, the run uses the cache that `gauntlet setup` fills.
	UpstreamDir string
	// NodeImage is the container image of a kind node. If it is empty, the provider uses its
	// default image.
	NodeImage string
	// Existing selects the existing cluster for the provider existing.
	Existing cluster.Existing
	// Direct connects the subject to the API server without the fault proxy, to measure the
	// overhead of the proxy. A scenario with faults must not be run with Direct.
	Direct bool
	// KeepUp, if set, is called after the last phase. The control plane stays up until KeepUp
	// returns.
	KeepUp func(ctx context.Context, kubeconfig string)
	// Progress, if set, receives progress messages. It must return quickly.
	Progress func(message string)
	// OnRecord, if set, is called with each record of the history, in order. It must return
	// quickly, and must not change the record.
	OnRecord func(*history.Record)

	Clock    clock.WithTicker // nil means [clock.RealClock]
	Revision string           // version of gauntlet
	// Versions are the versions of the components of the control plane. If it is nil, the
	// run uses the versions that the provider returns.
	Versions map[string]string
}

// Workload creates, changes and deletes objects in the namespace environment.Namespace, with
// the clients of s.Environment. The faults of the scenario are active until it returns.
//
// It may call [Session.Converged] to wait. It must return soon after ctx ends. Its error aborts
// the run.
type Workload func(ctx context.Context, s *Session) error

// Run runs a scenario, checks its history and writes the reports. The error says why the run
// was aborted. An aborted run is checked too, if it has a history.
func Run(ctx context.Context, o Options) (*reports.Run, error) {
	if o.Scenario != nil {
		if err := o.checkWorkload(); err != nil {
			return nil, err
		}
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

// Preflight returns an error if the run is not possible. For example, the provider may not
// support a fault, or an executable may be missing. It starts nothing.
func (o *Options) Preflight() error {
	if o.Scenario == nil {
		return errors.New("found no scenario; expected one, such as that of scenario.New")
	}
	return cmp.Or(o.checkWorkload(), o.preflight())
}

// preflight does the same as Preflight, but does not check the workload. A program that uses a
// Session passes the workload only later.
func (o *Options) preflight() error {
	if o.Scenario == nil {
		return errors.New("found no scenario; expected one, such as that of scenario.New")
	}
	if o.On != nil {
		o.Provider, o.Existing = o.On.Provider, o.On.ControlPlane.Existing
		o.UpstreamDir = cmp.Or(o.UpstreamDir, o.On.ControlPlane.UpstreamDir)
	}
	o.Provider = cmp.Or(o.Provider, providers.Default())
	provider, err := providers.Named(o.Provider)
	if err != nil {
		return err
	}
	if err := cmp.Or(Validate(o.Scenario), Supported(o.Scenario, o.Provider)); err != nil {
		return err
	}
	if o.Direct && provider.Capabilities.Has(cluster.SubjectInPods) {
		return fmt.Errorf("found a direct run on provider %s; expected another provider, because its subjects reach the API server only through the fault proxy", o.Provider)
	}
	if o.On == nil {
		if err := provider.Preflight(o.controlPlane()); err != nil {
			return err
		}
	}
	return o.subject().Preflight(o.Provider, o.UpstreamDir)
}

// checkWorkload returns an error if the run has no workload or two. The workload is the steps
// of the scenario, or Options.Workload for a scenario with an external workload.
func (o *Options) checkWorkload() error {
	switch external := o.Scenario.ExternalWorkload != nil; {
	case external && o.Workload == nil:
		return o.Scenario.Errorf("externalWorkload", "found no Options.Workload; expected a Go program that sets it, because the workload is not in the scenario")
	case !external && o.Workload != nil:
		return o.Scenario.Errorf("workload", "found Options.Workload besides the steps; expected externalWorkload instead of the steps")
	}
	return nil
}

// controlPlane returns the options of the control plane that the run needs.
func (o *Options) controlPlane() providers.Options {
	return providers.Options{
		Nodes:         o.Scenario.Cluster.Nodes,
		Pods:          o.Scenario.PodsMax(),
		Controllers:   kube.Known(o.Scenario.Controllers()),
		Volumes:       o.Target.Definition() != nil,
		PodStartDelay: o.Scenario.Cluster.PodStartDelay,
		PodStopDelay:  o.Scenario.Cluster.PodStopDelay,
		UpstreamDir:   o.UpstreamDir,
		NodeImage:     o.NodeImage,
		Existing:      o.Existing,
		Relays:        o.Scenario.Subject.Replicas,
	}
}

// subject returns the options of the subject that the run starts.
func (o *Options) subject() environment.SubjectOptions {
	return environment.SubjectOptions{
		Target: o.Target, Controllers: o.Scenario.Controllers(), Kinds: o.Scenario.GenericKinds(), Spec: o.Scenario.Subject, Ours: o.Ours, Gauntlet: o.Gauntlet,
	}
}

// runPhases runs all phases of the run, and then calls KeepUp if it is set.
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

// errInterrupted is the error of a run that the user interrupted.
var errInterrupted = errors.New("interrupted")

// supervise returns a context that is canceled when the control plane, the recorder or the
// subject fails. The returned function cancels it, and returns when nothing is supervised any more.
func (s *Session) supervise(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		cancel(s.Environment.Failed(ctx))
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-done // the end of the run changes what Failed reads
	}
}

// endReason returns the error that aborted a phase, or err if nothing aborted it.
//
// The end of the subject is not an error, because the checks report it.
func (s *Session) endReason(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return err
	case errors.Is(cause, subject.ErrDied): // not an error: the checks report the exit
		s.progress("%v", s.Environment.Subject.Err())
		return nil
	case errors.Is(cause, context.Canceled):
		return errInterrupted
	default:
		return cause
	}
}

// progress formats a message and passes it to o.Progress, if that is set.
func (o *Options) progress(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// keepUp writes an admin kubeconfig and calls Options.KeepUp with its path.
func (s *Session) keepUp(ctx context.Context) error {
	path := filepath.Join(s.dir.state(), "admin.kubeconfig")
	if err := cluster.WriteKubeconfig(path, s.Environment.Cluster.Config(cluster.Admin)); err != nil {
		return err
	}
	s.KeepUp(ctx, path)
	return nil
}
