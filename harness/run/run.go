// Package run runs one scenario on one subject, the program with the controllers under test. A run
// has the following steps:
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
// The checks also run after an aborted run. If the history shows a violation, the verdict is fail.
// If the history does not show whether a guarantee held, the verdict of that guarantee's check is
// unknown.
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
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/virtual"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// Options says which scenario to run, with which controllers under test and control plane, and
// where to write the results.
type Options struct {
	Scenario *scenario.Scenario // Scenario is the scenario to run. Its field Seed is the random seed of the run.
	Target   subject.Target
	// BuiltFromUpstream is true if Target is a modified kube-controller-manager. An example is a
	// mutant, a controller that is broken on purpose. A violation that matches a known upstream
	// issue then has the verdict known-upstream, as for [subject.Upstream].
	BuiltFromUpstream bool
	// Baseline is what runs of the scenario without faults have in common. Run writes Baseline to
	// the run directory, and the checks compare the run with Baseline. It may be nil.
	Baseline *baseline.Baseline
	// Workload is a function that [Run] calls instead of the workload steps of the scenario. It is
	// nil unless the scenario has the field externalWorkload. A program that calls [Start] passes
	// its workload to [Session.Chaos] instead.
	Workload Workload
	// Provider is the name of a provider, such as "kind"; "" means [providers.Default].
	Provider string
	// On, if set, is a control plane that is already running, such as a cluster of `gauntlet up`.
	// The run then starts no control plane, and ignores the fields Provider and Existing. End does
	// not stop this control plane.
	On *environment.Environment
	// Namespace is the namespace that the run records. Empty means environment.Namespace.
	Namespace string
	// Out is the parent directory of the run directory.
	Out string
	// Ours is the path of the executable workload-controller-manager, built from controllers/.
	Ours string
	// Gauntlet is the path of the gauntlet executable. If the controllers under test run in pods,
	// these pods also run `gauntlet relay`. The executable must then be statically linked. On kind,
	// the workload's pods run the program standin, which must be in the same directory. A Workload
	// whose pods run other images does not need Gauntlet.
	Gauntlet string
	// UpstreamDir is the directory with the binaries of etcd, Kubernetes and KWOK. Empty means the
	// cache that `gauntlet setup` fills.
	UpstreamDir string
	// AuditDir is the directory for the audit logs of embedded clusters, one file for each run. The
	// API server writes each request to the file, with its body and its response. Empty means no
	// audit log.
	AuditDir string
	// NodeImage is the container image that the nodes of a kind cluster run. Empty means the
	// default image of the provider kind.
	NodeImage string
	// Existing says which cluster the provider existing uses.
	Existing cluster.Existing
	// Direct connects the controllers under test directly to the API server, to measure the
	// overhead of the fault proxy. Do not set Direct for a scenario with faults.
	Direct bool
	// KeepUp, if set, is called after the last phase, with the path of an admin kubeconfig. The
	// control plane stays up until KeepUp returns.
	KeepUp func(ctx context.Context, kubeconfig string)
	// Progress, if set, receives progress messages for users. Progress must return quickly.
	Progress func(message string)
	// OnRecord, if set, is called with each record of the history, in order. OnRecord must return
	// quickly, and must not change the record. In virtual time, OnRecord gets all records after the
	// run.
	OnRecord func(*history.Record)

	Clock    clock.WithTicker // clock of the run; nil means [clock.RealClock]
	Revision string           // version of gauntlet, for environment.json
	// Versions contains the versions of the control plane components, such as "etcd": "v3.6.8". If
	// Versions is nil, the run asks the provider for the versions.
	Versions map[string]string
}

// Workload creates, changes and deletes objects in the recorded namespace, with the clients of
// s.Environment. The faults of the scenario are active while the function runs.
//
// A Workload may call [Session.Converged] to wait until all objects have converged. The function
// must return soon after ctx ends. An error aborts the run.
type Workload func(ctx context.Context, s *Session) error

// Run runs a scenario, checks the history, writes the reports and returns their content. If the
// run was aborted, the error says why. The result then contains the verdicts if there is a
// history, and is nil otherwise.
func Run(ctx context.Context, o Options) (*reports.Run, error) {
	if err := o.checkWorkload(); err != nil {
		return nil, err
	}
	s, err := newSession(&o)
	if err != nil {
		return nil, err
	}
	if o.inVirtualTime() {
		defer s.unlock()
		return s.checkHistory(nil, s.recordInVirtualTime(ctx))
	}
	if err = s.setUp(ctx); err == nil {
		err = s.runPhases(ctx)
	}
	return s.End(ctx, err)
}

// Preflight returns an error if the run is not possible. For example, the provider may not support
// a fault, or an executable may be missing. Preflight starts nothing.
func (o *Options) Preflight() error { return cmp.Or(o.Check(), o.preflight()) }

// Check returns an error if the scenario and the options do not fit together. For example, the
// provider may not support a fault. Unlike [Options.Preflight], it does not look for executables or
// a cluster. It does not check a Target that is the zero value.
func (o *Options) Check() error { return cmp.Or(o.checkOptions(), o.checkWorkload()) }

