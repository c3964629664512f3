package outputfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// read returns the content of a file, or "none" if there is no such file.
func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "none"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := Create(path, []byte("new")); err != nil || read(t, path) != "new" {
		t.Errorf("content %q, error %v; want a new file", read(t, path), err)
	}
	if err := Create(path, []byte("newer")); !errors.Is(err, fs.ErrExist) || read(t, path) != "new" {
		t.Errorf("content %q, error %v; want the old content, and that the file exists", read(t, path), err)
	}
}

// TestCreateDirectory checks that each caller gets a directory of its own.
func TestCreateDirectory(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "parent")
	for _, want := range []string{"seeds", "seeds-2", "seeds-3"} {
		if dir, err := CreateDirectory(parent, "seeds"); err != nil || filepath.Base(dir) != want {
			t.Errorf("directory %s, error %v; want %s", dir, err, want)
		}
	}
}

// TestReplace checks that a failed write leaves the earlier file, and no temporary file.
func TestReplace(t *testing.T) {
	broken := errors.New("the disk is full")
	for _, test := range []struct {
		name, before string
		err          error
		want         string
	}{
		{"a new file", "", nil, "new"},
		{"an earlier file", "old", nil, "new"},
		{"no file", "", broken, "none"},
		{"a failed write", "old", broken, "old"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path, link := filepath.Join(dir, "file"), filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(path, link); err != nil {
				t.Fatal(err)
			}
			if test.before != "" {
				if err := os.WriteFile(path, []byte(test.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			target := path
			if test.before != "" {
				target = link
			}
			err := ReplaceWith(target, func(w io.Writer) error {
				_, err := io.WriteString(w, "new")
				return errors.Join(err, test.err)
			})
			if !errors.Is(err, test.err) || err != nil && !strings.HasPrefix(err.Error(), target+": ") || read(t, path) != test.want {
				t.Errorf("content %q, error %v; want %q, and the error %v", read(t, path), err, test.want, test.err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 1 {
				t.Errorf("found %v, error %v; want no temporary file", left, err)
			}
		})
	}
	if err := Replace("/dev/full", []byte("new")); err == nil || !strings.Contains(err.Error(), "/dev/full: no space left on device") {
		t.Errorf("/dev/full: error %v; want that no space is left", err)
	}
}

func TestDirectory(t *testing.T) {
	for path, want := range map[string]string{"x": ".", "/x": "/", "d/x": "d", "d//x": "d", "d/../x": "d/..", "/d/x": "/d", "./x": "."} {
		if got := Directory(path); got != want {
			t.Errorf("directory of %s: got %s, want %s", path, got, want)
		}
	}
}
