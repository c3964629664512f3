package fleet

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExtract checks that a large or damaged archive is refused, before its files fill the disk.
func TestExtract(t *testing.T) {
	from := t.TempDir()
	if err := os.WriteFile(filepath.Join(from, "scenario.yaml"), bytes.Repeat([]byte("a line\n"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	archive, err := Compress(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		archive []byte
		want    string // a text in the error; empty if there is no error
	}{
		{"valid", archive, ""},
		{"empty", nil, "found no archive in the format gzip"},
		{"text", []byte("no archive at all"), "found no archive in the format gzip"},
		{"cut", archive[:len(archive)/2], "unexpected EOF"},
		{"many files", archiveOfFiles(t, filesMax+1), "found more than 50000 files; expected"},
		{"large", archiveOfSize(t, extractedMax+1), "extracting large: found larger files than the archive of a run has"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		err := Extract(test.archive, dir)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v; want %q", test.name, err, test.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "large")); err == nil {
			t.Errorf("%s: found an extracted file; want none", test.name)
		}
	}
}

// archiveOfFiles returns an archive with a number of entries, all for one empty directory.
func archiveOfFiles(t *testing.T, n int) []byte {
	t.Helper()
	var content bytes.Buffer
	compressed := gzip.NewWriter(&content)
	archive := tar.NewWriter(compressed)
	for range n {
		if err := archive.WriteHeader(&tar.Header{Name: "dir/", Typeflag: tar.TypeDir}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	return content.Bytes()
}

// archiveOfSize returns an archive whose header says that its only file has the given size. The
// content is missing.
func archiveOfSize(t *testing.T, size int64) []byte {
	t.Helper()
	var content bytes.Buffer
	compressed := gzip.NewWriter(&content)
	if err := tar.NewWriter(compressed).WriteHeader(&tar.Header{Name: "large", Typeflag: tar.TypeReg, Size: size}); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return content.Bytes()
}
