package run

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/virtual"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
	"github.com/kube-gauntlet/gauntlet/harness/internal/runtimepatch"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// virtualTimeout is the maximum duration of a run in virtual time, measured in real time. Such a
// run usually takes a second or two. It takes forever if a goroutine waits for something outside
// of the virtual clock.
const virtualTimeout = 10 * time.Minute

// virtualStopGrace is the time between SIGTERM and SIGKILL for the program that runs in virtual
// time.
const virtualStopGrace = time.Second

// inVirtualTime reports whether the program gauntlet-virtual must record the run. In that
// program, time jumps to the next timer whenever all goroutines wait.
func (o *Options) inVirtualTime() bool {
	provider, err := providers.Named(o.Provider)
	return err == nil && o.On == nil && provider.Capabilities.Has(cluster.VirtualTime)
}

// checkVirtual returns an error if a run in virtual time cannot support the options, such as KeepUp.
func (o *Options) checkVirtual() error {
	for _, unsupported := range []struct {
		set  bool
		what string
	}{
		{o.KeepUp != nil, "--keep"},
		{o.Scenario.ExternalWorkload != nil, "externalWorkload"},
		{o.Direct, "Options.Direct"},
	} {
		if unsupported.set {
			return fmt.Errorf("%s has no effect on the provider %s, because there the program %s executes the run; use another provider, such as --provider=embedded", unsupported.what, o.Provider, virtual.Program)
		}
	}
	return nil
}

// recordInVirtualTime runs the program gauntlet-virtual, which records the history of the run. It
// then passes on the program's progress messages and the records. If the run was aborted, it adds the
// reason to the history.
func (s *Session) recordInVirtualTime(ctx context.Context) error {
	err := s.runVirtual(ctx)
	if err != nil {
		err = &abortError{err}
	}
	progress, progressErr := readMessages(s.dir.progress())
	for _, message := range progress {
		s.progress("%s", message)
	}
	if progressErr != nil {
		s.progress("reading the progress of the run: %v", progressErr)
	}
	if err = errors.Join(err, os.RemoveAll(s.dir.state())); err != nil {
		err = errors.Join(err, s.recordAbort(err))
	}
	s.passRecords()
	return err
}

// passRecords passes the records of the history to Options.OnRecord. It stops at an invalid record.
// The checks report this record.
func (s *Session) passRecords() {
	if s.OnRecord == nil {
		return
	}
	for record, err := range history.ReadFile(s.dir.history()) {
		if err != nil {
			return
		}
		s.OnRecord(record)
	}
}

// recordAbort adds a gap record to the history. The record says that the history is incomplete,
// because the run was aborted for the given reason. If the controllers under test panicked, a
// process record before the gap says so. If there is no history, recordAbort creates one, so that
// the run has reports.
func (s *Session) recordAbort(reason error) error {
	gap := history.Record{Gap: &history.Gap{Source: history.SourceRun, Detail: abortReason(reason)}}
	ending := []history.Record{gap}
	if died := subjectPanic(reason); died != nil {
		ending = []history.Record{{Process: died}, gap}
	}
	err := history.EndWith(s.dir.history(), ending...)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, history.ErrNoRecord):
		if err := os.Remove(s.dir.history()); err != nil {
			return err
		}
	default:
		return err
	}
	recorder, err := history.Create(s.dir.history(), history.Start{
		Scenario: s.Scenario.Name, Seed: s.Scenario.Seed, Subject: s.Target.String(), Controllers: s.Scenario.Subject.Controllers,
		Provider: s.Provider, Namespace: cmp.Or(s.Namespace, environment.Namespace),
	}, s.Clock)
	if err != nil {
		return err
	}
	for _, record := range ending {
		recorder.Append(record)
	}
	return recorder.Close()
}

// abortError is the error of a run that was aborted. Its text is that of [abortReason].
type abortError struct{ err error }

func (e *abortError) Error() string { return abortReason(e.err) }
func (e *abortError) Unwrap() error { return e.err }

