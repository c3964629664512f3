package process

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kube-gauntlet/gauntlet/harness/internal/logfile"
)

// output copies the standard output and standard error of a process to its log file.
type output struct {
	log         *logfile.File
	read, write *os.File      // the ends of the pipe; the process writes to write
	copied      chan struct{} // closed when the log file contains everything
}

const (
	// pipeBytes is the size of the pipe. A process that writes more than this at once waits for
	// gauntlet. The kernel's default of 64 KiB would make a chatty subject wait often.
	pipeBytes = 1 << 20
	// drainTimeout limits the time in which finish copies the rest of the pipe. The pipe ends with
	// the process, unless a descendant that has left the process group keeps it open.
	drainTimeout = 2 * time.Second
)

// startOutput opens the log file and begins to copy. The caller starts the process with write, and
// then closes write.
func startOutput(path string) (*output, error) {
	log, err := logfile.Open(path)
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	// The error is ignored: with a small pipe, the process only waits more often.
	_, _ = unix.FcntlInt(write.Fd(), unix.F_SETPIPE_SZ, pipeBytes)
	o := &output{log: log, read: read, write: write, copied: make(chan struct{})}
	go func() {
		defer close(o.copied)
		_, _ = io.Copy(log, read) // a log never fails, and the pipe ends or reaches its deadline
	}()
	return o, nil
}

// finish copies what is left in the pipe after the process has exited, and closes the log file.
func (o *output) finish() {
	_ = o.read.SetReadDeadline(time.Now().Add(drainTimeout))
	<-o.copied
	_ = o.read.Close()
	_ = o.log.Close()
}
