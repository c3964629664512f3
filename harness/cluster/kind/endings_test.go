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

// A start that is interrupted, wherever it is, leaves nothing.
func TestInterruptedStart(t *testing.T) {
	needEngine(t)
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
						err = errors.New("not yet")
					}
					return err
				})
				cancel(errInterrupted)
			}()
			begun := time.Now()
			c, err := Start(ctx, Options{Dir: dir, LogDir: filepath.Join(dir, "logs")})
			if c != nil || !errors.Is(err, errInterrupted) {
				t.Fatalf("Start = %v, %v", c, err)
			}
			t.Logf("over after %s", time.Since(begun).Round(time.Second))
			found, err := List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				if f.Dir == filepath.Join(dir, "cluster") {
					t.Errorf("%+v is left", f)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "cluster")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the state directory is still there: %v", err)
			}
		})
	}
}

// A cluster on which no pod can start is not ready, however it looks.
func TestNeverReady(t *testing.T) {
	needEngine(t) // and not beside others: how long it waits for the making of theirs would count
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
	if _, err := e.run(t.Context(), engineWorkMax, "build", "--quiet", "--tag", broken, dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := e.run(context.WithoutCancel(t.Context()), engineWorkMax, "rmi", broken); err != nil {
			t.Error(err)
		}
	})
	const within = time.Minute
	logs := filepath.Join(dir, "logs")
	c, err := Start(t.Context(), Options{Image: broken, Dir: dir, LogDir: logs, Within: within})
	if c != nil || !errorHas(err, "not ready within "+within.String(), "the end of the kubelet's log on "+namePrefix) {
		t.Errorf("Start = %v, %v", c, err)
	}
	t.Log(err)
	if all, err := filepath.Glob(filepath.Join(logs, allLogsSubdir, namePrefix+"*", "kubelet.log")); err != nil || len(all) != 1 {
		t.Errorf("the logs of the node were not exported: %v, %v", all, err)
	}
}

// When gauntlet is killed its guard removes the cluster; when both are, what is
// left is known for what it is, and can be removed.
func TestKilledGauntlet(t *testing.T) {
	needEngine(t)
	t.Parallel()
	for _, test := range []struct {
		name      string
		killGuard bool
	}{{"and its guard lives", false}, {"and its guard too", true}} {
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
				t.Fatalf("the helper said %q: %v", line, err)
			}
			if f := find(t, name); f.State != InUse {
				t.Errorf("the cluster of a living gauntlet is %q: %+v", f.State, f)
			}
			if test.killGuard {
				killGuardOf(t, gauntlet.Process.Pid)
			}
			if err := gauntlet.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = gauntlet.Wait() // it was killed
			if test.killGuard {
				f := find(t, name)
				if f.State != LeftBehind {
					t.Errorf("what a killed gauntlet left is %q: %+v", f.State, f)
				}
				if err := Remove(t.Context(), f); err != nil {
					t.Fatal(err)
				}
				wantNothingLeft(t, name)
			}
			ctx, cancel := context.WithTimeout(t.Context(), engineWorkMax)
			defer cancel()
			err = poll(ctx, "nothing to be left", func(ctx context.Context) error {
				found, err := List(ctx)
				if err == nil && slices.ContainsFunc(found, func(f Found) bool { return f.Name == name }) {
					err = fmt.Errorf("%+v", found)
				}
				if _, stat := os.Stat(filepath.Join(dir, "cluster")); err == nil && !errors.Is(stat, os.ErrNotExist) {
					err = fmt.Errorf("the state directory is still there: %w", stat)
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
		t.Fatalf("no %s in %+v", name, found)
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
