// Package logfile writes log files of limited size. If a log grows beyond the limit, the package
// drops bytes from its middle. A line in their place says how many bytes are missing.
package logfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// BytesMax is the maximum size of a log file in bytes.
const BytesMax = headBytes + 2*tailBytes

const (
	// headBytes is the number of bytes at the beginning that a log never drops.
	headBytes = 16 << 20
	// tailBytes is the minimum number of bytes at the end that a log keeps.
	tailBytes = 16 << 20
	// recentBytes is the maximum number of bytes that [File.Recent] returns.
	recentBytes = 8 << 10
)

// limits contains the numbers of bytes that a log keeps at its beginning and at its end. Outside of
// tests, these are headBytes and tailBytes.
type limits struct{ head, tail int64 }

// File is a log file of limited size. Several goroutines may call its methods.
//
// A File appends until the file has BytesMax bytes. It then drops the middle: it keeps the first
// headBytes and the last tailBytes. Dropping the middle copies tailBytes bytes, at most once per
// tailBytes appended bytes. The average cost of a byte is therefore constant.
type File struct {
	limits limits

	mu      sync.Mutex // guards all following fields of File
	file    *os.File
	size    int64  // size of the file in bytes
	dropped int64  // number of bytes dropped from the middle of the log
	lost    int64  // number of bytes not written since writes began to fail, such as on a full disk
	recent  []byte // the last bytes passed to Write, at most recentBytes
}

// Open opens or creates a log file for appending. It also creates the directory of the file.
// Only the owner of a new file can read it.
func Open(path string) (*File, error) { return open(path, limits{headBytes, tailBytes}) }

func open(path string, limits limits) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	l := &File{limits: limits, file: file, size: info.Size()}
	if l.dropped, err = l.readDropped(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return l, nil
}

// Trim drops the middle of an existing log file that is larger than BytesMax, as a File would.
// It does nothing to a smaller file.
func Trim(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() <= BytesMax {
		return err
	}
	l, err := Open(path)
	if err != nil {
		return err
	}
	return errors.Join(l.drop(), l.Close())
}

// Write appends p to the log. It never returns an error, so a process that writes its log
// through a pipe never blocks or fails.
//
// If the disk is full, Write drops the bytes. After the next successful write, the log says how
// many bytes are missing.
func (l *File) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent = append(l.recent, p[max(0, len(p)-recentBytes):]...)
	l.recent = append(l.recent[:0], l.recent[max(0, len(l.recent)-recentBytes):]...)
	for rest := p; len(rest) > 0; {
		chunk := rest[:min(int64(len(rest)), l.limits.tail/2)] // after drop, at least half of limits.tail fits
		l.append(chunk)
		rest = rest[len(chunk):]
	}
	return len(p), nil
}

// append writes chunk to the end of the file. The chunk has at most limits.tail/2 bytes.
func (l *File) append(chunk []byte) {
	text := chunk
	if l.lost > 0 {
		text = append(fmt.Appendf(nil, "\n[gauntlet could not write %d bytes of this log here]\n", l.lost), chunk...)
	}
	var err error
	if l.size+int64(len(text)) > l.limits.head+2*l.limits.tail {
		err = l.drop()
	}
	if err == nil {
		_, err = l.file.WriteAt(text, l.size)
	}
	if err != nil {
		l.lost += int64(len(chunk)) // the next write begins at the same offset, and replaces a partly written text
		return
	}
	l.size += int64(len(text))
	l.lost = 0
}

// Recent returns the last bytes that this File has written, at most 8 KiB. It does not return
// older content of the file.
func (l *File) Recent() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.recent)
}

// Close closes the file.
func (l *File) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}

// drop removes the middle of the log, and keeps the first limits.head and the last limits.tail
// bytes. In place of the middle, it writes a line that says how many bytes were dropped.
func (l *File) drop() error {
	from, err := l.nextLine(l.size - l.limits.tail)
	if err != nil {
		return err
	}
	dropped := l.dropped + from - l.limits.head
	if l.dropped > 0 {
		dropped -= int64(len(l.marker(l.dropped)))
	}
	marker := l.marker(dropped)
	if _, err := l.file.WriteAt(marker, l.limits.head); err != nil {
		return err
	}
	to := l.limits.head + int64(len(marker))
	// The copy moves bytes to a lower offset, so it reads each byte before it overwrites it.
	n, err := io.Copy(io.NewOffsetWriter(l.file, to), io.NewSectionReader(l.file, from, l.size-from))
	if err != nil {
		return err
	}
	l.dropped, l.size = dropped, to+n
	return l.file.Truncate(l.size)
}

// nextLine returns the offset of the first line that begins after the given offset. The method drop
// calls nextLine, so that the log keeps whole lines. If no line begins within 4 KiB, nextLine
// returns the given offset.
func (l *File) nextLine(offset int64) (int64, error) {
	const lineBytesMax = 4 << 10
	buffer := make([]byte, min(lineBytesMax, l.limits.tail/2))
	n, err := l.file.ReadAt(buffer, offset)
	if err != nil && err != io.EOF {
		return 0, err
	}
	return offset + int64(bytes.IndexByte(buffer[:n], '\n')+1), nil
}

// markerFormat is the format of the line in place of the dropped middle of a log.
const markerFormat = "\n[gauntlet dropped %d bytes of this log here: a log keeps its first %d bytes and at least its last %d]\n"

// marker returns the line that replaces the dropped middle of a log. The argument dropped is the
// number of dropped bytes.
func (l *File) marker(dropped int64) []byte {
	return fmt.Appendf(nil, markerFormat, dropped, l.limits.head, l.limits.tail)
}

// readDropped reads how many bytes an earlier process has dropped from the middle of this log. It
// returns 0 if the log is complete.
func (l *File) readDropped() (int64, error) {
	buffer := make([]byte, len(markerFormat)+3*20)
	n, err := l.file.ReadAt(buffer, l.limits.head)
	if err != nil && err != io.EOF {
		return 0, err
	}
	var dropped int64
	if _, err := fmt.Sscanf(string(buffer[:n]), "\n[gauntlet dropped %d bytes", &dropped); err != nil || !bytes.HasPrefix(buffer[:n], l.marker(dropped)) {
		return 0, nil // nothing was dropped
	}
	return dropped, nil
}
