package history

import (
	"bufio"
	"bytes"
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
// costs half of what the checks have to do with it. They have ended when the loop has.
func Read(source io.Reader) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		stop := make(chan struct{})
		var group sync.WaitGroup
		defer group.Wait()
		defer close(stop)
		for batch := range readAhead(source, stop, &group) {
			<-batch.decoded
			for _, record := range batch.records {
				if !yield(record, nil) {
					return
				}
			}
			if batch.end != nil {
				yield(nil, batch.end)
				return
			}
		}
	}
}

// batch is lines of a history that are decoded together.
type batch struct {
	first   int64 // the place of the first
	buffer  *bytes.Buffer
	ends    []int         // where in the text each line ends
	decoded chan struct{} // closed when the lines are decoded, and the text is no more
	records []*Record     // up to the first line that is none
	end     error         // what comes behind them; nil for the end of the history, or more
}

// bufferPool are for batches to come. Records share nothing with what they were read from.
var bufferPool = sync.Pool{New: func() any { return new(bytes.Buffer) }}

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
			b := &batch{first: first, buffer: bufferPool.Get().(*bytes.Buffer), decoded: make(chan struct{})}
			more = b.read(lines)
			first += int64(len(b.ends))
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
			s := new(scanner)
			for b := range todo {
				b.decode(s)
			}
		})
	}
	return inOrder
}

// read fills the batch, and reports whether more is to come.
func (b *batch) read(lines *bufio.Reader) (more bool) {
	for begun := 0; len(b.ends) < batchLines; {
		part, err := lines.ReadSlice('\n')
		b.buffer.Write(part)
		at := b.first + int64(len(b.ends))
		switch {
		case errors.Is(err, bufio.ErrBufferFull): // a long line
			continue
		case errors.Is(err, io.EOF) && b.buffer.Len() == begun:
			return false
		case errors.Is(err, io.EOF):
			b.end = fmt.Errorf("line %d: %w", at, ErrTruncated)
			return false
		case err != nil:
			b.end = fmt.Errorf("line %d: %w", at, err)
			return false
		}
		begun = b.buffer.Len()
		b.ends = append(b.ends, begun)
	}
	return true
}

// decode decodes the lines, up to the first that is no record.
func (b *batch) decode(s *scanner) {
	defer close(b.decoded)
	b.records = make([]*Record, 0, len(b.ends))
	for i := range b.ends {
		record, err := parse(s, b.line(i), b.first+int64(i))
		if err != nil {
			b.end = fmt.Errorf("line %d: %w", b.first+int64(i), err)
			break
		}
		b.records = append(b.records, record)
	}
	b.buffer.Reset()
	bufferPool.Put(b.buffer)
}

// line is the text of a line of the batch, from 0.
func (b *batch) line(i int) []byte {
	begun := 0
	if i > 0 {
		begun = b.ends[i-1]
	}
	return b.buffer.Bytes()[begun:b.ends[i]]
}

// parse reads the record that stands at place seq.
func parse(s *scanner, line []byte, seq int64) (*Record, error) {
	record := new(Record)
	if !record.decodeFast(s, line) {
		var decoded struct {
			Record
			Truth *Commit `json:"truth"` // Commit in format 1
		}
		if err := Unmarshal(line, &decoded); err != nil {
			return nil, fmt.Errorf("expected a record: %w", err)
		}
		record = &decoded.Record
		if decoded.Truth != nil {
			record.Commit = decoded.Truth
		}
	}
	if record.Seq != seq {
		return nil, fmt.Errorf("expected record %d, found record %d", seq, record.Seq)
	}
	if n := record.payloads(); n != 1 {
		return nil, fmt.Errorf("expected one kind of record, found %d that are known", n)
	}
	if seq == 1 {
		if record.Start == nil {
			return nil, errors.New("expected a start record")
		}
		if f := record.Start.Format; f != Format && f != format1 {
			return nil, fmt.Errorf("expected format %d or %d, found format %d", format1, Format, f)
		}
	}
	return record, nil
}
