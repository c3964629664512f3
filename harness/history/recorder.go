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

// Recorder writes a history. Append may be called from any goroutine; records
// get their place in the order of the calls. Encoding and writing happen on a
// goroutine of the recorder's own, so that a witness in the subject's path pays
// for little more than a channel send.
type Recorder struct {
	clock clock.PassiveClock
	start Start

	mu            sync.Mutex // orders Seq, At and the send on queue
	seq           int64
	closed        bool
	queue         chan queueItem
	detectStalls  bool
	lastHeartbeat time.Duration // when this process was last seen to run

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

// queueLength bounds the records that wait for the disk. A full queue slows the
// witnesses down; it never drops a record.
const queueLength = 8192

// Create makes the history file at path, which must not exist, and writes its
// first record. Each follower is handed every record, in order, from one
// goroutine; it must neither keep nor change it, and be quick.
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

// Append adds a record and fills in its Seq and At. What it points to belongs to
// the recorder from then on. After Close it does nothing.
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

// enqueue adds a record as of a time. The caller has the lock.
func (r *Recorder) enqueue(record Record, at time.Duration) {
	r.seq++
	record.Seq, record.At = r.seq, at
	r.queue <- queueItem{record: &record}
}

// How often a recorder that beats does so, and for how much longer it may not before
// that is a stall: a busy machine is often late by tens of milliseconds.
const (
	heartbeatInterval = 50 * time.Millisecond
	stallMin          = 200 * time.Millisecond
)

// RecordStalls has the recorder notice, until stop is called, when this process gets no time
// to run, or none to record in, and put a [Stall] before whatever comes next.
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

// heartbeat says that this process runs. The caller has the lock.
func (r *Recorder) heartbeat(at time.Duration) {
	late := at - r.lastHeartbeat - heartbeatInterval
	r.lastHeartbeat = at
	if r.detectStalls && late >= stallMin {
		r.enqueue(Record{Stall: &Stall{Duration: late}}, at)
	}
}

// Flush returns when every record appended before it is in the file and every
// follower has seen it, or with the error that kept one out.
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

// Failed is closed when a record could not be written; Close and Flush then
// return why.
func (r *Recorder) Failed() <-chan struct{} { return r.failed }

// Close writes what is left and closes the file. It may be called again.
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

// write drains the queue. After the first error it goes on taking records, so
// that no witness hangs, and drops them.
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

// fail keeps the first error. Only the writer calls it.
func (r *Recorder) fail(err error) {
	if err == nil {
		return
	}
	r.once.Do(func() {
		r.err = fmt.Errorf("writing the history: %w", err)
		close(r.failed)
	})
}
