package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
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
func Read(source io.Reader) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		lines := bufio.NewReaderSize(source, 1<<20)
		for seq := int64(1); ; seq++ {
			line, err := lines.ReadBytes('\n')
			switch {
			case errors.Is(err, io.EOF) && len(line) == 0:
				return
			case errors.Is(err, io.EOF):
				yield(nil, fmt.Errorf("line %d: %w", seq, ErrTruncated))
				return
			case err != nil:
				yield(nil, fmt.Errorf("line %d: %w", seq, err))
				return
			}
			record, err := parse(line, seq)
			if err != nil {
				yield(nil, fmt.Errorf("line %d: %w", seq, err))
				return
			}
			if !yield(record, nil) {
				return
			}
		}
	}
}

// parse reads the record that stands at place seq.
func parse(line []byte, seq int64) (*Record, error) {
	record := new(Record)
	if err := json.Unmarshal(line, record); err != nil {
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
