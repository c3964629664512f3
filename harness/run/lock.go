package run

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// ErrInUse means that another gauntlet command has locked the run directory.
var ErrInUse = errors.New("the run directory is in use")

// Lock locks the run directory at path until the caller calls the result unlock. If another
// command has locked the directory, Lock does not wait, and the error wraps [ErrInUse].
//
// Lock uses flock(2) on the directory and writes no file. The kernel releases the lock when the
// process ends, even if the process is killed.
func Lock(path string) (unlock func(), err error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w; expected a run directory", inputfile.FileError(err))
	}
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer dir.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: locking the run directory: %w", path, err)
		}
		return nil, fmt.Errorf("%s: %w by %s; wait until that command has ended, or stop that command", path, ErrInUse, lockHolder(dir))
	}
	return func() { dir.Close() }, nil
}

// lockHolder returns a text for the process that has locked dir, such as "process 123" or "another
// process". The error of Lock contains this text.
func lockHolder(dir *os.File) string {
	info, err := dir.Stat()
	if err != nil {
		return "another process"
	}
	locks, err := os.ReadFile("/proc/locks")
	stat, ok := info.Sys().(*syscall.Stat_t)
	if err != nil || !ok {
		return "another process"
	}
	return findLockHolder(string(locks), stat.Ino)
}

// findLockHolder searches the content of /proc/locks for the lock on a file, given by its inode. It
// returns "process PID", or "another process" if it finds no process ID.
//
// A line looks like "1: FLOCK ADVISORY WRITE 123 fd:01:4567 0 EOF": process 123 has locked inode
// 4567. The process ID is 0 if the process is outside of the PID namespace.
func findLockHolder(locks string, inode uint64) string {
	for line := range strings.Lines(locks) {
		words := strings.Fields(line)
		if len(words) < 6 || words[1] != "FLOCK" || !strings.HasSuffix(words[5], ":"+strconv.FormatUint(inode, 10)) {
			continue
		}
		if pid, err := strconv.Atoi(words[4]); err == nil && pid > 0 {
			return fmt.Sprintf("process %d", pid)
		}
	}
	return "another process"
}
