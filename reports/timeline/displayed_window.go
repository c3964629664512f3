package timeline

import (
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// maxRecords is the maximum number of records that the timeline draws in full. It limits the
// memory and the size of the page. If the first violation is among the last of these records,
// up to a quarter more are drawn after it. A run of a few minutes has about 20,000 records.
const maxRecords = 200_000

// dropEvery is the number of records after which the builder drops state that only nearby
// records need.
const dropEvery = 10_000

// window is the displayed window of a history, as the Seqs of its first and its last record.
type window struct{ from, to int64 }

// windowAround returns a window that contains the first violation. The position of a violation
// is the last record of its evidence. Three quarters of the window are before the violation.
// The window begins at the first record if there is no violation, or if the violation is among
// the first most records.
func windowAround(results []check.Result, most int64) window {
	first := int64(0)
	for _, result := range results {
		for _, e := range result.Evidence {
			if len(e.Records) == 0 {
				continue
			}
			if seen := slices.Max(e.Records); first == 0 || seen < first {
				first = seen
			}
		}
	}
	after := most / 4
	if first <= most {
		return window{1, max(most, first+after)}
	}
	return window{first - (most - after) + 1, first + after}
}

// contains reports whether the record with a Seq is in the window.
func (s window) contains(seq int64) bool { return s.from <= seq && seq <= s.to }

// observeOutside adds a record outside the displayed window. It draws only phases, steps,
// processes, gaps, and the start, failure and end of faults. These records show the course of
// the run.
func (b *builder) observeOutside(r *history.Record) error {
	switch {
	case r.Start != nil, r.Phase != nil, r.Step != nil, r.Process != nil, r.Gap != nil, r.Stall != nil:
		return b.drawRecord(r)
	case r.Fault != nil:
		if e := r.Fault.Event; e == history.FaultInjected || e == history.FaultHealed || e == history.FaultFailed {
			return b.drawRecord(r)
		}
	case r.Response != nil: // ends the mark of a request in the window, or opens a watch
		b.response(r)
	case r.Seq > max(b.window.to, b.lastCited): // no record is drawn after this one, so no state is needed
	case r.Commit != nil:
		s, err := b.remember(r)
		if err == nil && r.Commit.Type == history.Deleted {
			b.dropObject(&r.Commit.Object)
		}
		if err == nil && r.Seq < b.window.from {
			b.counts.observe(r, s)
		}
		return err
	case r.Request != nil && r.Request.Verb == "watch":
		b.requests[r.Request.ID] = &request{opened: r.At}
	case r.WatchClosed != nil:
		delete(b.requests, r.WatchClosed.ID)
	}
	return nil
}

// remember decodes a committed version and returns its state. It stores what the drawing of
// later records needs: the time of the commit, the owner and the display order of the track.
func (b *builder) remember(r *history.Record) (state, error) {
	o := &r.Commit.Object
	s, err := b.stateOf(o)
	if err != nil {
		return s, fmt.Errorf("%s: %w", o.Ref, err)
	}
	b.committedAt[o.Version] = r.At
	kind, _ := kube.ByResource(o.Resource)
	if kind.Role == kube.Child {
		b.sharedTrackOf(o)
		return s, nil
	}
	b.owners.Observe(o.UID, o.Resource)
	if title := b.title(o.Ref); b.orders[title] == (trackOrder{}) {
		b.orders[title] = b.orderOf(o, kind)
	}
	return s, nil
}

// dropObject drops the stored data of a deleted object, to save memory. It keeps the display
// order of the object's track if the timeline has that track.
func (b *builder) dropObject(o *history.Object) {
	title := b.title(o.Ref)
	delete(b.sharedTracks, title)
	b.owners.Forget(o.UID)
	if _, drawn := b.tracks[title]; !drawn {
		delete(b.orders, title)
	}
}

// dropOld drops data that only the drawing of nearby records needs. It does so at the start of
// the window, and every dropEvery records outside the window.
func (b *builder) dropOld(r *history.Record) {
	begins := r.Seq == b.window.from && r.Seq > 1
	now := r.Seq%dropEvery == 0
	if begins || now && r.Seq < b.window.from {
		b.counts.dropOld()
	}
	if now && (r.Seq < b.window.from-dropEvery || r.Seq > b.window.to+dropEvery) {
		clear(b.committedAt)
	}
}

// updateDisplayed sets the start or extends the end of the displayed time range.
func (b *builder) updateDisplayed(r *history.Record) {
	switch {
	case r.Seq < b.window.from:
		b.t.Displayed.From = r.At
	case r.Seq <= b.window.to:
		b.t.Displayed.To = r.At
	}
}

// complete reports whether the window contains all records of the history.
func (b *builder) complete() bool { return b.window.from == 1 && b.last <= b.window.to }

// omitted returns a sentence that says which records are not drawn. It returns "" if all
// records are drawn.
func (b *builder) omitted() string {
	if b.complete() {
		return ""
	}
	return fmt.Sprintf("the history has %d records; this timeline shows records %d to %d (%.1f s to %.1f s) in full; from the others it shows steps, processes, gaps, the start, failure and end of faults, and cited records",
		b.last, b.window.from, min(b.window.to, b.last), b.t.Displayed.From.Seconds(), b.t.Displayed.To.Seconds())
}
