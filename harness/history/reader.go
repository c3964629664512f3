package history

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"runtime"
	"sync"
)

// ErrTruncated ends a history whose last line is cut short, as a run that was
// killed leaves it. Every record before it was whole.
var ErrTruncated = errors.New("the history ends in the middle of a line")

// ReadFile yields the records of the file at path, in order. An error ends it.
func ReadFile(path string) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		file, err := os.Open(path)
		if err != nil {
			yield(nil, fmt.Errorf("reading the history: %w", err))
			return
		}
		defer file.Close()
		for record, err := range Read(file) {
			if err != nil {
				err = fmt.Errorf("%s: %w", path, err)
			}
			if !yield(record, err) {
				return
			}
		}
	}
}

// Read yields the records of a history, in order. The last pair carries the
// error that ended it, if one did: ErrTruncated, a line that is no record, or none of
// a kind that this package knows, a hole in the sequence, or a format that it does
// not know.
//
// Lines are read and decoded ahead, on goroutines of their own: to decode a record
// costs more than whoever takes it has to do. They have ended when the loop has.
func Read(source io.Reader) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		stop := make(chan struct{})
		var group sync.WaitGroup
		defer group.Wait()
		defer close(stop)
		for batch := range readAhead(source, stop, &group) {
			<-batch.decoded
			for i := range batch.lines {
				if !yield(batch.records[i], batch.errs[i]) || batch.errs[i] != nil {
					return
				}
			}
			if batch.end != nil {
				yield(nil, batch.end)
			}
		}
	}
}

// batch is lines of a history that are decoded together.
type batch struct {
	first   int64 // the place of the first
	lines   [][]byte
	end     error         // what the lines end with; nil for the end of the history, or more
	decoded chan struct{} // closed when the rest is set
	records []*Record
	errs    []error
}

const (
	batchLines = 256
	// batchesAhead bounds what is held of the history.
	batchesAhead = 16
)

// readAhead hands out batches in order, before they are decoded.
func readAhead(source io.Reader, stop <-chan struct{}, group *sync.WaitGroup) <-chan *batch {
	inOrder, todo := make(chan *batch, batchesAhead), make(chan *batch, batchesAhead)
	group.Go(func() {
		defer close(inOrder)
		defer close(todo)
		lines := bufio.NewReaderSize(source, 1<<20)
		for first, more := int64(1), true; more; {
			b := &batch{first: first, decoded: make(chan struct{})}
			more = b.read(lines)
			first += int64(len(b.lines))
			for _, to := range []chan<- *batch{todo, inOrder} {
				select {
				case to <- b:
				case <-stop:
					return
				}
			}
		}
	})
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for b := range todo {
				b.decode()
			}
		})
	}
	return inOrder
}

// read fills the batch, and reports whether more is to come.
func (b *batch) read(lines *bufio.Reader) (more bool) {
	for len(b.lines) < batchLines {
		line, err := lines.ReadBytes('\n')
		at := b.first + int64(len(b.lines))
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return false
		case errors.Is(err, io.EOF):
			b.end = fmt.Errorf("line %d: %w", at, ErrTruncated)
			return false
		case err != nil:
			b.end = fmt.Errorf("line %d: %w", at, err)
			return false
		}
		b.lines = append(b.lines, line)
	}
	return true
}

// decode decodes the lines, up to the first that is no record.
func (b *batch) decode() {
	defer close(b.decoded)
	b.records, b.errs = make([]*Record, len(b.lines)), make([]error, len(b.lines))
	for i, line := range b.lines {
		record, err := parse(line, b.first+int64(i))
		if err != nil {
			b.errs[i] = fmt.Errorf("line %d: %w", b.first+int64(i), err)
			return
		}
		b.records[i] = record
	}
}

// parse reads the record that stands at place seq.
func parse(line []byte, seq int64) (*Record, error) {
	record := new(Record)
	if err := Unmarshal(line, record); err != nil {
		return nil, fmt.Errorf("expected a record: %w", err)
	}
	if record.Seq != seq {
		return nil, fmt.Errorf("expected record %d, found record %d", seq, record.Seq)
	}
	if n := record.kinds(); n != 1 {
		return nil, fmt.Errorf("expected one kind of record, found %d that are known", n)
	}
	if seq == 1 {
		if record.Start == nil {
			return nil, errors.New("expected a start record")
		}
		if record.Start.Format != Format {
			return nil, fmt.Errorf("expected format %d, found format %d", Format, record.Start.Format)
		}
	}
	return record, nil
}
