package timeline

import (
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// maxRecords is of how many records of a history all is drawn, and of a quarter more
// behind the first violation, so that neither memory nor the page grow with its length.
// Runs of minutes have a tenth of that.
const maxRecords = 200_000

// dropEvery is every how many records before the stretch is forgotten what only the
// drawing of what is near would need.
const dropEvery = 10_000

// window is the part of a history of which all is drawn, by Seq, both ends included.
type window struct{ from, to int64 }

// windowAround is the stretch that shows the first violation, with what led to it before
// all: of its records, the last is where it was seen. It is the beginning of the history
// if that holds it, or if there is none.
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

// contains reports whether all is drawn of a record.
func (s window) contains(seq int64) bool { return s.from <= seq && seq <= s.to }

// observeOutside takes in a record outside of the stretch. What tells a reader where he is, and why
// the run can be judged no further, is drawn all the same.
func (b *builder) observeOutside(r *history.Record) error {
	switch {
	case r.Start != nil, r.Phase != nil, r.Step != nil, r.Process != nil, r.Gap != nil, r.Stall != nil:
		return b.drawRecord(r)
	case r.Fault != nil:
		if e := r.Fault.Event; e == history.FaultInjected || e == history.FaultHealed || e == history.FaultFailed {
			return b.drawRecord(r)
		}
	case r.Response != nil: // of a request that is drawn, or a watch
		b.response(r)
	case r.Seq > max(b.window.to, b.lastCited): // nothing of it will be asked for
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

// remember keeps of a version what it takes to draw what comes after it.
func (b *builder) remember(r *history.Record) (state, error) {
	o := &r.Commit.Object
	s, err := stateOf(o)
	if err != nil {
		return s, fmt.Errorf("%s: %w", o.Ref, err)
	}
	b.committedAt[o.Version] = r.At
	if o.Resource == pods {
		b.podTrackOf(o)
	} else if title := b.title(o.Ref); b.orders[title] == (trackOrder{}) {
		b.orders[title] = b.orderOf(o)
	}
	return s, nil
}

// dropObject forgets where an object that is gone was to be drawn, if it is not.
func (b *builder) dropObject(o *history.Object) {
	title := b.title(o.Ref)
	delete(b.podTracks, title)
	if _, drawn := b.tracks[title]; !drawn {
		delete(b.orders, title)
	}
}

// dropOld drops, now and then outside of the stretch and where it begins, what only the
// drawing of what was near would need.
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

// updateDisplayed notes of what time all is drawn.
func (b *builder) updateDisplayed(r *history.Record) {
	switch {
	case r.Seq < b.window.from:
		b.t.Displayed.From = r.At
	case r.Seq <= b.window.to:
		b.t.Displayed.To = r.At
	}
}

// complete reports whether all is drawn of all records.
func (b *builder) complete() bool { return b.window.from == 1 && b.last <= b.window.to }

// omitted says what of the history is not drawn; empty if all is.
func (b *builder) omitted() string {
	if b.complete() {
		return ""
	}
	return fmt.Sprintf("of this long history of %d records, all is drawn of records %d to %d (%.1f s to %.1f s); of the others, only steps, processes, gaps, when faults began, failed and ended, and what is cited, but for answers and lists",
		b.last, b.window.from, min(b.window.to, b.last), b.t.Displayed.From.Seconds(), b.t.Displayed.To.Seconds())
}
