package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// TestPanicOf checks that only a panic of a replica counts as the death of this replica.
func TestPanicOf(t *testing.T) {
	const (
		again   = "E0101 message\npanic: index out of range [recovered, repanicked]\n\n"
		replica = `goroutine 7 [running, synctest bubble 1 labels:{"replica": "subject-1"}]:` + "\nmain.f()\n"
		other   = "goroutine 8 [running, synctest bubble 1]:\nmain.g()\n"
	)
	died := &history.Process{Name: "subject-1", Event: history.ProcessDied, Detail: "panic: index out of range [recovered, repanicked]"}
	for name, test := range map[string]struct {
		log  string
		want *history.Process
	}{
		"a replica":                            {again + replica + "\n" + other, died},
		"a replica, with more text":            {"panic: nil map\n" + again + "[signal SIGSEGV: segmentation violation]\n\n" + replica, died},
		"the control plane, beside a replica":  {again + other + "\n" + replica, nil},
		"the control plane after a replica's":  {again + replica + "\n" + again + other, nil},
		"a deadlock":                           {"fatal error: all goroutines are asleep - deadlock!\n\n" + replica, nil},
		"an end of the log before the stacks":  {again, nil},
		"no panic":                             {"E0101 message\n", nil},
		"a message that quotes another panic:": {"E0101 panic: x\n\n" + replica, nil},
	} {
		if diff := cmp.Diff(test.want, panicOf(test.log)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestExitReason checks that the error of a run in virtual time is the one that Record returned. The
// end of the log is in the error only if the program could not write that error.
func TestExitReason(t *testing.T) {
	refused := "step 0 (create ConfigMap web): invalid"
	for _, test := range []struct {
		name, written string
		exit          process.ExitError
		want          string
	}{
		{"complete", "", process.ExitError{}, ""},
		{"a step failed", refused, process.ExitError{Code: 1, LogTail: "I0101 noise\n" + refused}, refused},
		{"panic", "", process.ExitError{Name: "gauntlet-virtual", Code: 2, LogTail: "panic: x"}, "gauntlet-virtual exited with status 2; last lines of :\n\tpanic: x"},
		{"full disk", "ste", process.ExitError{Name: "gauntlet-virtual", Code: 1, DiskFull: true, LogTail: "x"}, "gauntlet-virtual exited with status 1; no space left on the disk of .; see "},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := directory(t.TempDir())
			if err := errors.Join(os.Mkdir(dir.state(), 0o700), os.WriteFile(dir.recordError(), []byte(test.written), 0o600)); err != nil {
				t.Fatal(err)
			}
			err := exitReason(&test.exit, dir)
			if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// TestRecordAbort checks the history of a run whose subject panics before the history exists. It must
// name the replica that panicked.
func TestRecordAbort(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	text := "panic: boom\n\ngoroutine 7 [running, synctest bubble 1 labels:{\"replica\": \"subject-0\"}]:\nmain.f()\n"
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Session{Options: &Options{Scenario: parse(t, shortScenario), Target: subject.Ours, Provider: "virtual", Clock: clock.RealClock{}}, dir: directory(t.TempDir())}
	exit := &process.ExitError{Name: "gauntlet-virtual", Code: 2, LogPath: log}
	if err := s.recordAbort(exit); err != nil {
		t.Fatal(err)
	}
	if text := (&abortError{exit}).Error(); !strings.HasPrefix(text, "gauntlet-virtual exited with status 2: panic: boom\n") {
		t.Errorf("error %q; want the panic in the first line", text)
	}
	var found []string
	for record, err := range history.ReadFile(s.dir.history()) {
		switch {
		case err != nil:
			t.Fatal(err)
		case record.Process != nil:
			found = append(found, fmt.Sprintf("%s %s: %s", record.Process.Name, record.Process.Event, record.Process.Detail))
		case record.Gap != nil:
			found = append(found, record.Gap.Detail)
		}
	}
	if len(found) != 2 || found[0] != "subject-0 died: panic: boom" || !strings.HasPrefix(found[1], "gauntlet-virtual exited with status 2: panic: boom") {
		t.Errorf("records %q; want the death of subject-0, and the gap", found)
	}
}

// TestMostTellingLine checks which line of a log a verdict shows.
func TestMostTellingLine(t *testing.T) {
	for _, test := range []struct{ name, log, want string }{
		{"a panic", "panic: x\n\ngoroutine 1\nrbp 0x1\n", "panic: x"},
		{"a signal", "noise\nSIGSEGV: segmentation violation\nPC=0x1\n\nrax 0x0\ngs 0x0\n", "SIGSEGV: segmentation violation"},
		{"no progress", "SIGQUIT: quit\ngs 0x0\n", "the virtual clock did not advance; look in the log for a goroutine that is running or runnable"},
		{"a message about a signal", "I0101 SIGSEGV: x\nlast\n", "end of the log"},
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(test.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := mostTellingLine(path, "end of the log"); got != test.want {
			t.Errorf("%s: found %q; want %q", test.name, got, test.want)
		}
	}
}
