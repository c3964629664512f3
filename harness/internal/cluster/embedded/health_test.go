package embedded

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// TestHealthWhileHalted verifies that Health repeats a failed health check if Halt was called
// during the check. Without a call of Halt, Health must return the error of the failed check.
func TestHealthWhileHalted(t *testing.T) {
	dir := t.TempDir()
	running, err := process.Start(t.Context(), process.Spec{Name: "part", Path: "/bin/sleep", Args: []string{"60"}, Dir: dir, LogPath: filepath.Join(dir, "part.log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Kill(); err != nil {
			t.Error(err)
		}
	})
	for _, halted := range []bool{true, false} {
		c, requests := &Cluster{prober: prober{client: http.DefaultClient}}, 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if requests++; requests > 1 {
				return
			}
			if halted {
				c.halts++
			}
			w.WriteHeader(http.StatusInternalServerError)
		}))
		t.Cleanup(server.Close)
		c.parts = []*part{{component: component{name: "part", healthURL: server.URL}, Process: running}}
		if err := c.Health(t.Context()); (err == nil) != halted {
			t.Errorf("halted during the check: %t; Health() = %v", halted, err)
		}
	}
}
