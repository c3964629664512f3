package standing

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// noEngine sets PATH to an empty directory, so that the test finds no container engine.
func noEngine(t *testing.T) {
	t.Helper()
	t.Setenv("PATH", t.TempDir())
}

// stateRoot sets XDG_STATE_HOME to a temporary directory, and returns the result of Root.
func stateRoot(t *testing.T) string {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// makeDirectory creates a cluster's directory with an owner file. The function change modifies
// the owner's identity before makeDirectory writes the file.
func makeDirectory(t *testing.T, root, name string, change func(*process.Identity)) string {
	t.Helper()
	self, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	change(&self)
	dir := filepath.Join(root, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ownerFile), []byte(self.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRoot(t *testing.T) {
	for _, test := range []struct{ state, home, want, wantErr string }{
		{state: "/s", home: "/h", want: "/s/gauntlet"},
		{home: "/h", want: "/h/.local/state/gauntlet"},
		{wantErr: "neither XDG_STATE_HOME nor HOME is set"},
		{state: "s", wantErr: `expected an absolute path in XDG_STATE_HOME, found "s"`},
	} {
		t.Setenv("XDG_STATE_HOME", test.state)
		t.Setenv("HOME", test.home)
		got, err := Root()
		if got != test.want || (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
			t.Errorf("state %q, home %q: %q, %v", test.state, test.home, got, err)
		}
	}
}

// TestClean checks that Clean removes a cluster only if the owner of the cluster's directory has
// ended.
func TestClean(t *testing.T) {
	noEngine(t)
	root := stateRoot(t)
	gone := makeDirectory(t, root, "embedded-gone", func(id *process.Identity) { id.StartTicks-- })
	running := makeDirectory(t, root, "embedded-running", func(*process.Identity) {})
	elsewhere := makeDirectory(t, root, "embedded-elsewhere", func(id *process.Identity) { id.Host += "-other" })
	// Without a container engine, Clean cannot know whether the directory's kind cluster exists. It
	// must keep the directory.
	engineless := makeDirectory(t, root, "kind-gone", func(id *process.Identity) { id.StartTicks-- })
	foreign := filepath.Join(root, "embedded-foreign")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	removed, remaining, err := Clean(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(removed) != 1 || removed[0].Name != "embedded-gone" || removed[0].State != LeftBehind {
		t.Errorf("removed %+v", removed)
	}
	states := map[string]State{}
	for _, c := range remaining {
		states[c.Name] = c.State
	}
	if len(states) != 2 || states["embedded-running"] != Standing || states["embedded-elsewhere"] != Elsewhere {
		t.Errorf("remaining %v", states)
	}
	for dir, want := range map[string]bool{gone: false, running: true, elsewhere: true, engineless: true, foreign: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", dir, err == nil, want)
		}
	}
}

func TestDownRejectsOtherMachine(t *testing.T) {
	root := stateRoot(t)
	dir := makeDirectory(t, root, "embedded-elsewhere", func(id *process.Identity) { id.Host += "-other" })
	err := Down(t.Context(), Cluster{Name: "embedded-elsewhere", Provider: "embedded", dir: dir, hosted: true})
	if err == nil || !strings.Contains(err.Error(), "on another machine") {
		t.Errorf("Down: %v", err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

func TestListLeftovers(t *testing.T) {
	root := t.TempDir()
	makeDirectory(t, root, "kind-leftover", func(id *process.Identity) { id.StartTicks-- })
	inUse := makeDirectory(t, root, "kind-in-use", func(id *process.Identity) { id.StartTicks-- })
	makeDirectory(t, root, "kind-being-made", func(*process.Identity) {})
	leftovers, err := listLeftovers(root, map[string]bool{inUse: true})
	if err != nil || len(leftovers) != 1 || leftovers[0].Name != "kind-leftover" || leftovers[0].State != LeftBehind {
		t.Errorf("listLeftovers = %+v, %v", leftovers, err)
	}
}

func TestFailedUpLeavesNothing(t *testing.T) {
	noEngine(t)
	root := stateRoot(t)
	for provider, want := range map[string]string{
		"cloud": `provider "cloud": expected embedded or kind`,
		"kind":  "there is no container engine",
	} {
		if _, err := Up(t.Context(), environment.Options{Provider: provider, ControlPlane: providers.Options{Nodes: 1}}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", provider, err, want)
		}
	}
	if left, err := os.ReadDir(root); err == nil && len(left) > 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left %v, %v", left, err)
	}
}

// TestHost checks that Host writes the owner file, and reports when the cluster is ready. At the
// end, Host must stop all components.
func TestHost(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real control plane")
	}
	noEngine(t)
	root := stateRoot(t)
	dir := makeDirectory(t, root, "embedded-test", func(id *process.Identity) { id.StartTicks-- })
	if err := os.Mkdir(filepath.Join(dir, logSubdir), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answer := &notifier{onWrite: cancel}
	if err := Host(ctx, environment.Options{Provider: embedded.Name, StateDir: dir, ControlPlane: providers.Options{Nodes: 1}}, nil, answer); err != nil {
		t.Fatal(err)
	}
	if answer.text.String() != hostReady {
		t.Errorf("the host process wrote %q", answer.text.String())
	}
	if _, err := os.Stat(filepath.Join(dir, kubeconfigFile)); err != nil {
		t.Error(err)
	}
	all, err := List(t.Context())
	if err != nil || len(all) != 1 || all[0].State != Standing {
		t.Errorf("List = %+v, %v; want this process as the owner", all, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "cluster")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cluster's state is left: %v", err)
	}
}

// notifier is a writer that calls onWrite after each write.
type notifier struct {
	text    bytes.Buffer
	onWrite func()
}

func (n *notifier) Write(p []byte) (int, error) {
	defer n.onWrite()
	return n.text.Write(p)
}

// TestHostError checks that the error of a host process does not repeat the name of the program.
func TestHostError(t *testing.T) {
	for log, want := range map[string]string{"gauntlet: setting up: x\n": "setting up: x", "panic: x\n": "panic: x", "": ""} {
		if got := hostError(log).Error(); got != want {
			t.Errorf("log %q: error %q; want %q", log, got, want)
		}
	}
}
