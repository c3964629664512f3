package setup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/modfile"
)

func TestCacheDir(t *testing.T) {
	for _, tc := range []struct {
		name, xdg, home string
		want, wantErr   string
	}{
		{name: "XDG_CACHE_HOME is set", xdg: "/x", home: "/h", want: "/x/gauntlet"},
		{name: "only HOME is set", home: "/h", want: "/h/.cache/gauntlet"},
		{name: "neither is set", wantErr: "neither XDG_CACHE_HOME nor HOME"},
		{name: "relative home", home: "h", wantErr: `found "h"; expected an absolute path in HOME`},
		{name: "file", xdg: "/etc/passwd", wantErr: "XDG_CACHE_HOME: /etc/passwd: found a file; expected a directory"},
		{name: "relative path", xdg: "x", wantErr: `found "x"; expected an absolute path in XDG_CACHE_HOME`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := cacheDir(func(name string) string {
				return map[string]string{"XDG_CACHE_HOME": tc.xdg, "HOME": tc.home}[name]
			})
			if got != tc.want || !errorHas(err, tc.wantErr) {
				t.Errorf("cacheDir() = %q, %v; want %q and an error that contains %q", got, err, tc.want, tc.wantErr)
			}
		})
	}
}

func TestTargetsForUsesPinnedVersions(t *testing.T) {
	versions, err := pinnedVersions()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		wanted use
		count  int
	}{{forEmbedded, 5}, {forNodes, 8}} {
		targets, err := targetsFor("/root", versions, tc.wanted)
		if err != nil {
			t.Fatal(err)
		}
		if len(targets) != tc.count {
			t.Errorf("targetsFor(use %d) returned %d targets, want %d: %v", tc.wanted, len(targets), tc.count, targets)
		}
		for _, target := range targets {
			if want := "/root/" + target.project + "-" + versions[target.module] + "/" + target.binary; target.path != want {
				t.Errorf("path of %s is %s, want %s", target.binary, target.path, want)
			}
		}
	}
	if _, err := targetsFor("/root", map[string]string{}, forEmbedded); !errorHas(err, "does not require") {
		t.Errorf("targetsFor without versions: error %v, want one that contains \"does not require\"", err)
	}
}

// TestSharedVersions checks that upstream's programs and gauntlet-virtual need the same versions of
// their dependencies. Otherwise, the go command compiles most packages of Kubernetes twice.
func TestSharedVersions(t *testing.T) {
	virtual := requiredVersions(t, filepath.Join("..", "..", "virtual", "go.mod"))
	for path, version := range requiredVersions(t, "upstream.mod") {
		if found := virtual[path]; found != "" && found != version {
			t.Errorf("%s: %s in upstream.mod, %s in harness/virtual/go.mod; run harness/internal/setup/pin, or go get the later version in harness/virtual", path, version, found)
		}
	}
}