// preflight returns an error if the run is not possible, like Preflight, but does not check the
// workload. A program that calls [Start] passes the workload only later, to [Session.Chaos].
func (o *Options) preflight() error {
	if err := o.checkOptions(); err != nil {
		return err
	}
	if o.inVirtualTime() {
		if _, err := virtual.Find(o.Gauntlet, o.Target == subject.Upstream); err != nil {
			return err
		}
	}
	if o.On == nil {
		provider, err := providers.Named(o.Provider)
		if err != nil {
			return err
		}
		if err := provider.Preflight(o.controlPlane()); err != nil {
			return err
		}
	}
	return o.subject().Preflight(o.Provider, o.UpstreamDir)
}

// checkOptions returns an error if the scenario and the options do not fit together. Unlike Check,
// it does not check the workload.
func (o *Options) checkOptions() error {
	if o.Scenario == nil {
		return errors.New("found no Options.Scenario; expected a scenario, such as the result of scenario.New")
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
		return fmt.Errorf("found Options.Direct with the provider %s, whose subjects reach the API server only through the fault proxy; omit Options.Direct, or use another provider", o.Provider)
	}
	if o.inVirtualTime() {
		if err := o.checkVirtual(); err != nil {
			return err
		}
	}
	if o.Target == (subject.Target{}) || o.Target == subject.Program {
		return nil
	}
	return cmp.Or(o.Target.CheckControllers(o.Scenario.Controllers()), environment.CheckTarget(provider, o.Target))
}

// checkWorkload returns an error if the run has no workload or two workloads. A scenario with the
// field externalWorkload needs Options.Workload. All other scenarios contain the workload as steps.
func (o *Options) checkWorkload() error {
	if o.Scenario == nil {
		return nil // checkOptions returns the error
	}
	switch external := o.Scenario.ExternalWorkload != nil; {
	case external && o.Workload == nil:
		return o.Scenario.Errorf("externalWorkload", "found a workload that a Go program executes; expected steps in the field workload, or a run that a Go program starts with a workload of its own")
	case !external && o.Workload != nil:
		return o.Scenario.Errorf("workload", "found Options.Workload besides the steps; expected externalWorkload instead of the steps")
	}
	return nil
}

// controlPlane returns the options with which the run starts its control plane, such as the
// number of nodes.
func (o *Options) controlPlane() providers.Options {
	definition := o.Target.Definition()
	return providers.Options{
		Nodes:         o.Scenario.Cluster.Nodes,
		Pods:          o.Scenario.PodsMax(),
		Controllers:   kube.Known(o.Scenario.Controllers()),
		Volumes:       definition != nil,
		Definitions:   definition.CustomResources(),
		PodStartDelay: o.Scenario.Cluster.PodStartDelay,
		PodStopDelay:  o.Scenario.Cluster.PodStopDelay,
		UpstreamDir:   o.UpstreamDir,
		NodeImage:     o.NodeImage,
		Existing:      o.Existing,
		Relays:        o.Scenario.Subject.Replicas,
	}
}

// subject returns the options with which the run starts the controllers under test, such as the
// number of replicas.
func (o *Options) subject() environment.SubjectOptions {
	return environment.SubjectOptions{
		Target: o.Target, Controllers: o.Scenario.Controllers(), Kinds: o.Scenario.GenericKinds(), Spec: o.Scenario.Subject, Ours: o.Ours, Gauntlet: o.Gauntlet,
	}
}

// runPhases runs the phases chaos, settle and quiet of the run. It then calls Options.KeepUp, if
// that field is set.
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

// errInterrupted is the error of a run that the user interrupted, for example with Ctrl-C.
var errInterrupted = errors.New("interrupted")

// supervise returns a context that is canceled when the control plane, the recorder or the subject
// fails. The subject is the controllers under test. The returned function cancels the context, and
// waits until the goroutine that watches for failures has ended.
func (s *Session) supervise(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		cancel(s.Environment.Failed(ctx))
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-done // Environment.Failed reads fields that the end of the run changes
	}
}

// endReason returns the reason why ctx was canceled during a phase. If ctx was not canceled, it
// returns err, which is the error of the phase.
//
// If a replica of the controllers under test ended unexpectedly, endReason returns nil, because
// the checks report the exit.
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

// progress formats a message for users and passes it to o.Progress. If o.Progress is nil, it does
// nothing.
func (o *Options) progress(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// keepUp writes an admin kubeconfig and calls Options.KeepUp with the path of that file. The
// control plane stays up until KeepUp returns.
func (s *Session) keepUp(ctx context.Context) error {
	path := filepath.Join(s.dir.state(), "admin.kubeconfig")
	if err := cluster.WriteKubeconfig(path, s.Environment.Cluster.Config(cluster.Admin)); err != nil {
		return err
	}
	s.KeepUp(ctx, path)
	return nil
}
