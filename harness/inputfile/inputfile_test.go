package inputfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file, pipe, link := filepath.Join(dir, "file"), filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("text"), 0o600), syscall.Mkfifo(pipe, 0o600), os.Symlink(pipe, link)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file:                         "",
		pipe:                         pipe + ": found a pipe; expected a regular file",
		link:                         link + ": found a pipe; expected a regular file",
		dir:                          dir + ": found a directory; expected a regular file",
		"/dev/zero":                  "/dev/zero: found a device; expected a regular file",
		filepath.Join(dir, "absent"): filepath.Join(dir, "absent") + ": no such file or directory",
	} {
		content, err := Read(path)
		switch {
		case want == "" && (err != nil || string(content) != "text"):
			t.Errorf("%s: content %q, error %v, want \"text\"", path, content, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: error %v, want one that contains %q", path, err, want)
		}
	}
}