// requiredVersions returns the version of each module that a go.mod file requires and does not
// replace.
func requiredVersions(t *testing.T, name string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse(name, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	versions := make(map[string]string, len(mod.Require))
	for _, r := range mod.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range mod.Replace {
		delete(versions, r.Old.Path)
	}
	return versions
}

func TestMissingTargets(t *testing.T) {
	dir := t.TempDir()
	present, empty, file := filepath.Join(dir, "present"), filepath.Join(dir, "empty"), filepath.Join(dir, "file")
	err := errors.Join(os.WriteFile(present, []byte("#!/bin/sh\n"), 0o755), os.WriteFile(empty, nil, 0o755), os.WriteFile(file, nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "absent"), empty, filepath.Join(file, "etcd")}
	targets := []target{{path: present}}
	for _, path := range want {
		targets = append(targets, target{path: path})
	}
	var got []string
	for _, missing := range missingTargets(targets, runtime.GOARCH) {
		got = append(got, missing.path)
	}
	if !slices.Equal(got, want) {
		t.Errorf("missing targets %q, want %q", got, want)
	}
}

func TestOutputOmitsMajorVersionSuffix(t *testing.T) {
	for pkg, want := range map[string]string{
		"go.etcd.io/etcd/server/v3": "server", "sigs.k8s.io/kwok/cmd/kwok": "kwok", "example.org/v": "v", "example.org/vendor": "vendor",
	} {
		if got := (command{pkg: pkg}).output(); got != want {
			t.Errorf("output of %s = %q, want %q", pkg, got, want)
		}
	}
}

func TestLinkerFlags(t *testing.T) {
	flags, err := linkerFlags(map[string]string{"k8s.io/kubernetes": "v1.36.3", "sigs.k8s.io/kwok": "v0.8.0"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"-X k8s.io/component-base/version.gitVersion=v1.36.3", "-X k8s.io/component-base/version.gitMajor=1",
		"-X k8s.io/component-base/version.gitMinor=36", "-X sigs.k8s.io/kwok/pkg/consts.Version=0.8.0",
	} {
		if !strings.Contains(flags, want) {
			t.Errorf("flags %q do not contain %q", flags, want)
		}
	}
	if _, err := linkerFlags(map[string]string{"k8s.io/kubernetes": "master"}); !errorHas(err, `"master"`) {
		t.Errorf("linkerFlags of an invalid version: error %v, want one that contains the version", err)
	}
}

func TestProgressSeparatesPackagesFromOtherLines(t *testing.T) {
	p := newTestProgress(t)
	p.setPackages([]string{"a/b", "c/d"})
	otherLines := p.follow(strings.NewReader("a/b\n# c/d\nc/d/x.go:1:2: undefined: y\ngo: downloading z v1.0.0\na/b\n"))
	if want := []string{"# c/d", "c/d/x.go:1:2: undefined: y", "a/b"}; !slices.Equal(otherLines, want) {
		t.Errorf("other lines %q, want %q", otherLines, want)
	}
	if got := p.String(); !strings.Contains(got, "1 of 2 packages") || !strings.Contains(got, "downloading z v1.0.0") {
		t.Errorf("progress %q, want 1 of 2 packages and the download", got)
	}
	p.parseLine("c/d")
	if got := p.String(); !strings.Contains(got, "2 of 2 packages") || !strings.HasSuffix(got, "linking") {
		t.Errorf("progress after the last package %q, want 2 of 2 packages and linking", got)
	}
}

func TestGoCommandErrorContainsStandardError(t *testing.T) {
	err := goCommand(t.Context(), ".", forThisMachine, []string{"build", "./nowhere"}, os.Stdout, newTestProgress(t))
	if !errorHas(err, "go build failed") || !errorHas(err, "nowhere") {
		t.Errorf("error %v, want one with the subcommand and the standard error of go", err)
	}
}

// TestGoCommandLeavesNoFiles checks that an interrupted go command leaves no temporary files.
func TestGoCommandLeavesNoFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GOTMPDIR", dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := goCommand(ctx, ".", forThisMachine, []string{"build", "-o", os.DevNull, "."}, os.Stdout, newTestProgress(t)); err == nil {
		t.Error("found no error; want that the build was interrupted")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files %v, error %v; want none", left, err)
	}
}

func TestFailedBuildLeavesNoFiles(t *testing.T) {
	root := t.TempDir()
	versions, err := pinnedVersions()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, tempPrefix+"of-a-killed-build"), 0o755); err != nil {
		t.Fatal(err)
	}
	targets := []target{{command{binary: "nothing", pkg: "./nowhere"}, filepath.Join(root, "nothing-v1", "nothing")}}
	if err := build(t.Context(), root, targets, runtime.GOARCH, versions, newTestProgress(t)); err == nil {
		t.Error("building a package that does not exist succeeded")
	}
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 0 {
		t.Errorf("files left in the cache: %v (error %v)", entries, err)
	}
}

