package fleet

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Compress returns a gzip-compressed tar archive of the files in a directory. A worker stores a run
// directory as such an archive.
func Compress(dir string) ([]byte, error) {
	var content bytes.Buffer
	compressed := gzip.NewWriter(&content)
	archive := tar.NewWriter(compressed)
	if err := errors.Join(archive.AddFS(os.DirFS(dir)), archive.Close(), compressed.Close()); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}

const (
	// extractedMax is the size in bytes that the files of a small archive may have.
	extractedMax = 1 << 30
	// compressionMax is the largest ratio between the files and a larger archive. Archives of run
	// directories have ratios of about 20. An archive with a larger ratio is damaged or hostile.
	compressionMax = 100
	// filesMax is the maximum number of files and directories in an archive. The directory of a long
	// exploration has a few thousand.
	filesMax = 50_000
)

// Extract writes the files of an archive from [Compress] to the directory dir, and creates dir. It
// returns an error if the files are more or much larger than those of any run.
func Extract(archive []byte, dir string) error {
	return extract(bytes.NewReader(archive), dir, max(extractedMax, compressionMax*int64(len(archive))), filesMax)
}

// extract is like [Extract] for a stream. The archive may have at most count files and
// directories. Together, they may have at most limit bytes.
func extract(archive io.Reader, dir string, limit int64, count int) error {
	compressed, err := gzip.NewReader(archive)
	if err != nil {
		return fmt.Errorf("found no archive in the format gzip, which the workers write: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // a name such as ../x in the archive cannot lead out of the directory
	if err != nil {
		return err
	}
	defer root.Close()
	for files := tar.NewReader(compressed); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			_, err := io.Copy(io.Discard, compressed) // reading to the end verifies the checksum of gzip
			return err
		}
		if err != nil {
			return fmt.Errorf("found a damaged archive: %w", err)
		}
		if count--; count < 0 {
			return fmt.Errorf("found more than %d files; expected the directory of a run, which has fewer", filesMax)
		}
		if limit -= header.Size; limit < 0 {
			return fmt.Errorf("extracting %s: found larger files than the archive of a run has; expected at most %d times the size of the archive, or %d bytes", header.Name, compressionMax, extractedMax)
		}
		if err := extractFile(root, header, files); err != nil {
			return fmt.Errorf("extracting %s: %w", header.Name, err)
		}
	}
}

// extractFile writes one entry of an archive to a file in the directory root. It skips entries that
// are neither regular files nor directories.
func extractFile(root *os.Root, header *tar.Header, content io.Reader) error {
	name := filepath.FromSlash(header.Name)
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(filepath.Clean(name), 0o755)
	case tar.TypeReg:
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		file, err := root.Create(name)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, content)
		return errors.Join(err, file.Close())
	}
	return nil
}
