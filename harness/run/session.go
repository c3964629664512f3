package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// Session is a run in progress. [Run] creates a Session and runs all phases. A Go program with its
// own workload, such as a test suite, uses a Session directly:
//
//	Start    set up the control plane, the history, the fault proxy and the controllers under test
//	Chaos    run a workload and the faults of the scenario
//	Settle   wait until these controllers have converged and are quiet
//	End      tear everything down, run the checks and write the reports
//
// A program that cannot pass its workload as a function calls Begin instead of Chaos. Such a
// program injects and heals single faults with Environment.Inject.
//
// The methods are not safe for concurrent use.
type Session struct {
	*Options
	// Environment contains the control plane, the recorder, the fault proxy and the controllers
	// under test. It is set by Start.
	Environment *environment.Environment

	phase   sessionPhase
	dir     directory
	unlock  func() // unlocks the run directory; nil in tests without a run directory
	monitor *monitor
	ready   bool         // true when setUp is complete
	outages atomic.Int32 // number of active faults that make the control plane unavailable
	// faultEnd ends the faults that last as long as the workload. Chaos sets it.
	faultEnd *faultEnd
	// unmet is the error of the workload step whose awaited condition was not met, not even after all
	// faults were healed. It is nil if there is no such step.
	unmet error
	// catchUp waits until the history contains all object versions that etcd has committed so far.
	// It is Environment.CatchUp, except in tests.
	catchUp func(ctx context.Context) error
}

// sessionPhase says how far a session is, and therefore which methods of the Session may be
// called next.
type sessionPhase int

const (
	sessionStarted sessionPhase = iota // Chaos or Begin may be called
	sessionChaos                       // Begin was called: Converged and Settle may be called
	sessionEnded                       // End was called: no method may be called
)

// checkPhase returns an error if the session is not in the phase that a method requires. The
// argument method is the method's name for the error, such as "Settle".
func (s *Session) checkPhase(method string, expected sessionPhase) error {
	switch {
	case s.phase == expected:
		return nil
	case s.phase == sessionEnded:
		return fmt.Errorf("%s: the session has ended", method)
	case expected == sessionChaos:
		return fmt.Errorf("%s: the chaos phase has not begun; call Chaos or Begin first", method)
	}
	return fmt.Errorf("%s: the chaos phase has begun already", method)
}

// Start sets up a run of o.Scenario, and returns the run as a Session. It runs neither the
// workload nor the faults. A Go program can create the scenario with [scenario.New]. The caller
// must call End. If Start returns an error, it has stopped everything.
func Start(ctx context.Context, o Options) (*Session, error) {
	s, err := newSession(&o)
	if err != nil {
		return nil, err
	}
	if err := s.setUp(ctx); err != nil {
		_, err := s.End(ctx, err)
		return nil, err
	}
	return s, nil
}

// newSession returns a session that has not started anything. It checks the options, sets default
// values, and creates and locks the run directory.
func newSession(o *Options) (*Session, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := o.preflight(); err != nil {
		return nil, err
	}
	if o.Scenario.Seed == 0 {
		o.Scenario = o.Scenario.Clone()
		o.Scenario.Seed = 1 + rand.Uint64N(1<<32) // at most 10 digits, so that users can type it
	}
	if err := o.completeVersions(); err != nil {
		return nil, err
	}
	dir, err := createRunDirectory(o)
	if err != nil {
		return nil, err
	}
	unlock, err := Lock(string(dir))
	if err != nil {
		return nil, err
	}
	monitor := newMonitor(o.Scenario.Controllers()...)
	monitor.endState = check.NewEndState(o.Baseline, lastOperation(o.Scenario.Workload))
	return &Session{Options: o, dir: dir, unlock: unlock, monitor: monitor}, nil
}

// completeVersions sets o.Versions to the versions that the provider returns, unless o.Versions is
// already set.
func (o *Options) completeVersions() error {
	if o.Versions != nil {
		return nil
	}
	provider, err := providers.Named(o.Provider)
	if err == nil {
		o.Versions, err = provider.Versions(o.controlPlane())
	}
	return err
}

// Directory returns the path of the run directory.
func (s *Session) Directory() string { return string(s.dir) }

// observe passes a new record of the history to the monitor, which decides when the next phase can
// begin. It also passes the record to Options.OnRecord.
func (s *Session) observe(record *history.Record) {
	s.monitor.observe(record)
	if s.Options.OnRecord != nil {
		s.Options.OnRecord(record)
	}
}