func TestLockIsExclusive(t *testing.T) {
	root := t.TempDir()
	unlock, err := lock(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, root); !errorHas(err, "waiting for another build") {
		t.Errorf("second lock while the first is held: error %v, want an interrupted wait", err)
	}
	unlock()
	unlockAgain, err := lock(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	unlockAgain()
}

func newTestProgress(t *testing.T) *progress {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "progress"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return newProgress(out)
}

// errorHas reports whether the text of err contains want. If want is empty, it reports whether err
// is nil.
func errorHas(err error, want string) bool {
	if want == "" {
		return err == nil
	}
	return err != nil && strings.Contains(err.Error(), want)
}

func TestOverlayJSON(t *testing.T) {
	module, edited := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(module, "pkg", "a.go"), filepath.Join(edited, "pkg", "a.go")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("package a\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"Replace":{"` + filepath.Join(module, "pkg", "a.go") + `":"` + filepath.Join(edited, "pkg", "a.go") + `"}}`
	if got, err := overlayJSON(edited, module); err != nil || string(got) != want {
		t.Errorf("overlayJSON() = %s, %v; want %s", got, err, want)
	}
	if _, err := overlayJSON(t.TempDir(), module); !errorHas(err, "expected edited files") {
		t.Errorf("overlayJSON of an empty directory: error %v, want one that expects edited files", err)
	}
	if err := os.WriteFile(filepath.Join(edited, "b.go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := overlayJSON(edited, module); !errorHas(err, "b.go does not exist in module k8s.io/kubernetes") {
		t.Errorf("overlayJSON with a file that the module does not have: error %v, want one that names the file", err)
	}
}

func TestReplaceKubernetes(t *testing.T) {
	dir := t.TempDir()
	link, err := replaceKubernetes(t.Context(), dir)
	if err != nil {
		t.Skip(err) // the module is not in the module cache
	}
	content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || !strings.Contains(string(content), "replace k8s.io/kubernetes => "+link) {
		t.Errorf("go.mod does not replace the module (error %v):\n%s", err, content)
	}
	if _, err := os.Stat(filepath.Join(link, "cmd", "kube-controller-manager")); err != nil {
		t.Error(err)
	}
}

func TestModuleIn(t *testing.T) {
	own := func(version string) debug.Module { return debug.Module{Path: ownModule, Version: version} }
	replaced := own("v0.4.0")
	replaced.Replace = &debug.Module{Path: "../.."}
	for _, test := range []struct {
		name string
		info debug.BuildInfo
		want bool
	}{
		{"installed", debug.BuildInfo{Main: own("v0.4.0")}, true},
		{"built in a checkout", debug.BuildInfo{Main: own("v0.4.1-0.20260101000000-abcdefabcdef"), Settings: []debug.BuildSetting{{Key: "vcs", Value: "git"}}}, false},
		{"built without version control", debug.BuildInfo{Main: own("(devel)")}, false},
		{"go tool of another module", debug.BuildInfo{Main: replaced}, true},
		{"dependency", debug.BuildInfo{Main: debug.Module{Path: "example.com/operator"}, Deps: []*debug.Module{{Path: ownModule, Version: "v0.4.0"}}}, true},
		{"neither", debug.BuildInfo{Main: debug.Module{Path: "example.com/operator"}}, false},
	} {
		if found, ok := moduleIn(&test.info); ok != test.want || ok && found.Path != ownModule {
			t.Errorf("%s: moduleIn() = %+v, %v; want %v", test.name, found, ok, test.want)
		}
	}
}

// TestBuildOwn builds a program as if a replace directive replaced gauntlet's module by this
// source tree.
func TestBuildOwn(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("GOCACHE", goCache(t))
	tree, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	path, err := buildOwn(t.Context(), debug.Module{Path: ownModule, Version: "v0.4.0", Replace: &debug.Module{Path: tree, Version: "(devel)"}}, StandIn)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode()&0o111 == 0 || !strings.HasPrefix(path, cache) {
		t.Errorf("program %s: %v, error %v; want an executable in %s", path, info, err, cache)
	}
}

// goCache returns the path of the go command's build cache. A test that changes XDG_CACHE_HOME
// passes this path to the go command.
func goCache(t *testing.T) string {
	t.Helper()
	dir, err := output(t.Context(), ".", "env", "GOCACHE")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