// abortReason returns the text of an error that aborted a run. If a process has exited, the first
// line also contains the most informative line of the process's log. Reports show only the first
// line.
func abortReason(err error) string {
	var exit *process.ExitError
	if !errors.As(err, &exit) {
		return err.Error()
	}
	how, rest, _ := strings.Cut(exit.Error(), "; ")
	if line := mostTellingLine(exit.LogPath, exit.LogTail); line != "" {
		how += ": " + line
	}
	return how + "\n" + rest
}

// subjectPanic returns a process record that names the replica whose panic ended the program
// gauntlet-virtual. The argument err is the error of that program. The result is nil if the
// program ended for another reason.
func subjectPanic(err error) *history.Process {
	var exit *process.ExitError
	if !errors.As(err, &exit) {
		return nil
	}
	log, err := os.ReadFile(exit.LogPath)
	if err != nil {
		return nil
	}
	return panicOf(string(log))
}

// replicaLabel matches the label of a replica in the header of a goroutine's stack. The label tells
// panicOf which replica panicked.
var replicaLabel = regexp.MustCompile(`labels:\{"` + subject.ReplicaLabel + `": "([^"]+)"\}`)

// panicOf returns a process record that names the replica that panicked. The argument log is the
// log of gauntlet-virtual. The result is nil if no goroutine of a replica panicked.
//
// After a panic, the Go runtime prints the stacks of goroutines. The first stack is that of the
// goroutine that panicked.
func panicOf(log string) *history.Process {
	i := strings.LastIndex("\n"+log, "\npanic: ")
	if i < 0 {
		return nil
	}
	message, rest, _ := strings.Cut(log[i:], "\n")
	_, stacks, _ := strings.Cut(rest, "\ngoroutine ")
	header, _, _ := strings.Cut(stacks, "\n")
	label := replicaLabel.FindStringSubmatch(header)
	if label == nil {
		return nil
	}
	return &history.Process{Name: label[1], Event: history.ProcessDied, Detail: message}
}

// signalLine matches the line with which the Go runtime reports a signal, before the stacks and the
// registers.
var signalLine = regexp.MustCompile(`^SIG[A-Z]+: `)

// mostTellingLine returns the line of a log that most likely says why the process has exited. This
// is the last line that begins with "panic: ", "fatal error: " or the name of a signal, such as
// "SIGSEGV: ". gauntlet-virtual sends itself SIGQUIT if its virtual clock does not advance. Without
// such a line, it is the last line of the argument tail, which is the end of the log. The result has
// at most 300 characters.
func mostTellingLine(logPath, tail string) string {
	lines := strings.Split(tail, "\n")
	if log, err := os.ReadFile(logPath); err == nil {
		for line := range strings.Lines(string(log)) {
			switch {
			case strings.HasPrefix(line, "panic: "), strings.HasPrefix(line, "fatal error: "):
				lines = append(lines[:0], strings.TrimSpace(line))
			case strings.HasPrefix(line, "SIGQUIT: "):
				lines = append(lines[:0], "the virtual clock did not advance; look in the log for a goroutine that is running or runnable")
			case signalLine.MatchString(line):
				lines = append(lines[:0], strings.TrimSpace(line))
			}
		}
	}
	const lengthMax = 300
	line := []rune(strings.ToValidUTF8(lines[len(lines)-1], "?"))
	return string(line[:min(len(line), lengthMax)])
}

// runVirtual starts the program that records the history of the run, and waits until it has exited.
// The program calls [Record].
func (s *Session) runVirtual(ctx context.Context) error {
	program, err := virtual.Find(s.Gauntlet, s.Target == subject.Upstream)
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return err
	}
	s.progress("running in virtual time")
	p, err := process.Start(ctx, process.Spec{
		Name: virtual.Program, Path: program,
		// The history may depend on the length of each argument and variable, so they are the same on
		// each machine.
		Dir: string(s.dir), Args: []string{"."}, Env: runtimepatch.Environment(s.Scenario.Seed),
		LogPath: filepath.Join(s.dir.logs(), virtual.Program+".log"),
	})
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	if err != nil {
		return err
	}
	timer := time.NewTimer(virtualTimeout)
	defer timer.Stop()
	select {
	case <-p.Done():
	case <-ctx.Done():
		if err := p.Stop(context.WithoutCancel(ctx), virtualStopGrace); err != nil {
			return fmt.Errorf("%w; stopping %s: %w", errInterrupted, virtual.Program, err)
		}
		return errInterrupted
	case <-timer.C:
		return errors.Join(fmt.Errorf("%s did not exit within %s; see %s", virtual.Program, virtualTimeout, filepath.Join(s.dir.logs(), virtual.Program+".log")), p.Kill())
	}
	return exitReason(p.Err(), s.dir)
}

