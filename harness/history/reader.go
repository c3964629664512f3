package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// ErrTruncated means that the end of a history is missing, for example because the run was
// killed. The last line is incomplete, or there is no End record. All records before the missing
// part are valid.
var ErrTruncated = errors.New("the end of the history is missing")

// ReadFile yields the records of the history file at path, in order. If reading fails, the last
// pair has a nil record and the error. For errors, see [Read].
func ReadFile(path string) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		file, err := inputfile.Open(path)
		if err != nil {
			yield(nil, err)
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

// Read yields the records of a history, in order. If reading fails, the last pair has a nil
// record and the error.
//
// The error is ErrTruncated if the last line is incomplete or the End record is missing. An End record
// need not end with a newline, and an empty line may follow it. The error is ErrNoRecord if there is no
// line. Other errors report a line that is no record, an unknown record type or format, or a Seq that is
// not the number of the line. They also report an unknown value in a record, and a missing object.
//
// Read decodes records on other goroutines before the caller's loop needs them. Without these
// goroutines, the checks of a run would take 1.5 times as long. The goroutines have ended when
// the loop ends.
func Read(source io.Reader) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		stop := make(chan struct{})
		var group sync.WaitGroup
		defer group.Wait()
		defer close(stop)
		var last *Record
		ends := false // whether the last record must be an End record; see Start.Ends
		for batch := range readAhead(source, stop, &group) {
			<-batch.decoded
			for _, record := range batch.records {
				ends, last = ends || record.Start != nil && record.Start.Ends, record
				if !yield(record, nil) {
					return
				}
			}
			if batch.end != nil {
				yield(nil, batch.end)
				return
			}
		}
		if last == nil {
			yield(nil, ErrNoRecord)
			return
		}
		if ends && last.End == nil {
			yield(nil, fmt.Errorf("record %d is the last record; expected an end record: %w", last.Seq, ErrTruncated))
		}
	}
}

// batch is a group of consecutive lines of a history that one goroutine decodes.
type batch struct {
	first   int64         // line number of the first line, from 1
	buffer  *bytes.Buffer // the text of the batch's lines
	ends    []int         // for each line, the offset in buffer at which it ends
	cut     bool          // whether the last line does not end with a newline
	decoded chan struct{} // closed when records is complete and buffer is back in bufferPool
	records []*Record     // the decoded lines, up to the first invalid line
	end     error         // the error that ends the history after these records; nil if the history goes on
}

// bufferPool contains buffers that are no longer used, because their batches have been decoded.
// Later batches use these buffers again. Decoded records share no memory with a buffer.
var bufferPool = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const (
	// batchLines is the maximum number of lines in a batch.
	batchLines = 256
	// batchesAhead is the maximum number of batches that are read before the caller's loop needs
	// them.
	batchesAhead = 16
	// lineMax is the maximum length of a line, in bytes. The longest records are lists. The fault proxy
	// decodes responses of at most 64 MiB, which may be longer as JSON.
	lineMax = 256 << 20
)

// readAhead reads and decodes batches of lines on other goroutines. It returns a channel with the
// batches in order.
//
// The caller must wait until batch.decoded is closed, and only then read batch.records. The
// goroutines end when the source ends or the caller closes the channel stop. The argument group
// counts the goroutines, so that the caller can wait for their end.
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

// read reads up to batchLines lines into the batch. The result more is true if further lines may
// follow. It is false if the source has ended or cannot be read.
func (b *batch) read(lines *bufio.Reader) (more bool) {
	for start := 0; len(b.ends) < batchLines && start < lineMax; {
		part, err := lines.ReadSlice('\n')
		b.buffer.Write(part)
		at := b.first + int64(len(b.ends))
		switch {
		case b.buffer.Len()-start > lineMax:
			b.end = fmt.Errorf("line %d: found more than %d bytes; expected a record with fewer", at, lineMax)
			return false
		case errors.Is(err, bufio.ErrBufferFull): // the line is longer than the buffer of the reader
			continue
		case errors.Is(err, io.EOF) && b.buffer.Len() == start:
			return false
		case errors.Is(err, io.EOF):
			b.cut, b.ends = true, append(b.ends, b.buffer.Len())
			return false
		case err != nil:
			b.end = fmt.Errorf("line %d: %w", at, err)
			return false
		case isBlank(b.buffer.Bytes()[start:]):
			b.buffer.Truncate(start)
			if further, _ := lines.Peek(1); len(further) > 0 {
				b.end = fmt.Errorf("line %d: found an empty line; expected a record", at)
			}
			return false
		}
		start = b.buffer.Len()
		b.ends = append(b.ends, start)
	}
	return true
}

