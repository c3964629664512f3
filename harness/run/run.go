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
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// Options says what to run, where, and where to write the results.
type Options struct {
	Scenario *scenario.Scenario // with its Seed set
	Target   subject.Target
	Provider string // one of Providers()
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
	Existing existing.Options
	// Direct omits the fault proxy, to measure its overhead. Scenarios with faults are
	// then not allowed.
	Direct bool
	// KeepUp, if set, is called after the run, before anything is torn down. The
	// teardown begins when it returns.
	KeepUp func(ctx context.Context, kubeconfig string)
	// Progress, if set, receives progress messages. It must return quickly.
	Progress func(message string)

	Clock    clock.WithTicker
	Revision string            // revision of gauntlet
	Versions map[string]string // versions of the control plane's components
}

// Run runs a scenario, checks its history and writes the reports. The error says why
// the run was aborted. An aborted run is checked too, unless it has no history.
func Run(ctx context.Context, o Options) (*reports.Run, error) {
	dir, err := createRunDirectory(&o)
	if err != nil {
		return nil, err
	}
	recorded, diagnostics, runErr := recordHistory(ctx, &o, dir)
	if !recorded {
		return nil, fmt.Errorf("%w\n(the logs are in %s)", runErr, dir.logs())
	}
	o.progress("checking the history")
	result, draft, err := checkDirectory(string(dir))
	if err != nil {
		return nil, errors.Join(runErr, fmt.Errorf("checking %s: %w", dir, err))
	}
	if diagnostics.neededFor(result) {
		if err := diagnostics.write(dir.diagnostics()); err != nil {
			o.progress("writing the diagnostics: %v", err)
		}
	}
	return result, errors.Join(runErr, reports.WriteRun(*result, draft))
}

// Preflight returns an error if the options do not allow the run. For example, the provider
// does not support a fault, or an executable is missing. Preflight starts nothing.
func (o *Options) Preflight() error {
	p, err := providerNamed(o.Provider)
	if err != nil {
		return err
	}
	if err := Supported(o.Scenario, o.Provider); err != nil {
		return err
	}
	return p.preflight(o)
}

// recordHistory sets up the environment, runs the phases and tears the environment
// down. It reports whether there is a history, and returns a snapshot from the end of
// the run.
func recordHistory(ctx context.Context, o *Options, dir directory) (recorded bool, diagnostics *snapshot, err error) {
	e := &testEnvironment{Options: o, dir: dir}
	defer func() { err = errors.Join(err, e.tearDown(ctx, err)) }()
	if err := e.setUp(ctx); err != nil {
		return e.recorder != nil, nil, err
	}
	err = e.runPhases(ctx)
	return true, e.takeSnapshot(ctx, err), err
}

// runPhases runs the phases whose history is checked: chaos and settle.
func (e *testEnvironment) runPhases(ctx context.Context) error {
	ctx, cancel := e.supervise(ctx)
	defer cancel()
	if err := e.runChaos(ctx); err != nil {
		return e.endReason(ctx, err)
	}
	if err := e.settle(ctx); err != nil {
		return e.endReason(ctx, err)
	}
	if e.KeepUp != nil {
		return e.keepUp(ctx)
	}
	return nil
}

// errSubjectDied aborts a run after the subject has exited unexpectedly. The run then
// returns no error, because the history shows the exit and the checks report it.
var errSubjectDied = errors.New("the subject ended unexpectedly")

// errInterrupted aborts a run at the user's request.
var errInterrupted = errors.New("interrupted")

// supervise returns a context that is canceled when the control plane, the recorder or
// the subject fails.
func (e *testEnvironment) supervise(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-e.cluster.Failed():
			cancel(e.cluster.Err())
		case <-e.recorder.Failed():
			cancel(e.recorder.Flush())
		case <-e.subject.Failed():
			cancel(errSubjectDied)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// endReason returns the reason for which a phase was aborted. If the phase was not
// aborted, it returns err.
func (e *testEnvironment) endReason(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return err
	case errors.Is(cause, errSubjectDied):
		e.progress("%v", e.subject.Err())
		return nil
	case errors.Is(cause, context.Canceled):
		return errInterrupted
	default:
		return cause
	}
}

// beginPhase records the beginning of a phase.
func (e *testEnvironment) beginPhase(phase history.PhaseName) {
	e.recorder.Append(history.Record{Phase: &history.Phase{Name: phase}})
}

func (o *Options) progress(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// tearDownTimeout bounds the teardown, which also runs after the run's context is
// canceled.
const tearDownTimeout = 30 * time.Second

// tearDown stops everything that setUp started, in reverse order. If the run was
// aborted, it records a gap with the reason.
func (e *testEnvironment) tearDown(ctx context.Context, runErr error) error {
	ctx = context.WithoutCancel(ctx)
	if runErr != nil && !errors.Is(runErr, errInterrupted) {
		e.exportLogs(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, tearDownTimeout)
	defer cancel()
	if runErr != nil && e.recorder != nil {
		e.recorder.Append(history.Record{Gap: &history.Gap{Source: "the run", Detail: runErr.Error()}})
	}
	return e.teardowns.Run(ctx)
}

// exportLogsTimeout bounds the export of logs, which are only diagnostics.
const exportLogsTimeout = 20 * time.Second

// exportLogs makes the cluster export its logs, if it can and is healthy. A cluster
// that has failed exports its logs by itself.
func (e *testEnvironment) exportLogs(ctx context.Context) {
	exporter, ok := e.cluster.(interface {
		ExportLogs(ctx context.Context, dir string) error
	})
	if !ok || e.cluster.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, exportLogsTimeout, fmt.Errorf("timed out after %s", exportLogsTimeout))
	defer cancel()
	if err := exporter.ExportLogs(ctx, filepath.Join(e.dir.logs(), e.Provider)); err != nil {
		e.progress("%v", err)
	}
}