// exitReason returns the reason for which gauntlet-virtual has exited, or nil if the run was
// complete. It is the error that [Record] returned there. If Record did not return, or the disk is
// full, it is the argument exited, which has the exit status and the end of the log.
func exitReason(exited error, dir directory) error {
	var exit *process.ExitError
	if !errors.As(exited, &exit) {
		return exited
	}
	if exit.Code == 0 {
		return nil
	}
	if reason, err := os.ReadFile(dir.recordError()); err == nil && len(reason) > 0 && !exit.DiskFull {
		return errors.New(string(reason))
	}
	return exited
}

// Record records the history of a run in a directory that another gauntlet process has created.
// The program gauntlet-virtual calls Record for runs in virtual time. The other gauntlet process
// then checks the history.
//
// The argument start is a callback that starts the control plane. Record does not stop the control
// plane. The argument progress is a callback that receives each progress message of the run.
func Record(ctx context.Context, path string, start func(seed uint64, o providers.Options) (cluster.Cluster, error), progress func(message string)) error {
	dir, spec, created, err := openRunDirectory(path)
	if err != nil {
		return err
	}
	target, err := subject.ParseTarget(created.Subject)
	if err != nil {
		return fmt.Errorf("subject: %w", err)
	}
	if err := os.MkdirAll(dir.state(), 0o700); err != nil { // the other gauntlet process removes this directory after the run
		return err
	}
	err = record(ctx, dir, &Options{Scenario: spec, Target: target, Provider: created.Provider, Clock: clock.RealClock{}}, start, progress)
	if err != nil {
		err = errors.Join(err, os.WriteFile(dir.recordError(), []byte(err.Error()), 0o600))
	}
	return err
}

// record records the history of a run with the given options in the run directory dir. The other
// arguments are those of [Record].
func record(ctx context.Context, dir directory, o *Options, start func(seed uint64, o providers.Options) (cluster.Cluster, error), progress func(message string)) error {
	messages, err := os.Create(dir.progress())
	if err != nil {
		return err
	}
	defer messages.Close()
	o.Progress = func(message string) {
		progress(message)
		_ = json.NewEncoder(messages).Encode(message) // only progress is lost; the log has the message
	}
	c, err := start(o.Scenario.Seed, o.controlPlane())
	if err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}
	o.On, err = environment.On(c, environment.Options{
		Provider: o.Provider, ControlPlane: o.controlPlane(), StateDir: dir.state(), KeepState: true, LogDir: dir.logs(),
		Seed: o.Scenario.Seed, Clock: o.Clock, Progress: o.Progress,
	})
	if err != nil {
		return err
	}
	s := &Session{Options: o, dir: dir, monitor: newMonitor(o.Scenario.Controllers()...)}
	if err = s.setUp(ctx); err == nil {
		err = s.runPhases(ctx)
	}
	if s.ready {
		if writeErr := s.takeSnapshot(ctx, err).write(dir.diagnostics()); writeErr != nil {
			s.progress("writing the diagnostics failed: %v", writeErr)
		}
	}
	return joinOnce(err, s.tearDown(ctx, err))
}

// readMessages returns the progress messages that [Record] has written to the file at path. It
// stops at an incomplete message, which exists if the program was killed. Without the file, it
// returns no message.
func readMessages(path string) (all []string, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for decoder := json.NewDecoder(bufio.NewReader(file)); ; {
		var message string
		if err := decoder.Decode(&message); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = nil
			}
			return all, err
		}
		all = append(all, message)
	}
}
