package kind

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestInterruptedStart verifies that Start removes everything if ctx is canceled. The test cancels
// ctx at several steps of kind.
func TestInterruptedStart(t *testing.T) {
	requireEngine(t)
	t.Parallel()
	for _, step := range []string{"Preparing nodes", "Starting control-plane"} {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			log := filepath.Join(dir, "logs", "kind.log")
			ctx, cancel := context.WithCancelCause(t.Context())
			errInterrupted := errors.New("interrupted by the test")
			go func() {
				_ = poll(ctx, step, func(context.Context) error {
					data, err := os.ReadFile(log)
					if err == nil && !strings.Contains(string(data), step) {
						err = errors.New("kind has not reached the step")
					}
					return err
				})
				cancel(errInterrupted)
			}()
			started := time.Now()
			c, err := Start(ctx, Options{Dir: dir, LogDir: filepath.Join(dir, "logs")})
			if c != nil || !errors.Is(err, errInterrupted) {
				t.Fatalf("Start() = %v, error %v; want %v", c, err, errInterrupted)
			}
			t.Logf("Start() returned after %s", time.Since(started).Round(time.Second))
			found, err := List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				if f.Dir == filepath.Join(dir, "cluster") {
					t.Errorf("List() still contains the cluster: %+v", f)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "cluster")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the state directory was not removed: error %v, want %v", err, os.ErrNotExist)
			}
		})
	}
}

// TestNeverReady checks that Start fails if no pod can start, although all nodes are Ready.
func TestNeverReady(t *testing.T) {
	requireEngine(t) // not parallel: waiting for the lock [creating] would use up Options.Within
	image, err := ChooseImage(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	const broken = "gauntlet-test/node:broken"
	var e engine
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM "+image+"\nRUN rm /opt/cni/bin/ptp\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := e.run(t.Context(), engineChangeTimeout, "build", "--quiet", "--tag", broken, dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := e.run(context.WithoutCancel(t.Context()), engineChangeTimeout, "rmi", broken); err != nil {
			t.Error(err)
		}
	})
	const within = time.Minute
	logs := filepath.Join(dir, "logs")
	c, err := Start(t.Context(), Options{Image: broken, Dir: dir, LogDir: logs, Within: within})
	if c != nil || !errorHas(err, "not ready within "+within.String(), "last lines of the kubelet log on node "+namePrefix) {
		t.Errorf("Start() = %v, error %v; want a timeout with the kubelet log", c, err)
	}
	t.Log(err)
	if all, err := filepath.Glob(filepath.Join(logs, allLogsSubdir, namePrefix+"*", "kubelet.log")); err != nil || len(all) != 1 {
		t.Errorf("exported kubelet logs: %v (error %v), want 1", all, err)
	}
}

// TestKilledGauntlet checks that the guard process removes the cluster after gauntlet was killed.
// If the guard process is also killed, List must report the cluster as left behind, and Remove must
// remove the cluster.
func TestKilledGauntlet(t *testing.T) {
	requireEngine(t)
	t.Parallel()
	for _, test := range []struct {
		name      string
		killGuard bool
	}{{"guard is running", false}, {"guard is killed too", true}} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			gauntlet := exec.CommandContext(t.Context(), "/proc/self/exe")
			gauntlet.Env = append(os.Environ(), helperVariable+"="+dir)
			output, err := gauntlet.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := gauntlet.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(output).ReadString('\n')
			name := strings.TrimSpace(line)
			if err != nil || !strings.HasPrefix(name, namePrefix) {
				t.Fatalf("reading the cluster name that the helper prints: got %q, error %v", line, err)
			}
			if f := find(t, name); f.State != InUse {
				t.Errorf("state of the cluster while gauntlet runs is %q, want %q: %+v", f.State, InUse, f)
			}
			if test.killGuard {
				killGuardOf(t, gauntlet.Process.Pid)
			}
			if err := gauntlet.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = gauntlet.Wait() // the process was killed by the test, which is an error of Wait
			if test.killGuard {
				f := find(t, name)
				if f.State != LeftBehind {
					t.Errorf("state of the cluster after gauntlet was killed is %q, want %q: %+v", f.State, LeftBehind, f)
				}
				if err := Remove(t.Context(), f); err != nil {
					t.Fatal(err)
				}
				assertRemoved(t, name)
			}
			ctx, cancel := context.WithTimeout(t.Context(), engineChangeTimeout)
			defer cancel()
			err = poll(ctx, "the removal of the cluster", func(ctx context.Context) error {
				found, err := List(ctx)
				if err == nil && slices.ContainsFunc(found, func(f Found) bool { return f.Name == name }) {
					err = fmt.Errorf("List() still contains the cluster: %+v", found)
				}
				if _, stat := os.Stat(filepath.Join(dir, "cluster")); err == nil && !errors.Is(stat, os.ErrNotExist) {
					err = fmt.Errorf("the state directory was not removed: %w", stat)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func find(t *testing.T, name string) Found {
	t.Helper()
	found, err := List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(found, func(f Found) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("List() does not contain cluster %s: %+v", name, found)
	}
	return found[i]
}

func killGuardOf(t *testing.T, pid int) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil || strings.TrimRight(string(data), "\x00") != fmt.Sprintf("gauntlet-guard-of-%d", pid) {
			continue
		}
		var guard int
		if _, err := fmt.Sscanf(path, "/proc/%d/cmdline", &guard); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("process %d has no guard", pid)
}
