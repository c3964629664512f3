package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Recorder writes a history. Append is safe for concurrent use; the order of its calls
// is the order of the records. A separate goroutine encodes and writes, so Append adds
// little latency to the fault proxy.
type Recorder struct {
	clock clock.PassiveClock
	start Start

	mu            sync.Mutex // guards the fields below, so that records enter queue in the order of Seq and At
	seq           int64
	closed        bool
	queue         chan queueItem
	detectStalls  bool
	lastHeartbeat time.Duration // last time at which this process was known to run

	done   chan struct{} // closed when the writer has ended
	failed chan struct{} // closed at the first error of the writer
	once   sync.Once
	err    error // set before failed is closed
}

// queueItem is a record to write, or a request to flush.
type queueItem struct {
	record  *Record
	flushed chan<- error
}

// queueLength is the number of records that can wait for the disk. If the queue is
// full, Append blocks; it never drops a record.
const queueLength = 8192

// Create creates the history file at path, which must not exist, and writes its first
// record. Each follower receives every record, in order, on one goroutine. Followers
// must be quick, and must neither retain nor change a record.
func Create(path string, start Start, clock clock.PassiveClock, followers ...func(*Record)) (*Recorder, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("creating the history: %w", err)
	}
	start.Format = Format
	start.Time = clock.Now()
	r := &Recorder{
		clock:  clock,
		start:  start,
		queue:  make(chan queueItem, queueLength),
		done:   make(chan struct{}),
		failed: make(chan struct{}),
	}
	go r.write(file, followers)
	r.Append(Record{Start: &start})
	return r, nil
}

// Append adds a record and sets its Seq and At. The recorder then owns everything that
// the record points to. After Close, Append does nothing.
func (r *Recorder) Append(record Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	at := r.clock.Since(r.start.Time)
	r.heartbeat(at)
	r.enqueue(record, at)
}

// enqueue adds a record with the given time. The caller holds r.mu.
func (r *Recorder) enqueue(record Record, at time.Duration) {
	r.seq++
	record.Seq, record.At = r.seq, at
	r.queue <- queueItem{record: &record}
}

// A recorder that detects stalls has a heartbeat every heartbeatInterval. If a heartbeat is
// late by stallMin or more, this process was stalled. A shorter delay does not count,
// because heartbeats on a busy machine are often late by tens of milliseconds.
const (
	heartbeatInterval = 50 * time.Millisecond
	stallMin          = 200 * time.Millisecond
)

// RecordStalls makes the recorder detect stalls of this process until stop is called.
// It appends the [Stall] record before the first record after the stall.
func (r *Recorder) RecordStalls(clock clock.WithTicker) (stop func()) {
	r.mu.Lock()
	r.detectStalls, r.lastHeartbeat = true, r.clock.Since(r.start.Time)
	r.mu.Unlock()
	ticker, over, done := clock.NewTicker(heartbeatInterval), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C():
			case <-over:
				return
			}
			r.mu.Lock()
			if !r.closed {
				r.heartbeat(r.clock.Since(r.start.Time))
			}
			r.mu.Unlock()
		}
	}()
	return sync.OnceFunc(func() {
		close(over)
		<-done
		r.mu.Lock()
		defer r.mu.Unlock()
		r.detectStalls = false
	})
}

// heartbeat sets lastHeartbeat to now, and records a stall if too much time has passed
// since the previous heartbeat. The caller holds r.mu.
func (r *Recorder) heartbeat(at time.Duration) {
	late := at - r.lastHeartbeat - heartbeatInterval
	r.lastHeartbeat = at
	if r.detectStalls && late >= stallMin {
		r.enqueue(Record{Stall: &Stall{Duration: late}}, at)
	}
}

// Flush waits until every earlier record is in the file and every follower has received
// it. If a record could not be written, Flush returns the error.
func (r *Recorder) Flush() error {
	flushed := make(chan error, 1)
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		<-r.done
		return r.err
	}
	r.queue <- queueItem{flushed: flushed}
	r.mu.Unlock()
	return <-flushed
}

// Failed returns a channel that is closed when a record cannot be written. Flush and
// Close then return the error.
func (r *Recorder) Failed() <-chan struct{} { return r.failed }

// Close writes the remaining records and closes the file. Further calls do nothing and
// return the same error.
func (r *Recorder) Close() error {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.queue)
	}
	r.mu.Unlock()
	<-r.done
	return r.err
}

// write writes the queued records to the file. After the first error, it still receives
// records from the queue and drops them, so that Append does not block.
func (r *Recorder) write(file *os.File, followers []func(*Record)) {
	defer close(r.done)
	buffer := bufio.NewWriterSize(file, 1<<20)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	for next := range r.queue {
		switch {
		case next.flushed != nil:
			r.fail(buffer.Flush())
			next.flushed <- r.err
		default:
			if r.err == nil {
				r.fail(encoder.Encode(next.record))
			}
			for _, follow := range followers {
				follow(next.record)
			}
		}
	}
	r.fail(errors.Join(buffer.Flush(), file.Close()))
}

// fail stores the first error. Only the writer calls it.
func (r *Recorder) fail(err error) {
	if err == nil {
		return
	}
	r.once.Do(func() {
		r.err = fmt.Errorf("writing the history: %w", err)
		close(r.failed)
	})
}
