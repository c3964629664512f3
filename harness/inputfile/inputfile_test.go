package inputfile

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file, pipe, link := filepath.Join(dir, "file"), filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("text"), 0o600), syscall.Mkfifo(pipe, 0o600), os.Symlink(pipe, link)); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(dir, "large")
	if err := errors.Join(os.WriteFile(large, nil, 0o600), os.Truncate(large, 3<<30)); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "socket")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for path, want := range map[string]string{
		socket:                       socket + ": found a socket; expected a regular file",
		file:                         "",
		pipe:                         pipe + ": found a pipe; expected a regular file",
		link:                         link + ": found a pipe; expected a regular file",
		dir:                          dir + ": found a directory; expected a regular file",
		"/dev/zero":                  "/dev/zero: found a device; expected a regular file",
		large:                        large + ": found a file of 3221225472 bytes; expected at most 1073741824 bytes",
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

func TestReadText(t *testing.T) {
	for content, valid := range map[string]bool{"a: ü\n": true, "": true, "a\x00b": false, "\xff\xfe": false} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadText(path)
		switch want := path + ": found binary data; expected text in UTF-8"; {
		case valid && (err != nil || string(got) != content):
			t.Errorf("%q: content %q, error %v, want the same content", content, got, err)
		case !valid && (err == nil || err.Error() != want):
			t.Errorf("%q: error %v, want %q", content, err, want)
		}
	}
}

func TestCheckOneDocument(t *testing.T) {
	for text, one := range map[string]bool{
		"":                             true,
		"a: 1\n":                       true,
		"---\na: 1\n":                  true,
		"# x\n\n---\n# y\n- a: 1\n":    true,
		"%YAML 1.1\n---\na: 1\n":       true,
		"a: |\n  ---\n  b\n":           true,
		"a: 1\n---\nb: 2\n":            false,
		"- a: 1\n---\n- b: 2\n":        false,
		"  - a: 1\n---\n":              false,
		"---\n- a: 1\n--- # x\n- b: 2": false,
		"--- {a: 1}\n":                 true,
		"a: 1\n...\n":                  true,
		"a: 1\n...\n# x\n":             true,
		"a: 1\n...\nb: 2\n":            false,
		"--- {a: 1}\n--- {b: 2}\n":     false,
		"a: 1\n... # x\n\n# y\n":       true,
		"a: |\n  b\n  ...\n  c\n":      true,
		"a: 1\n...\n# x\nb: 2\n":       false,
		"- a: 1\n...\n- b: 2\n":        false,
	} {
		err := CheckOneDocument("x.yaml", []byte(text))
		if (err == nil) != one || err != nil && err.Error() != "x.yaml: found a second YAML document; expected one document per file" {
			t.Errorf("%q: error %v; want one document: %t", text, err, one)
		}
	}
}

// TestInterrupt checks that a read that does not end returns after an interrupt, and that other reads go
// on.
func TestInterrupt(t *testing.T) {
	t.Cleanup(func() { Interrupt(nil) })
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan struct{})
		close(closed)
		Interrupt(closed)
		endless, writer := io.Pipe()
		defer writer.Close()
		if _, err := readAll(endless); !errors.Is(err, ErrInterrupted) {
			t.Errorf("error %v; want %v", err, ErrInterrupted)
		}
		if content, err := readAll(strings.NewReader("x")); string(content) != "x" || err != nil {
			t.Errorf("content %q, error %v; want the content", content, err)
		}
	})
}

// TestFileError checks that errors keep the path and lose the name of the operation.
func TestFileError(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent")
	_, open := os.Open(absent)
	_, look := exec.LookPath("no-such-program")
	other := errors.New("other")
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"a file", open, absent + ": no such file or directory"},
		{"a wrapped error", fmt.Errorf("reading: %w", open), absent + ": no such file or directory"},
		{"a rename", os.Rename(absent, absent+"2"), absent + "2: no such file or directory"},
		{"the start of a program", exec.Command(absent).Run(), absent + ": no such file or directory"},
		{"a program", look, "no-such-program: executable file not found in $PATH"},
		{"another error", other, "other"},
	} {
		if got := FileError(test.err).Error(); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
