package timeline

import (
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// maxRecords is the maximum number of records that the timeline shows in full. It limits the
// memory that gauntlet needs and the size of the page.
//
// If the first violation is near the end of these records, the timeline shows up to a quarter
// more. Readers thus see what happened after the violation. A run of a few minutes has about
// 20,000 records.
const maxRecords = 200_000

// dropEvery is the number of records after which the builder drops old data to free memory; see
// dropOld.
const dropEvery = 10_000

// window is the part of a history that the timeline shows in full. The fields from and to are the
// numbers (Seq) of the first and the last record.
type window struct{ from, to int64 }

// WorstEvidence returns the evidence of all results with the worst verdict that has any. The order
// of the verdicts is fail, unknown, known-upstream. A report shows the part of a run around the first of these violations.
func WorstEvidence(results []check.Result) []check.Evidence {
	for _, verdict := range []check.Verdict{check.Fail, check.Unknown, check.KnownUpstream} {
		var all []check.Evidence
		for _, result := range results {
			if result.Verdict == verdict {
				all = append(all, result.Evidence...)
			}
		}
		if len(all) > 0 {
			return all
		}
	}
	return nil
}

// windowAround returns a window around the first violation with the worst verdict; see
// WorstEvidence. The argument limit is the number of records in the window. Three quarters of the
// records are before the violation. A violation's position is the last record that its evidence
// cites.
//
// If there is no violation, or if its position is at most the limit, the window begins at record 1.
// If the violation is near the end of that window, the window is up to a quarter longer.
func windowAround(results []check.Result, limit int64) window {
	first := int64(0)
	for _, e := range WorstEvidence(results) {
		if len(e.Records) == 0 {
			continue
		}
		if seen := slices.Max(e.Records); first == 0 || seen < first {
			first = seen
		}
	}
	after := limit / 4
	if first <= limit {
		return window{1, max(limit, first+after)}
	}
	return window{first - (limit - after) + 1, first + after}
}

// contains reports whether the record with the given number (Seq) is in the window.
func (s window) contains(seq int64) bool { return s.from <= seq && seq <= s.to }

// observeOutside reads a record that is neither in the displayed window nor cited in evidence.
//
// The timeline shows such a record only if it helps to follow the course of the run. Examples
// are records of phases, steps, processes, missing parts of the history (gaps), and the start
// and end of faults. From all further records, observeOutside stores what later records in the
// window need.
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

// remember decodes a committed version of an object and returns the fields that the timeline
// shows. It stores what the timeline needs to show later records: the time of the commit, the
// object's owner, and the position of the object's row (track).
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

// dropObject frees the memory for what remember has stored about a deleted object. It keeps the
// position of the object's row (track) if the timeline has this row.
func (b *builder) dropObject(o *history.Object) {
	title := b.title(o.Ref)
	delete(b.sharedTracks, title)
	b.owners.Forget(o.UID)
	if _, drawn := b.tracks[title]; !drawn {
		delete(b.orders, title)
	}
}

// dropOld frees memory before the builder reads the record r:
//
//   - It drops the values of charts every dropEvery records before the displayed window, and once
//     at the start of the window.
//   - It drops all commit times every dropEvery records. It keeps them if r is in the window or at
//     most dropEvery records away from the window.
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

// updateDisplayed updates the displayed time range with the time of a record. A record before the
// window moves the start of this range. A record in the window moves the end.
func (b *builder) updateDisplayed(r *history.Record) {
	switch {
	case r.Seq < b.window.from:
		b.t.Displayed.From = r.At
	case r.Seq <= b.window.to:
		b.t.Displayed.To = r.At
	}
}

// complete reports whether the displayed window contains all records of the history, so that
// nothing is omitted.
func (b *builder) complete() bool { return b.window.from == 1 && b.last <= b.window.to }

// omitted returns a sentence that says which records the timeline does not show. It returns "" if
// the timeline shows all records.
func (b *builder) omitted() string {
	if b.complete() {
		return ""
	}
	return fmt.Sprintf("the history has %d records; this timeline shows records %d to %d (%.1f s to %.1f s) in full; of the other records, this timeline shows steps, processes, gaps (missing records), the start, failure and end of faults, and the records that violations cite",
		b.last, b.window.from, min(b.window.to, b.last), b.t.Displayed.From.Seconds(), b.t.Displayed.To.Seconds())
}