// isBlank reports whether a line is empty. The line may end with a carriage return and a newline.
func isBlank(line []byte) bool { return len(line) <= 2 && len(bytes.TrimSpace(line)) == 0 }

// decode decodes the lines of the batch, up to the first invalid line. It stores the error of an
// invalid line in b.end.
func (b *batch) decode(s *scanner) {
	defer close(b.decoded)
	b.records = make([]*Record, 0, len(b.ends))
	for i := range b.ends {
		record, err := b.parse(s, i)
		if err != nil {
			b.end = err
			break
		}
		b.records = append(b.records, record)
	}
	b.buffer.Reset()
	bufferPool.Put(b.buffer)
}

// parse returns the record in one line of the batch. The first line has the index 0. Without a newline,
// only an End record is complete.
func (b *batch) parse(s *scanner, i int) (*Record, error) {
	number := b.first + int64(i)
	record, err := parse(s, b.line(i), number)
	switch {
	case b.cut && i == len(b.ends)-1 && (err != nil || record.End == nil):
		return nil, fmt.Errorf("line %d is incomplete: %w", number, ErrTruncated)
	case err != nil:
		return nil, fmt.Errorf("line %d: %w", number, err)
	}
	return record, nil
}

// line returns the text of one line of the batch, without decoding it. The first line has the
// index 0.
func (b *batch) line(i int) []byte {
	start := 0
	if i > 0 {
		start = b.ends[i-1]
	}
	return b.buffer.Bytes()[start:b.ends[i]]
}

// typesOf returns a text with the keys of a record that are the names of known or unknown types.
func typesOf(line []byte) string {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return "unreadable fields"
	}
	for _, common := range []string{"seq", "at"} {
		delete(fields, common)
	}
	var types []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		types = append(types, fmt.Sprintf("%.60q", name))
	}
	const most = 5 // of the names in the message
	switch {
	case len(types) == 0:
		return "no type"
	case len(types) == 1:
		return "the type " + types[0]
	}
	return "the types " + nearest.List(types[:min(len(types), most)], "and")
}

// parse returns the record in a line. It returns an error if the line is no valid record. The
// argument seq is the number of the line, which must equal the record's Seq.
func parse(s *scanner, line []byte, seq int64) (*Record, error) {
	record := new(Record)
	if !record.decodeFast(s, line) {
		if !utf8.Valid(line) { // encoding/json replaces other bytes
			return nil, errors.New("found bytes that are not UTF-8; expected a record as JSON in UTF-8")
		}
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '{' && !bytes.Equal(text, []byte("null")) {
			return nil, fmt.Errorf("the line is no valid record: found the text %.40q; expected a JSON object", text)
		}
		var decoded struct {
			Record
			Format1Commit *Commit `json:"truth"` // the commit under its key in format 1
		}
		if err := unmarshalRecord(line, &decoded); err != nil {
			reason := strings.ReplaceAll(inputfile.JSONReason(err), "the end of the file", "the end of the line")
			return nil, fmt.Errorf("the line is no valid record: %s", strings.ReplaceAll(reason, "the file is cut off", "the line is cut off"))
		}
		record = &decoded.Record
		if decoded.Format1Commit != nil {
			record.Commit = decoded.Format1Commit
		}
	}
	if bytes.Equal(bytes.TrimSpace(line), []byte("null")) {
		return nil, errors.New("found null; expected a record, which is a JSON object")
	}
	if record.Seq == 0 {
		return nil, fmt.Errorf("found a record without the sequence number (seq); expected %d", seq)
	}
	if record.Seq != seq {
		return nil, fmt.Errorf("found a record with the sequence number (seq) %d; expected %d", record.Seq, seq)
	}
	if n := record.payloads(); n != 1 {
		return nil, fmt.Errorf("found a record with %s; expected exactly one known type, such as commit or request", typesOf(line))
	}
	if seq == 1 {
		if record.Start == nil {
			return nil, errors.New("the first record is no start record; expected every history to begin with one")
		}
		if f := record.Start.Format; f != Format && f != format1 {
			return nil, fmt.Errorf("found history format %d; this version of gauntlet reads the formats %d and %d", f, format1, Format)
		}
	}
	if err := record.validate(); err != nil {
		return nil, err
	}
	return record, nil
}
