package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
)

// TestInstalledLive installs gauntlet with "go install" from a module proxy that serves this
// source tree. It then runs a scenario on our controllers in an empty directory. gauntlet must
// build our controllers for this.
func TestInstalledLive(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles gauntlet and our controllers, and starts a control plane")
	}
	version := module.Version{Path: "github.com/kube-gauntlet/gauntlet", Version: "v0.0.1"}
	proxy := serveModule(t, version)
	goEnv, err := exec.Command("go", "env", "GOMODCACHE", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	modules, builds, _ := strings.Cut(strings.TrimSpace(string(goEnv)), "\n")
	dir := t.TempDir()
	env := append(os.Environ(), "GOBIN="+dir, "XDG_CACHE_HOME="+cacheWithUpstream(t), "GOCACHE="+builds, "GOWORK=off", "GOFLAGS=-trimpath -modcacherw", "GOSUMDB=off",
		"GOMODCACHE="+t.TempDir(), "GOPROXY=file://"+proxy+",file://"+filepath.Join(modules, "cache", "download")+",off")
	execute(t, dir, env, "go", "install", version.Path+"/harness/cmd/gauntlet@"+version.Version)
	stdout := execute(t, dir, env, filepath.Join(dir, "gauntlet"), "run", "orphan-endpoints", "--seed=1")
	if !strings.Contains(stdout, "1 run: 1 pass") {
		t.Errorf("gauntlet run printed:\n%s\nwant one run that passed", stdout)
	}
	if _, err := os.Stat(filepath.Join(dir, "workload-controller-manager")); err == nil {
		t.Error("the installation contains our controllers; want that gauntlet builds them in the cache")
	}
}

// cacheWithUpstream returns a new cache directory that contains only the programs of upstream.
func cacheWithUpstream(t *testing.T) string {
	t.Helper()
	manager, err := providers.UpstreamControllerManager("")
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	if err := os.Mkdir(filepath.Join(cache, "gauntlet"), 0o755); err != nil {
		t.Fatal(err)
	}
	upstream := filepath.Dir(filepath.Dir(filepath.Dir(manager)))
	if err := os.Symlink(upstream, filepath.Join(cache, "gauntlet", "upstream")); err != nil {
		t.Fatal(err)
	}
	return cache
}

// serveModule writes the files of a module proxy that serves this source tree as one version. It
// returns the directory of these files.
func serveModule(t *testing.T, version module.Version) string {
	t.Helper()
	proxy := t.TempDir()
	files := filepath.Join(proxy, version.Path, "@v", version.Version)
	if err := os.MkdirAll(filepath.Dir(files), 0o755); err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join("..", "..", "..")
	mod, err := os.ReadFile(filepath.Join(tree, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := zip.CreateFromDir(&archive, version, tree); err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{
		filepath.Join(filepath.Dir(files), "list"): []byte(version.Version + "\n"),
		files + ".info": []byte(`{"Version": "` + version.Version + `"}`), files + ".mod": mod, files + ".zip": archive.Bytes(),
	} {
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return proxy
}

// execute runs a command in a directory and returns its standard output. It fails the test if the
// command fails.
func execute(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, env, &stderr
	stdout, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(name), strings.Join(args, " "), err, stdout, stderr.String())
	}
	return string(stdout)
}
