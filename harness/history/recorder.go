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

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// Recorder writes the history of one run to a file. The records are in the order of the calls of
// Append.
//
// Append is safe for concurrent use. Another goroutine encodes and writes the records, so that
// Append delays the fault proxy little.
type Recorder struct {
	clock clock.PassiveClock
	start Start

	// mu guards the fields from seq to lastHeartbeat. Append holds mu while it numbers a record
	// (Seq), sets its time (At) and puts it into the queue. The records in the queue are
	// therefore sorted by Seq and by At.
	mu            sync.Mutex
	seq           int64
	closed        bool
	queue         chan queueItem
	detectStalls  bool
	lastHeartbeat time.Duration // the latest time at which gauntlet certainly had CPU time

	done   chan struct{} // closed when the goroutine of the method write has ended
	failed chan struct{} // closed when writing fails for the first time
	once   sync.Once
	err    error // the first error of writing the history; set before the channel failed is closed
}

// queueItem is an entry of the recorder's queue: a record to write, or a flush. For a flush,
// record is nil, and the goroutine that writes sends the result to the channel flushed.
type queueItem struct {
	record  *Record
	flushed chan<- error
}

// queueLength is the number of records that can wait to be written. If the queue is full, Append
// blocks; it never drops a record.
const queueLength = 8192

// Create creates the history file at path and writes the Start record. It returns an error if the
// file exists.
//
// The Recorder calls each function in followers with every record, in order, on one goroutine. A
// follower must return quickly, and must neither keep nor change a record.
func Create(path string, start Start, clock clock.PassiveClock, followers ...func(*Record)) (*Recorder, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("creating the history: %w", err)
	}
	start.Format = Format
	start.Time, start.Ends = clock.Now(), true
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

// Append adds a record to the history and sets the record's Seq and At. The caller must not
// change the data to which the record points. After Close, Append does nothing.
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

// enqueue puts a record with the next Seq and the given At into the queue. The caller must hold
// r.mu.
func (r *Recorder) enqueue(record Record, at time.Duration) {
	r.seq++
	record.Seq, record.At = r.seq, at
	r.queue <- queueItem{record: &record}
}

const (
	// heartbeatInterval is the time between two calls of [Recorder.heartbeat]. A late call shows that
	// gauntlet got no CPU time.
	heartbeatInterval = 50 * time.Millisecond
	// stallMin is how late a heartbeat must be to count as a stall, a time without CPU. On a busy
	// machine, delays of tens of milliseconds are common, and are no stall.
	stallMin = 200 * time.Millisecond
)

// RecordStalls makes the recorder detect stalls, which are times in which gauntlet gets no CPU
// time. After a stall, the recorder appends a [Stall] record before any other record. The
// detection ends when the caller calls the returned function stop.
func (r *Recorder) RecordStalls(clock clock.WithTicker) (stop func()) {
	r.mu.Lock()
	r.detectStalls, r.lastHeartbeat = true, r.clock.Since(r.start.Time)
	r.mu.Unlock()
	stopHeartbeat := Every(clock, heartbeatInterval, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.closed {
			r.heartbeat(r.clock.Since(r.start.Time))
		}
	})
	return sync.OnceFunc(func() {
		stopHeartbeat()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.detectStalls = false
	})
}

// heartbeat records that gauntlet has CPU time now. If the last heartbeat was at least
// heartbeatInterval + stallMin ago, it appends a Stall record.
//
// The parameter at is the time since the start of the history. The caller must hold r.mu.
func (r *Recorder) heartbeat(at time.Duration) {
	late := at - r.lastHeartbeat - heartbeatInterval
	r.lastHeartbeat = at
	if r.detectStalls && late >= stallMin {
		r.enqueue(Record{Stall: &Stall{Duration: late}}, at)
	}
}

// Flush waits until all appended records are in the file and every follower has received them.
// If a record could not be written, Flush returns the error.
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

// Failed returns a channel that is closed when the recorder fails to write a record for the
// first time. Flush and Close then return the error.
func (r *Recorder) Failed() <-chan struct{} { return r.failed }

// Close writes the remaining records and the End record, and closes the file. It returns the
// first error of writing the history. A second call does nothing and returns the same error.
func (r *Recorder) Close() error {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		r.enqueue(Record{End: &End{}}, r.clock.Since(r.start.Time))
		close(r.queue)
	}
	r.mu.Unlock()
	<-r.done
	return r.err
}

// write encodes the queued records, writes them to the file, and passes them to the followers. As
// soon as no record waits, the file has all records. A panic of the program thus loses few of them.
//
// After the first error it writes nothing more. It still empties the queue, so that Append does
// not block.
func (r *Recorder) write(file *os.File, followers []func(*Record)) {
	defer close(r.done)
	buffer := bufio.NewWriterSize(file, 1<<20)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	for next := range r.queue {
		if next.record != nil {
			if r.err == nil {
				r.fail(encoder.Encode(next.record))
			}
			for _, follow := range followers {
				follow(next.record)
			}
		}
		if next.flushed != nil || len(r.queue) == 0 {
			r.fail(buffer.Flush())
		}
		if next.flushed != nil {
			next.flushed <- r.err
		}
	}
	r.fail(errors.Join(buffer.Flush(), file.Close()))
}

// fail stores an error if it is the first error of writing the history. It does nothing if err is
// nil. Only the method write calls fail.
func (r *Recorder) fail(err error) {
	if err == nil {
		return
	}
	r.once.Do(func() {
		r.err = fmt.Errorf("writing the history: %w", inputfile.FileError(err))
		close(r.failed)
	})
}
