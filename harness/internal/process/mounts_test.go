package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMounts checks what a process with mounts sees, and that no other process sees it.
func TestMounts(t *testing.T) {
	if err := MountsSupported(); err != nil {
		t.Skip("needs a machine that permits mount namespaces:", err)
	}
	const content = "mounted content"
	source := t.TempDir()
	file := filepath.Join(source, "file")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	if err := os.Mkdir(filepath.Join(work, "existing"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("existing", filepath.Join(work, "link")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, target, path string // the path at which the process reads the content
		source             string
	}{
		{"file in the root directory", "/gauntlet-test.yaml", "/gauntlet-test.yaml", file},
		{"directory in the root directory", "/gauntlet-test", "/gauntlet-test/file", source},
		{"directory of a service account", "/var/run/secrets/kubernetes.io/serviceaccount", "/run/secrets/kubernetes.io/serviceaccount/file", source},
		{"file that exists", "/etc/hostname", "/etc/hostname", file},
		{"directory that exists", work + "/existing", work + "/existing/file", source},
		{"directory behind a symbolic link", work + "/link/new/directory", work + "/existing/new/directory/file", source},
		{"file in a new directory", work + "/new/config.yaml", work + "/new/../new/config.yaml", file},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, before := os.Stat(test.path)
			p, err := Start(t.Context(), Spec{
				Name: "part", Path: "/bin/sh", Dir: work, Env: []string{"WHO=me"}, LogPath: filepath.Join(t.TempDir(), "log"), Root: t.TempDir(),
				Args: []string{"-c", fmt.Sprintf(`echo "$(cat %s 2>/dev/null), $WHO, $$, $(pwd), $(ls /proc/self/fd >/dev/null && echo proc)"; exec sleep 1000`, test.path)},
				// The second mount has its target in the same directory.
				Mounts: []Mount{{Source: test.source, Target: test.target}, {Source: file, Target: filepath.Join(filepath.Dir(test.target), "second")}},
			})
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("%s, me, %d, %s, proc", content, p.PID(), work)
			eventually(t, "the process prints a line", func() bool { return p.LogTail() != "" })
			if got := strings.TrimSpace(p.LogTail()); got != want {
				t.Errorf("the process printed\n     %s\nwant %s", got, want)
			}
			if _, after := os.Stat(test.path); (before == nil) != (after == nil) {
				t.Errorf("%s: found %v in the test, and %v before the mounts", test.path, after, before)
			}
			if err := p.Kill(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMountError checks that a process whose files cannot be mounted ends with the reason.
func TestMountError(t *testing.T) {
	if err := MountsSupported(); err != nil {
		t.Skip("needs a machine that permits mount namespaces:", err)
	}
	p, err := Start(t.Context(), Spec{
		Name: "part", Path: "/bin/true", LogPath: filepath.Join(t.TempDir(), "log"), Root: t.TempDir(),
		Mounts: []Mount{{Source: "/none", Target: "/new"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if err := p.Err(); !strings.Contains(err.Error(), "mounting the files of the program: stat /none: no such file or directory") {
		t.Errorf("error %v, expected the reason", err)
	}
}
