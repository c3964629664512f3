package run

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// ErrInUse means that another command uses the run directory.
var ErrInUse = errors.New("the run directory is in use")

// Lock locks the run directory at path until unlock is called. It returns ErrInUse at once if
// another command has locked the directory.
//
// The lock is that of the kernel on the open directory, which ends with the process, even if
// the process is killed. Nothing is written.
func Lock(path string) (unlock func(), err error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("locking the run directory: %w", err)
	}
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer dir.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: locking the run directory: %w", path, err)
		}
		return nil, fmt.Errorf("%s: %w by %s; wait until that command has ended, or end it", path, ErrInUse, lockHolder(dir))
	}
	return func() { dir.Close() }, nil
}

// lockHolder describes the process that has locked a directory, such as "process 123".
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

// findLockHolder returns the holder of the lock on a file from the content of /proc/locks.
//
// Its lines look like "1: FLOCK ADVISORY WRITE 123 fd:01:4567 0 EOF", with the process and the
// inode. A process outside of the PID namespace has the number 0.
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
