package e2eframework_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/kind"
)

// requireKind skips the test if there is no container engine with a node image.
func requireKind(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: the test creates a kind cluster")
	}
	for _, image := range []string{kind.BuiltImage, kind.ReleasedImage} {
		if exec.CommandContext(t.Context(), "docker", "image", "inspect", image).Run() == nil {
			return
		}
	}
	t.Skipf("the test needs a container engine with the node image %s or %s", kind.BuiltImage, kind.ReleasedImage)
}

// stateDirOf returns the state directory, which a suite that blocks prints to output.
func stateDirOf(t *testing.T, output io.Reader) string {
	t.Helper()
	var seen []string
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if dir, ok := strings.CutPrefix(lines.Text(), "blocks "); ok {
			return dir
		}
		seen = append(seen, lines.Text())
	}
	t.Fatalf("the suite did not block:\n%s", strings.Join(seen, "\n"))
	return ""
}

// leftovers returns what a suite has created and not removed. Leftovers are the state directory,
// processes that have the directory in their arguments, and the kind cluster.
func leftovers(t *testing.T, stateDir string, onKind bool) []string {
	t.Helper()
	var left []string
	if _, err := os.Stat(stateDir); err == nil {
		left = append(left, stateDir)
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range commands {
		if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), stateDir) {
			left = append(left, path+": "+strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	if !onKind {
		return left
	}
	clusters, err := kind.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range clusters {
		if strings.HasPrefix(c.Dir, stateDir) {
			left = append(left, "kind cluster "+c.Name)
		}
	}
	return left
}
