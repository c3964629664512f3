package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
)

// Tee yields records, and lets another have the same at the same time, on a goroutine
// of its own, so that a history which two look at is decoded once. The other gets all of
// them, though whoever ranges over them may stop before; the loop ends when both have.
// Neither may change a record.
func Tee(records iter.Seq2[*Record, error], with func(iter.Seq2[*Record, error])) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		parts := make(chan []readResult, batchesAhead)
		var group sync.WaitGroup
		group.Go(func() {
			with(readResults(parts))
			for range parts { // it wants no more
			}
		})
		defer group.Wait()
		defer close(parts)
		part := make([]readResult, 0, batchLines)
		more := true
		for record, err := range records {
			part = append(part, readResult{record, err})
			if len(part) == batchLines {
				parts <- part
				part = make([]readResult, 0, batchLines)
			}
			more = more && yield(record, err)
		}
		parts <- part
	}
}

// readResult is what the reading of a record gave.
type readResult struct {
	record *Record
	err    error
}

func readResults(parts <-chan []readResult) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		for part := range parts {
			for _, e := range part {
				if !yield(e.record, e.err) {
					return
				}
			}
		}
	}
}

// ReadSelected returns the records of the file at path that stand at the given places. A place
// behind its end has none; only the lines asked for are decoded, and what is behind the
// last of them is not read.
func ReadSelected(path string, places []int64) (map[int64]*Record, error) {
	some := make(map[int64]*Record, len(places))
	if len(places) == 0 {
		return some, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the history: %w", err)
	}
	defer file.Close()
	wanted := make(map[int64]bool, len(places))
	for _, place := range places {
		wanted[place] = true
	}
	lines := bufio.NewReaderSize(file, 1<<20)
	for first, more := int64(1), true; more && len(some) < len(wanted); {
		b := &batch{first: first, buffer: new(bytes.Buffer)}
		more = b.read(lines)
		if b.end != nil && !errors.Is(b.end, ErrTruncated) {
			return nil, fmt.Errorf("%s: %w", path, b.end)
		}
		for i := range b.ends {
			place := first + int64(i)
			if !wanted[place] {
				continue
			}
			record, err := parse(new(scanner), b.line(i), place)
			if err != nil {
				return nil, fmt.Errorf("%s: line %d: %w", path, place, err)
			}
			some[place] = record
		}
		first += int64(len(b.ends))
	}
	return some, nil
}
