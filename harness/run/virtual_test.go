package run

import (
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
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