// setUp starts the components of the run: control plane, namespace, history, fault proxy and the
// controllers under test.
func (s *Session) setUp(ctx context.Context) (err error) {
	defer func() {
		if refused := new(cluster.RefusedError); errors.As(err, &refused) && s.Target.Definition() != nil {
			refused.Place = s.Target.Definition().Places[subject.ObjectKey(refused.Object)]
			err = refused // the errors around it have a text without the place
		}
	}()
	if s.Environment, err = s.startControlPlane(ctx); err != nil {
		return err
	}
	s.catchUp, s.monitor.ready, s.monitor.watching = s.Environment.CatchUp, s.Environment.SubjectWatches, s.Environment.SubjectWatchesNow
	err = s.Environment.Record(ctx, environment.RecordOptions{
		File:      s.dir.history(),
		Namespace: s.Namespace,
		Start: history.Start{
			Scenario:    s.Scenario.Name,
			Seed:        s.Scenario.Seed,
			Subject:     s.Target.String(),
			Controllers: s.Scenario.Subject.Controllers,
		},
		Kinds:    s.Scenario.ObservedKinds(),
		OnRecord: s.observe,
	})
	if err != nil {
		return err
	}
	if !s.Direct {
		if err := s.Environment.StartProxy(ctx, nil); err != nil {
			return err
		}
	}
	if err := s.Environment.StartSubject(ctx, s.subject()); err != nil {
		return err
	}
	if s.Scenario.ExternalWorkload == nil || s.Gauntlet != "" { // otherwise, the Go program chooses the images of the pods
		if err := s.Environment.LoadPodImage(ctx, s.Gauntlet); err != nil {
			return err
		}
	}
	s.ready = true
	return nil
}

// newAuditLog creates an empty audit log for a run in the directory dir, and returns its path. The
// argument name is that of the run directory. A run in another parent directory may have the same
// name; the file then gets a suffix such as -2. The audit log can contain secrets.
func newAuditLog(dir, name string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("creating the directory of the audit log: %w", err)
	}
	for i := 1; ; i++ {
		path := filepath.Join(dir, name+".jsonl")
		if i > 1 {
			path = filepath.Join(dir, fmt.Sprintf("%s-%d.jsonl", name, i))
		}
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		switch {
		case errors.Is(err, fs.ErrExist):
			continue
		case err != nil:
			return "", fmt.Errorf("creating the audit log: %w", err)
		}
		return path, file.Close()
	}
}

// startControlPlane starts the control plane of the run. If Options.On is set, it returns
// Options.On instead.
func (s *Session) startControlPlane(ctx context.Context) (*environment.Environment, error) {
	if s.On != nil {
		return s.On, nil
	}
	controlPlane := s.controlPlane()
	if s.AuditDir != "" {
		path, err := newAuditLog(s.AuditDir, filepath.Base(string(s.dir)))
		if err != nil {
			return nil, err
		}
		controlPlane.AuditLog = path
	}
	return environment.Start(ctx, environment.Options{
		Provider:     s.Provider,
		ControlPlane: controlPlane,
		StateDir:     s.dir.state(),
		LogDir:       s.dir.logs(),
		Seed:         s.Scenario.Seed,
		Clock:        s.Clock,
		Progress:     s.Progress,
	})
}

// Begin begins the chaos phase, for a program that cannot call Chaos. If the control plane is not
// healthy, Begin returns an error.
//
// After Begin, the check process-alive requires that the controllers under test run.
func (s *Session) Begin(ctx context.Context) error {
	if err := s.checkPhase("Begin", sessionStarted); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.Environment.Cluster.Health(ctx); err != nil {
		return fmt.Errorf("checking the health of the control plane before the workload: %w", err)
	}
	s.phase = sessionChaos
	s.beginPhase(history.PhaseChaos)
	return nil
}

// beginPhase adds a record to the history that says that a phase has begun. Checks apply different
// rules in different phases.
func (s *Session) beginPhase(phase history.PhaseName) {
	s.Environment.Recorder.Append(history.Record{Phase: &history.Phase{Name: phase}})
}

// End stops everything, runs the checks on the history, writes the reports and returns their
// content. If there is no history, the result is nil.
//
// The argument runErr is nil, or the error that aborted the run. The returned error wraps runErr
// and the errors of End itself.
func (s *Session) End(ctx context.Context, runErr error) (*reports.Run, error) {
	if s.phase == sessionEnded {
		return nil, errors.New("End: the session has ended already")
	}
	s.phase = sessionEnded
	if s.unlock != nil {
		defer s.unlock()
	}
	var diagnostics *snapshot
	if s.ready {
		diagnostics = s.takeSnapshot(ctx, runErr)
	}
	return s.checkHistory(diagnostics, joinOnce(runErr, s.tearDown(ctx, runErr)))
}

// joinOnce joins the error that aborted a run and the error of the tear-down. If the second one says
// the same again, joinOnce omits it: a history that cannot be written is the error of both.
func joinOnce(runErr, tearDown error) error {
	if runErr != nil && tearDown != nil && strings.Contains(runErr.Error(), tearDown.Error()) {
		return runErr
	}
	return errors.Join(runErr, tearDown)
}

