package run

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestLock requires that a second Lock of a run directory fails. The error must name the process
// that holds the lock.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	unlock, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%s: the run directory is in use by process %d; wait", dir, os.Getpid())
	if _, err := Lock(dir); !errors.Is(err, ErrInUse) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("second lock: error %v, want %s…", err, want)
	}
	if err := os.WriteFile(dir+"/scenario.yaml", []byte(shortScenario), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("Check: error %v, want %v", err, ErrInUse)
	}
	unlock()
	unlock, err = Lock(dir)
	if err != nil {
		t.Fatalf("lock after unlock: %v", err)
	}
	unlock()
	if _, err := Lock(dir + "/none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that does not exist: error %v", err)
	}
}

func TestFindLockHolder(t *testing.T) {
	const locks = "1: POSIX  ADVISORY  WRITE 7 fd:01:42 0 EOF\n2: FLOCK  ADVISORY  WRITE 0 fd:01:43 0 EOF\n3: FLOCK  ADVISORY  WRITE 8 fd:01:42 0 EOF\n3: -> FLOCK\n"
	for inode, want := range map[uint64]string{42: "process 8", 43: "another process", 2: "another process"} {
		if got := findLockHolder(locks, inode); got != want {
			t.Errorf("inode %d: %s, want %s", inode, got, want)
		}
	}
}
