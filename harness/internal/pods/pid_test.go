package pods

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLocalPID checks that localPID finds a container's process in a directory like /proc.
func TestLocalPID(t *testing.T) {
	proc := t.TempDir()
	for pid, groups := range map[string]string{
		"1":    "0::/init.scope\n",
		"70":   "0::/docker/n1/kubelet.slice/cri-containerd-abc.scope\n",
		"71":   "1:cpu:/docker/n1/kubelet/kubepods/burstable/pod5/def\n0::/\n",
		"self": "0::/cri-containerd-ghi.scope\n",
	} {
		if err := os.MkdirAll(filepath.Join(proc, pid), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, pid, "cgroup"), []byte(groups), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for container, want := range map[string]int{"abc": 70, "def": 71, "ghi": 0, "": 0} {
		if got := localPID(proc, container); got != want {
			t.Errorf("container %q: got process %d, want %d", container, got, want)
		}
	}
}
