package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// Tee lets two consumers read the same records, but decodes each record only once. One consumer is
// the caller's loop over the result. The other is the callback consume, which Tee calls on another
// goroutine.
//
// If the caller's loop stops early, Tee still passes the remaining records to the callback. The
// loop ends only after the callback has returned. Neither consumer may change a record.
func Tee(records iter.Seq2[*Record, error], consume func(iter.Seq2[*Record, error])) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		parts := make(chan []readResult, batchesAhead)
		var group sync.WaitGroup
		group.Go(func() {
			consume(readResults(parts))
			for range parts { // receives the remaining records if consume has returned early
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

// readResult is one pair that Read yields: a record, or the error that ends a history.
type readResult struct {
	record *Record
	err    error
}

// readResults yields the pairs of all slices in the channel parts, in order. Tee passes this
// sequence to its second consumer.
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

// ReadSelected returns the records with the given sequence numbers (Seq) from the history file at
// path. The keys of the result are sequence numbers. Numbers after the end of the file are
// ignored.
//
// For speed, ReadSelected decodes only these records, and stops after the last of them.
func ReadSelected(path string, positions []int64) (map[int64]*Record, error) {
	selected := make(map[int64]*Record, len(positions))
	if len(positions) == 0 {
		return selected, nil
	}
	file, err := inputfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	wanted := make(map[int64]bool, len(positions))
	for _, position := range positions {
		wanted[position] = true
	}
	lines := bufio.NewReaderSize(file, 1<<20)
	for first, more := int64(1), true; more && len(selected) < len(wanted); {
		b := &batch{first: first, buffer: new(bytes.Buffer)}
		more = b.read(lines)
		if b.end != nil {
			return nil, fmt.Errorf("%s: %w", path, b.end)
		}
		for i := range b.ends {
			position := first + int64(i)
			if !wanted[position] {
				continue
			}
			record, err := b.parse(new(scanner), i)
			switch {
			case errors.Is(err, ErrTruncated):
				continue
			case err != nil:
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			selected[position] = record
		}
		first += int64(len(b.ends))
	}
	return selected, nil
}