// UnrecordedError is the error of a run that was aborted before its history began. Such a run has
// no reports.
type UnrecordedError struct {
	Directory string // the run directory
	Err       error  // why the run was aborted
}

// Error returns a text that says why the run was aborted, and where its logs are.
func (e *UnrecordedError) Error() string {
	return fmt.Sprintf("%v\n(the logs are in %s)", e.Err, directory(e.Directory).logs())
}

// Unwrap returns e.Err, which says why the run was aborted.
func (e *UnrecordedError) Unwrap() error { return e.Err }

// checkHistory checks the history, writes the reports and returns their content. The result is nil
// if there is no history. If a check failed or objects did not converge, checkHistory also writes
// the argument diagnostics, which may be nil.
//
// The argument runErr is nil, or the error that aborted the run. The returned error wraps runErr
// and the errors of checkHistory itself.
func (s *Session) checkHistory(diagnostics *snapshot, runErr error) (*reports.Run, error) {
	if _, err := os.Stat(s.dir.history()); err != nil {
		return nil, s.describeMissingHistory(err, runErr)
	}
	s.progress("checking the history")
	result, draft, err := checkDirectory(string(s.dir))
	if err != nil {
		runErr = errors.Join(runErr, fmt.Errorf("checking %s: %w", s.dir, err))
	}
	if result == nil {
		if s.inVirtualTime() {
			runErr = errors.Join(runErr, convertDiagnostics(s.dir.diagnostics()))
		}
		return nil, runErr
	}
	if err := s.writeDiagnostics(diagnostics, result); err != nil {
		s.progress("writing the diagnostics failed: %v", err)
	}
	return result, errors.Join(runErr, reports.WriteRun(*result, draft))
}

// describeMissingHistory returns the error of a run without a history. The argument err says why the
// history cannot be read, and runErr is nil or the error that aborted the run.
func (s *Session) describeMissingHistory(err, runErr error) error {
	// A run writes scenario.yaml first. A later step may create the run directory again.
	if _, missing := os.Stat(s.dir.scenario()); errors.Is(missing, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s: found no %s; the run directory was removed during the run", s.dir, filepath.Base(s.dir.scenario())), runErr)
	}
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		runErr = errors.Join(runErr, fmt.Errorf("reading the history: %w", err))
	case runErr == nil:
		runErr = fmt.Errorf("%s: the file was removed during the run", s.dir.history())
	}
	return &UnrecordedError{Directory: string(s.dir), Err: runErr}
}

// writeDiagnostics writes the diagnostics if the run needs them; see [snapshot.neededFor]. In
// virtual time, gauntlet-virtual has written the diagnostics already. writeDiagnostics then
// completes these files, or removes them if the run does not need them.
func (s *Session) writeDiagnostics(diagnostics *snapshot, result *reports.Run) error {
	if s.inVirtualTime() {
		return s.dir.finishDiagnostics(result)
	}
	if !diagnostics.neededFor(result) {
		return nil
	}
	return errors.Join(diagnostics.write(s.dir.diagnostics()), convertDiagnostics(s.dir.diagnostics()))
}

// tearDown stops everything that setUp started, in reverse order. If the run was aborted, tearDown
// records a gap with the reason. A gap says that the history is incomplete.
func (s *Session) tearDown(ctx context.Context, runErr error) error {
	if s.Environment == nil {
		return nil
	}
	if runErr != nil && !errors.Is(ctx.Err(), context.Canceled) && !errors.Is(runErr, errInterrupted) {
		s.exportLogs(context.WithoutCancel(ctx))
	}
	if runErr != nil && s.Environment.Recorder != nil {
		s.Environment.Recorder.Append(history.Record{Gap: &history.Gap{Source: history.SourceRun, Detail: runErr.Error()}})
	}
	if s.On != nil {
		return s.Environment.Reset(ctx)
	}
	return s.Environment.Stop(ctx)
}

// exportLogsTimeout limits the duration of exportLogs. The timeout is short, because the logs are
// only diagnostics.
const exportLogsTimeout = 20 * time.Second

// exportLogs exports the logs of a cluster that implements [cluster.LogExporter]. It does nothing
// if the cluster has failed, because a failed cluster exports its logs when it stops.
func (s *Session) exportLogs(ctx context.Context) {
	exporter, ok := s.Environment.Cluster.(cluster.LogExporter)
	if !ok || s.Environment.Cluster.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, exportLogsTimeout, fmt.Errorf("the export of the logs did not end within %s", exportLogsTimeout))
	defer cancel()
	if err := exporter.ExportLogs(ctx, filepath.Join(s.dir.logs(), s.Provider)); err != nil {
		s.progress("%v", err)
	}
}
