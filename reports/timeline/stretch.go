package timeline

import (
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// mostRecords is of how many records of a history all is drawn, so that neither memory
// nor the page grow with its length. Of the others there are the phases, the steps, the
// processes, and when faults began and ended. Runs of minutes have a tenth of that.
const mostRecords = 200_000

// forgetEvery is every how many records before the stretch what was counted is forgotten.
const forgetEvery = 10_000

// stretch is the part of a history of which all is drawn, by Seq, both ends included.
type stretch struct{ from, to int64 }

// stretchOf is the stretch of so many records that shows the first violation, with what
// led to it before all: of its records, the last is where it was seen. Without any, it
// is the beginning.
func stretchOf(results []check.Result, most int64) stretch {
	beginning := stretch{1, most}
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
	if before := most / 4 * 3; first > before {
		return stretch{first - before + 1, first - before + most}
	}
	return beginning
}

// holds reports whether all is drawn of a record.
func (s stretch) holds(seq int64) bool { return s.from <= seq && seq <= s.to }

// cut says of a history up to a record what the stretch leaves out; empty for nothing.
func (s stretch) cut(last int64) string {
	if s.from == 1 && last <= s.to {
		return ""
	}
	return fmt.Sprintf("of this long history of %d records, all is drawn of records %d to %d; of the others, only steps, processes, and when faults began and ended",
		last, s.from, min(s.to, last))
}

// afterwards takes in a record behind the stretch.
func (b *builder) afterwards(r *history.Record) {
	switch {
	case r.Phase != nil:
		b.phase(r)
	case r.Step != nil:
		b.step(r)
	case r.Fault != nil:
		b.fault(r)
	case r.Process != nil:
		b.process(r)
	case r.Response != nil: // of a request in the stretch
		b.response(r)
	}
}
