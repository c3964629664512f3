package logfile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// small contains limits that a test can exceed with few bytes.
var small = limits{head: 1000, tail: 1000}

// numbered returns count lines of 10 bytes, numbered from first.
func numbered(first, count int) []byte {
	var b bytes.Buffer
	for i := range count {
		fmt.Fprintf(&b, "line %04d\n", first+i)
	}
	return b.Bytes()
}

// TestWrite checks the content of logs below and above the size limit, for writes of any size.
func TestWrite(t *testing.T) {
	for _, lines := range []int{0, 1, 100, 300, 301, 400, 1000, 9999} {
		for _, linesPerWrite := range []int{1, 7, 150, 10000} {
			t.Run(fmt.Sprintf("%d lines, %d at a time", lines, linesPerWrite), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "dir", "log")
				l, err := open(path, small)
				if err != nil {
					t.Fatal(err)
				}
				for i := 0; i < lines; i += linesPerWrite {
					if _, err := l.Write(numbered(i, min(linesPerWrite, lines-i))); err != nil {
						t.Fatal(err)
					}
				}
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				checkLog(t, path, numbered(0, lines))
			})
		}
	}
}

// checkLog checks the log file at path. The file must contain the beginning and the end of the
// bytes in the argument written. The line between the two must say how many bytes were dropped.
func checkLog(t *testing.T, path string, written []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(got)) > small.head+2*small.tail {
		t.Fatalf("the file has %d bytes, want at most %d", len(got), small.head+2*small.tail)
	}
	if int64(len(written)) <= small.head+2*small.tail {
		if !bytes.Equal(got, written) {
			t.Fatalf("the file has %q, want all of %q", got, written)
		}
		return
	}
	if !bytes.HasPrefix(got, written[:small.head]) {
		t.Fatalf("the file begins with %q, want %q", got[:small.head], written[:small.head])
	}
	line, end, _ := strings.Cut(string(got[small.head+1:]), "\n")
	if !bytes.HasSuffix(written, []byte(end)) || int64(len(end)) < small.tail-10 {
		t.Fatalf("after the line %q: %d bytes, want at least %d of the end of the log: %q", line, len(end), small.tail-10, end)
	}
	want := fmt.Sprintf("[gauntlet dropped %d bytes of this log here: a log keeps its first 1000 bytes and at least its last 1000]",
		int64(len(written))-small.head-int64(len(end)))
	if line != want {
		t.Fatalf("the line between the parts is %q, want %q", line, want)
	}
}

// TestReopen checks the size limit if several processes write to one log file, one after the
// other.
func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	const writers, lines = 30, 90
	for i := range writers {
		l, err := open(path, small)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Recent(); len(got) != 0 {
			t.Fatalf("a File without writes has the recent bytes %q, want none", got)
		}
		if _, err := l.Write(numbered(i*lines, lines)); err != nil {
			t.Fatal(err)
		}
		if got, want := l.Recent(), numbered(i*lines, lines); !bytes.Equal(got, want) {
			t.Fatalf("recent bytes %q, want %q", got, want)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		checkLog(t, path, numbered(0, (i+1)*lines))
	}
}

// TestRecentIsLimited checks that Recent uses little memory for a large log.
func TestRecentIsLimited(t *testing.T) {
	l, err := open(filepath.Join(t.TempDir(), "log"), small)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 1000 {
		if _, err := l.Write(numbered(0, 100)); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.Recent(); len(got) != recentBytes || !bytes.HasSuffix(got, numbered(50, 50)) || cap(l.recent) > 4*recentBytes {
		t.Errorf("%d recent bytes with a capacity of %d, want %d bytes that end with the last line", len(got), cap(l.recent), recentBytes)
	}
}

// TestWithoutLineBreaks checks the size limit for a log without line breaks.
func TestWithoutLineBreaks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := open(path, small)
	if err != nil {
		t.Fatal(err)
	}
	written := bytes.Repeat([]byte("0123456789"), 5000)
	if _, err := l.Write(written); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	checkLog(t, path, written)
}

// TestFullDisk checks writes to a full disk. They must succeed, and the log must later say how
// many bytes are missing.
func TestFullDisk(t *testing.T) {
	file, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("this machine has no /dev/full: %v", err)
	}
	l := &File{limits: small, file: file}
	for range 3 {
		if n, err := l.Write(numbered(0, 10)); n != 100 || err != nil {
			t.Fatalf("Write() = %d, error %v, want 100 and no error", n, err)
		}
	}
	_ = file.Close()
	path := filepath.Join(t.TempDir(), "log")
	if l.file, err = os.Create(path); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Write(numbered(0, 1)); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	const want = "\n[gauntlet could not write 300 bytes of this log here]\nline 0000\n"
	if got, err := os.ReadFile(path); err != nil || !strings.HasSuffix(string(got), want) {
		t.Errorf("the file has %q, error %v, want %q", got, err, want)
	}
}

// TestTrim checks that Trim shortens only files that are too large.
func TestTrim(t *testing.T) {
	dir := t.TempDir()
	exact, large := filepath.Join(dir, "exact"), filepath.Join(dir, "large")
	for path, size := range map[string]int{exact: BytesMax, large: BytesMax + 5<<20} {
		if err := os.WriteFile(path, bytes.Repeat([]byte("a line\n"), size/7+1)[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Trim(path); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(exact); err != nil || info.Size() != BytesMax {
		t.Errorf("a file of %d bytes has %d bytes after Trim, error %v", BytesMax, info.Size(), err)
	}
	content, err := os.ReadFile(large)
	if err != nil || len(content) > headBytes+tailBytes+200 || !bytes.Contains(content, []byte("[gauntlet dropped ")) {
		t.Errorf("a large file has %d bytes after Trim, error %v, want about %d and a line about what was dropped", len(content), err, headBytes+tailBytes)
	}
	if err := Trim(filepath.Join(dir, "missing")); !os.IsNotExist(err) {
		t.Errorf("Trim() of a missing file: error %v, want one that says so", err)
	}
}
