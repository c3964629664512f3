package process

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kube-gauntlet/gauntlet/harness/internal/logfile"
)

// output copies the standard output and standard error of a process to a log file, through a
// pipe.
type output struct {
	log         *logfile.File
	read, write *os.File      // ends of the pipe to which the process writes its output
	copied      chan struct{} // closed after the last byte of the pipe was copied
}

const (
	// pipeBytes is the size of the pipe. A process that writes faster than gauntlet copies waits
	// when the pipe is full. With the kernel's default of 64 KiB, a program with many log lines
	// would wait often.
	pipeBytes = 1 << 20
	// drainTimeout limits the time in which finish copies the rest of the pipe. Normally, EOF
	// follows when the process exits. A descendant that has left the process group may keep the
	// pipe open.
	drainTimeout = 2 * time.Second
)

// startOutput opens the log file, and begins to copy a new pipe to it. The caller passes the write
// end of the pipe (the field write) to the process. The caller then closes its own copy of that
// end.
func startOutput(path string) (*output, error) {
	log, err := logfile.Open(path)
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	// Ignore the error: with a smaller pipe, the process only waits more often.
	_, _ = unix.FcntlInt(write.Fd(), unix.F_SETPIPE_SZ, pipeBytes)
	o := &output{log: log, read: read, write: write, copied: make(chan struct{})}
	go func() {
		defer close(o.copied)
		_, _ = io.Copy(log, read) // Write of the log never fails; the read ends with EOF or at the deadline
	}()
	return o, nil
}

// finish copies the rest of the pipe after the process has exited, and closes the log file. It
// stops after drainTimeout.
func (o *output) finish() {
	_ = o.read.SetReadDeadline(time.Now().Add(drainTimeout))
	<-o.copied
	_ = o.read.Close()
	_ = o.log.Close()
}
