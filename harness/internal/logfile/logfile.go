// Package logfile writes log files whose size is limited. A log that grows beyond the limit keeps
// its beginning and its end. A line between the two says how many bytes were dropped.
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
	// headBytes is the size of the beginning that a log keeps.
	headBytes = 16 << 20
	// tailBytes is the size of the end that a log keeps at least.
	tailBytes = 16 << 20
	// recentBytes is the number of bytes that [File.Recent] returns at most.
	recentBytes = 8 << 10
)

// limits are the sizes of the beginning and the end that a log keeps, in bytes. Tests use small
// ones.
type limits struct{ head, tail int64 }

// File is a log file of limited size. Its methods may be called from several goroutines.
//
// A File appends until the file has BytesMax bytes. It then drops the bytes between the beginning
// and the last tailBytes, and appends again. It copies the last tailBytes only after it has
// appended as many bytes, so the average cost of a byte is constant.
type File struct {
	limits limits

	mu      sync.Mutex // guards all following fields
	file    *os.File
	size    int64  // bytes in the file
	dropped int64  // bytes that are no longer in the file
	lost    int64  // bytes since the last write that failed, such as on a full disk
	recent  []byte // the last bytes that Write has received
}

// Open opens or creates a log file for appending. It also creates the directory of the file. Only
// the owner can read a new file.
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

// Trim shortens an existing log file that is larger than BytesMax, as if a File had written it.
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

// Write appends to the log. It never fails, because the process that writes the log must not
// wait or end for it.
//
// If the disk is full, it drops the bytes, and says so in the log as soon as it can write
// again.
func (l *File) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent = append(l.recent, p[max(0, len(p)-recentBytes):]...)
	l.recent = append(l.recent[:0], l.recent[max(0, len(l.recent)-recentBytes):]...)
	for rest := p; len(rest) > 0; {
		chunk := rest[:min(int64(len(rest)), l.limits.tail/2)] // drop makes room for at least half a tail
		l.append(chunk)
		rest = rest[len(chunk):]
	}
	return len(p), nil
}

// append writes at most half of limits.tail to the end of the file.
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
		l.lost += int64(len(chunk)) // the next text replaces what this one may have written in part
		return
	}
	l.size += int64(len(text))
	l.lost = 0
}

// Recent returns the last bytes that were written through this File, at most 8 KiB.
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

// drop removes the bytes between the beginning and the end that the log keeps. In their place,
// it writes the line that says how many bytes were dropped.
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
	// The copy goes forward to a lower offset, so it reads each byte before it overwrites the byte.
	n, err := io.Copy(io.NewOffsetWriter(l.file, to), io.NewSectionReader(l.file, from, l.size-from))
	if err != nil {
		return err
	}
	l.dropped, l.size = dropped, to+n
	return l.file.Truncate(l.size)
}

// nextLine returns the offset of the first line that begins at or after an offset. If no line
// begins soon, it returns the offset itself.
func (l *File) nextLine(offset int64) (int64, error) {
	const lineBytesMax = 4 << 10
	buffer := make([]byte, min(lineBytesMax, l.limits.tail/2))
	n, err := l.file.ReadAt(buffer, offset)
	if err != nil && err != io.EOF {
		return 0, err
	}
	return offset + int64(bytes.IndexByte(buffer[:n], '\n')+1), nil
}

// markerFormat is the text that stands in a shortened log between its beginning and its end.
const markerFormat = "\n[gauntlet dropped %d bytes of this log here: a log keeps its first %d bytes and at least its last %d]\n"

// marker returns the text between the beginning and the end of a shortened log. The argument is
// the number of bytes that were dropped.
func (l *File) marker(dropped int64) []byte {
	return fmt.Appendf(nil, markerFormat, dropped, l.limits.head, l.limits.tail)
}

// readDropped returns how many bytes an earlier File has dropped from the file.
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
