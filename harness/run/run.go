// Package run carries out one scenario on one subject. It is the procedure of
// the harness and the one package that knows every stage of it:
//
//	prepare   a run directory with what is asked in it
//	raise     control plane, history, observer, fault proxy, subject
//	chaos     what users do, while things go wrong
//	settle    heal everything; wait until the subject has converged and is quiet
//	look      at how everything stands, for who wants to know why it failed
//	lower     stop everything, in the opposite order
//	judge     from the recorded history alone
//
// A run that breaks off half-way is judged all the same: what its history shows
// broken is broken, and what it does not show is unknown.
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

// Options says what to run, on what, and where to keep it.
type Options struct {
	Scenario *scenario.Scenario // its Seed is the run's, and set
	Target   subject.Target
	Provider string // one of Providers()
	// Out is the directory that the run directory is made in.
	Out string
	// Ours is the executable of controllers/.
	Ours string
	// Gauntlet is the executable of gauntlet, static if the subject runs in pods:
	// its command `relay` then stands beside it. Real pods run the program
	// `standin`, which lies beside gauntlet.
	Gauntlet string
	// UpstreamDir holds the binaries of etcd, Kubernetes and KWOK; empty is the
	// cache that harness/upstream fills.
	UpstreamDir string
	// NodeImage is the image of a kind node; empty is the provider's choice.
	NodeImage string
	// Existing says which cluster to use that somebody else made, and how.
	Existing existing.Options
	// Direct leaves the fault proxy out, for measuring what it costs. A scenario
	// with faults cannot be run so.
	Direct bool
	// KeepUp, if set, is called when the run is over and everything still stands;
	// the control plane goes when it returns.
	KeepUp func(ctx context.Context, kubeconfig string)
	// Progress, if set, is told what the run is doing. It must be quick.
	Progress func(message string)

	Clock    clock.WithTicker
	Revision string            // of gauntlet
	Versions map[string]string // of the control plane's parts
}

// Run carries out a scenario, judges it and writes its reports. The error says
// what kept the run from being carried out to its end; what its history shows up
// to there is judged all the same, unless there is none.
func Run(ctx context.Context, o Options) (*reports.Run, error) {
	dir, err := createRunDirectory(&o)
	if err != nil {
		return nil, err
	}
	begun, seen, err := recordHistory(ctx, &o, dir)
	if !begun {
		return nil, fmt.Errorf("%w\n(the logs are in %s)", err, dir.logs())
	}
	o.progress("judging")
	judged, draft, judgeErr := checkDirectory(string(dir))
	if judgeErr != nil {
		return nil, errors.Join(err, fmt.Errorf("judging %s: %w", dir, judgeErr))
	}
	if seen.neededFor(judged) {
		if err := seen.write(dir.diagnostics()); err != nil {
			o.progress("keeping the diagnostics: %v", err)
		}
	}
	return judged, errors.Join(err, reports.WriteRun(*judged, draft))
}

// Preflight reports what would keep a run from being carried out that can be
// told before anything is started: a provider that cannot do what is asked, or
// executables that are not there.
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

// recordHistory makes the history of a run, and reports whether it came to begin one, and
// how it stood at its end.
func recordHistory(ctx context.Context, o *Options, dir directory) (begun bool, seen *snapshot, err error) {
	s := &testEnvironment{Options: o, dir: dir}
	defer func() { err = errors.Join(err, s.tearDown(ctx, err)) }()
	if err := s.setUp(ctx); err != nil {
		return s.recorder != nil, nil, err
	}
	err = s.runPhases(ctx)
	return true, s.takeSnapshot(ctx, err), err
}

// runPhases is the part of the run that is judged.
func (s *testEnvironment) runPhases(ctx context.Context) error {
	ctx, cancel := s.supervise(ctx)
	defer cancel()
	if err := s.runChaos(ctx); err != nil {
		return s.endReason(ctx, err)
	}
	if err := s.settle(ctx); err != nil {
		return s.endReason(ctx, err)
	}
	if s.KeepUp != nil {
		return s.keepUp(ctx)
	}
	return nil
}

// errSubjectDied ends a run early. It is a finding, not a failure of the run:
// the history shows it.
var errSubjectDied = errors.New("the subject died")

// errInterrupted ends a run that somebody has had enough of.
var errInterrupted = errors.New("interrupted")

// supervise returns a context that ends when something that the run stands on
// does: a part of the control plane, the recorder, the subject.
func (s *testEnvironment) supervise(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.cluster.Failed():
			cancel(s.cluster.Err())
		case <-s.recorder.Failed():
			cancel(s.recorder.Flush())
		case <-s.subject.Failed():
			cancel(errSubjectDied)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// endReason replaces the error of a stage that was broken off by the reason.
func (s *testEnvironment) endReason(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return err
	case errors.Is(cause, errSubjectDied):
		s.progress("%v", s.subject.Err())
		return nil
	case errors.Is(cause, context.Canceled):
		return errInterrupted
	default:
		return cause
	}
}

// beginPhase records that a phase begins.
func (s *testEnvironment) beginPhase(phase history.PhaseName) {
	s.recorder.Append(history.Record{Phase: &history.Phase{Name: phase}})
}

func (o *Options) progress(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// tearDownTimeout bounds the teardown, which goes on when the run was cancelled.
const tearDownTimeout = 30 * time.Second

// tearDown stops what was raised, last first. A run that broke off says so in its
// history.
func (s *testEnvironment) tearDown(ctx context.Context, broken error) error {
	ctx = context.WithoutCancel(ctx)
	if broken != nil && !errors.Is(broken, errInterrupted) {
		s.exportLogs(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, tearDownTimeout)
	defer cancel()
	if broken != nil && s.recorder != nil {
		s.recorder.Append(history.Record{Gap: &history.Gap{Source: "the run", Detail: broken.Error()}})
	}
	var all []error
	for i := len(s.teardowns) - 1; i >= 0; i-- {
		all = append(all, s.teardowns[i](ctx))
	}
	return errors.Join(all...)
}

// exportLogsTimeout bounds the export of logs: they are for who wants to know more.
const exportLogsTimeout = 20 * time.Second

// exportLogs has a control plane that can write all that there is to know of it,
// while it still stands. One that has failed does so by itself.
func (s *testEnvironment) exportLogs(ctx context.Context) {
	exporter, ok := s.cluster.(interface {
		ExportLogs(ctx context.Context, dir string) error
	})
	if !ok || s.cluster.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, exportLogsTimeout, fmt.Errorf("not within %s", exportLogsTimeout))
	defer cancel()
	if err := exporter.ExportLogs(ctx, filepath.Join(s.dir.logs(), s.Provider)); err != nil {
		s.progress("%v", err)
	}
}
