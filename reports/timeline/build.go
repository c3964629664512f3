package timeline

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// Build builds the timeline of a run from the run's history and the results of the checks.
//
// If the last line of the history is incomplete, the timeline ends before that line. Build returns
// any other read error.
//
// The timeline shows at most about maxRecords records in full. In a longer history, these are the
// records around the first violation. Without a violation, they are the first records.
func Build(records iter.Seq2[*history.Record, error], results []check.Result) (*Timeline, error) {
	return build(records, results, maxRecords)
}

// build does the same as [Build], but with the argument limit in place of the constant maxRecords.
// Tests can thus use short histories.
func build(records iter.Seq2[*history.Record, error], results []check.Result, limit int64) (*Timeline, error) {
	b := newBuilder(windowAround(results, limit), results)
	if err := b.read(records); err != nil {
		return nil, err
	}
	return b.finish(results), nil
}

// Draft is a timeline that has no violations yet. gauntlet builds the draft while the checks read
// the history, and adds the violations when the checks have finished. gauntlet then reads only the
// cited records again, not the whole history.
type Draft struct {
	builder *builder
	limit   int64 // the maximum number of records that the timeline shows in full, usually maxRecords
	err     error // why the history could not be read; Finish returns this error
}

// NewDraft builds a draft of the timeline, without violations, from the history of a run. If the
// history cannot be read, [Draft.Finish] returns the error.
func NewDraft(records iter.Seq2[*history.Record, error]) *Draft {
	return newDraft(records, maxRecords)
}

// newDraft does the same as [NewDraft], but with the argument limit in place of the constant
// maxRecords. Tests can thus use short histories.
func newDraft(records iter.Seq2[*history.Record, error], limit int64) *Draft {
	d := &Draft{builder: newBuilder(windowAround(nil, limit), nil), limit: limit}
	d.err = d.read(records)
	return d
}

// read adds the records of the history to the draft of the timeline. It converts a panic to an
// error, because a run needs verdicts even if the timeline cannot be built.
func (d *Draft) read(records iter.Seq2[*history.Record, error]) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("building the draft of the timeline failed: %v\n%s", p, debug.Stack())
		}
	}()
	return d.builder.read(records)
}

// Covers reports whether the draft of the timeline has every record that the timeline with the
// given results must show. If not, the caller must call [Build] instead of [Draft.Finish].
//
// The draft shows only the first records in full. Covers therefore returns false if a violation,
// or a record that its evidence cites, is after these records. It returns true if the history
// could not be read, because Finish then returns the error.
func (d *Draft) Covers(results []check.Result) bool {
	drawn := d.builder.window
	if d.err != nil || d.builder.last <= drawn.to {
		return true
	}
	cited := Cited(results)
	return windowAround(results, d.limit) == drawn && (len(cited) == 0 || cited[len(cited)-1] <= drawn.to)
}

// Finish adds the results of the checks to the draft, and returns the same timeline as [Build].
// Call Finish only once, and only if [Draft.Covers] returned true.
//
// The argument cited has the records that the evidence cites, by their position (Seq) in the
// history. [Cited] returns these positions.
func (d *Draft) Finish(results []check.Result, cited map[int64]*history.Record) (*Timeline, error) {
	if d.err != nil {
		return nil, d.err
	}
	for _, record := range cited {
		if err := d.builder.cite(record); err != nil {
			return nil, err
		}
	}
	return d.builder.finish(results), nil
}

// Cited returns the numbers (Seq) of all records that the results cite in their evidence. The
// numbers are ascending, and each occurs once.
func Cited(results []check.Result) []int64 {
	var all []int64
	for _, result := range results {
		for _, evidence := range result.Evidence {
			all = append(all, evidence.Records...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// builder builds a timeline from the records of a history. It reads one record after another.
type builder struct {
	t         *Timeline             // the timeline that is being built
	window    window                // the records that the timeline shows in full
	last      int64                 // the number (Seq) of the last record so far
	tracks    map[string]int        // indexes in Timeline.Tracks, by track name
	orders    map[string]trackOrder // positions of tracks, by track name; also of tracks that have not been added
	lists     map[int64]int         // indexes of the marks of list requests, by the number (Seq) of the List record
	cited     map[int64]bool        // the numbers (Seq) of the records that evidence cites
	lastCited int64                 // the highest number in the field cited
	steps     map[int]int           // indexes in Timeline.Marks of unfinished steps, by step index
	faults    map[int]int           // indexes in Timeline.Bands of faults that are not healed, by fault index
	running   map[string]int        // indexes in Timeline.Bands of running processes, by process name
	// requests has those requests of the controllers under test to which later records may refer.
	// Examples of such records are the response and a delivered watch event. The key is the
	// request's ID.
	requests      map[uint64]*request
	sharedTracks  map[string]sharedTrack // the tracks of pods and of other objects that share tracks, by the object's title
	owners        kube.Owners
	committedAt   map[history.Version]time.Duration // the time of each commit, by resourceVersion
	withoutCommit []int                             // indexes in Timeline.Marks of deliveries whose commit is not recorded yet
	counts        *counts
	decoder       *objects.Decoder
	rates         *eventRates
}

// newBuilder returns a builder whose timeline shows the records of the given window in full. The
// timeline also shows the records outside the window that the results cite in their evidence.
func newBuilder(drawn window, results []check.Result) *builder {
	b := &builder{
		t:            &Timeline{Cited: map[int64]json.RawMessage{}},
		window:       drawn,
		tracks:       map[string]int{},
		orders:       map[string]trackOrder{},
		lists:        map[int64]int{},
		cited:        map[int64]bool{},
		steps:        map[int]int{},
		faults:       map[int]int{},
		running:      map[string]int{},
		requests:     map[uint64]*request{},
		sharedTracks: map[string]sharedTrack{},
		committedAt:  map[history.Version]time.Duration{},
		counts:       newCounts(),
		decoder:      objects.NewDecoder(),
		rates:        newEventRates(),
	}
	for _, seq := range Cited(results) {
		b.cited[seq], b.lastCited = true, seq
	}
	return b
}

// read adds all records of a history to the timeline. If the last line of the history is
// incomplete, read stops before that line and returns no error.
func (b *builder) read(records iter.Seq2[*history.Record, error]) error {
	for record, err := range records {
		if errors.Is(err, history.ErrTruncated) {
			b.t.Omitted = "the history is truncated"
			break
		}
		if err != nil {
			return fmt.Errorf("building the timeline: %w", err)
		}
		if err := b.observe(record); err != nil {
			return fmt.Errorf("building the timeline: record %d: %w", record.Seq, err)
		}
	}
	return nil
}

// cite stores a record as JSON in Timeline.Cited, because the evidence of a violation cites it. The
// page can then show the record beside the violation.
func (b *builder) cite(r *history.Record) error {
	encoded, err := json.Marshal(r)
	if err != nil {
		return err
	}
	b.t.Cited[r.Seq] = encoded
	return nil
}

// observe reads the next record of the history and adds it to the timeline if the timeline must
// show it.
func (b *builder) observe(r *history.Record) error {
	b.t.End, b.last = r.At, r.Seq
	b.updateDisplayed(r)
	b.dropOld(r)
	if b.cited[r.Seq] {
		if err := b.cite(r); err != nil {
			return err
		}
	}
	if b.window.contains(r.Seq) || b.cited[r.Seq] {
		return b.drawRecord(r)
	}
	return b.observeOutside(r)
}

// drawRecord adds everything that the timeline shows of a record: marks (events), bands (time
// ranges) and counts.
//
// The caller decides whether the timeline shows the record. drawRecord does not check whether the
// record is in the displayed window.
func (b *builder) drawRecord(r *history.Record) error {
	switch {
	case r.Start != nil:
		b.t.Start = *r.Start
	case r.Phase != nil:
		b.phase(r)
	case r.Step != nil:
		b.step(r)
	case r.Fault != nil:
		b.fault(r)
	case r.Process != nil:
		b.process(r)
	case r.Commit != nil:
		return b.commit(r)
	case r.Request != nil:
		b.request(r)
	case r.Response != nil:
		b.response(r)
	case r.List != nil:
		if q, ok := b.requests[r.List.ID]; ok && q.drawn {
			b.lists[r.Seq] = q.mark
		}
	case r.Delivery != nil:
		b.delivery(r)
	case r.WatchClosed != nil:
		b.watchClosed(r)
	case r.Gap != nil:
		b.mark(Mark{Seq: r.Seq, From: r.At, To: r.At, Track: b.track(Run, "gaps"), Kind: Gap, Action: "gap", Object: r.Gap.Source, Note: r.Gap.Detail})
	case r.Stall != nil:
		b.mark(Mark{Seq: r.Seq, From: r.At - r.Stall.Duration, To: r.At, Track: b.track(Run, "gaps"), Kind: Gap, Action: "stall", Object: cmp.Or(r.Stall.Process, "gauntlet"), Note: "no CPU time"})
	}
	return nil
}

// mark adds a mark to the timeline. A mark shows one event, such as a request. The result is the
// mark's index in Timeline.Marks.
func (b *builder) mark(m Mark) int {
	b.t.Marks = append(b.t.Marks, m)
	return len(b.t.Marks) - 1
}

func (b *builder) phase(r *history.Record) {
	b.t.Phases = append(b.t.Phases, Phase{Name: r.Phase.Name, At: r.At})
}

// step adds a mark (an event on the timeline) for a workload step. The mark begins and ends with
// the step.
func (b *builder) step(r *history.Record) {
	s := r.Step
	switch s.Event {
	case history.StepLate: // the step goes on
		return
	case history.StepBegun:
		b.steps[s.Index] = b.mark(Mark{
			Seq: r.Seq, From: r.At, To: r.At, Track: b.track(Run, "workload"), Kind: Step,
			Action: fmt.Sprintf("step %d", s.Index), Note: s.Detail,
		})
		return
	}
	place, ok := b.steps[s.Index]
	if !ok {
		return
	}
	delete(b.steps, s.Index)
	m := b.endMark(place, r)
	if s.Event == history.StepFailed {
		m.Note += ": " + s.Error
	}
}

// endMark ends a mark (an event on the timeline) at the time of a record, and returns the mark. The
// argument place is the mark's index in Timeline.Marks.
func (b *builder) endMark(place int, r *history.Record) *Mark {
	m := &b.t.Marks[place]
	m.Answer, m.To = r.Seq, r.At
	return m
}

// fault adds a mark (an event on the timeline) for each event of a fault. A band shows how long the
// fault lasted, from the injection until it was healed.
func (b *builder) fault(r *history.Record) {
	f := r.Fault
	track := b.orderedTrack(Run, fmt.Sprintf("fault %d: %s", f.Index, f.Name), "", trackOrder{family: "faults", depth: f.Index})
	switch f.Event {
	case history.FaultInjected:
		b.faults[f.Index] = b.band(Band{Track: track, Kind: Fault, From: r.At, Note: f.Name})
	case history.FaultHealed:
		b.endBand(b.faults, f.Index, r.At)
	}
	m := Mark{Seq: r.Seq, From: r.At, To: r.At, Track: track, Kind: Fault, Action: string(f.Event), Note: f.Detail}
	if f.Object != nil {
		m.Object = b.title(*f.Object)
	}
	b.mark(m)
}

// process adds a mark (an event on the timeline) for each event of a process. A band shows how long
// the process ran.
//
// The band begins when the process starts. It ends with the next record about the process, such as
// died or paused. A process that is resumed gets no new band.
func (b *builder) process(r *history.Record) {
	p := r.Process
	track := b.track(Run, "process "+p.Name)
	if life, ok := b.running[p.Name]; ok {
		b.t.Bands[life].To = r.At
		delete(b.running, p.Name)
	}
	if p.Event == history.ProcessStarted {
		b.running[p.Name] = b.band(Band{Track: track, Kind: Process, From: r.At, Note: p.Name})
	}
	b.mark(Mark{Seq: r.Seq, From: r.At, To: r.At, Track: track, Kind: Process, Action: string(p.Event), Object: p.Name, Note: p.Detail})
}

// band adds a band, which is a colored time range on a row of the timeline. The end of the band is
// not known yet. The result is the band's index in Timeline.Bands.
func (b *builder) band(band Band) int {
	band.To = -1
	b.t.Bands = append(b.t.Bands, band)
	return len(b.t.Bands) - 1
}

// endBand ends the band (colored time range) with the given key at the given time. It also removes
// the key from the map open. It does nothing if this map does not contain the key.
//
// The keys of open identify the bands that have not ended yet, for example by the index of a fault.
// The values are the positions of these bands in Timeline.Bands.
func (b *builder) endBand(open map[int]int, key int, at time.Duration) {
	if place, ok := open[key]; ok {
		b.t.Bands[place].To = at
		delete(open, key)
	}
}

// finish completes the timeline after the last record. It ends the steps and time ranges that have
// no end yet, and sorts the rows (tracks). It adds the charts and the violations.
func (b *builder) finish(results []check.Result) *Timeline {
	t := b.t
	for i := range t.Bands {
		if t.Bands[i].To < 0 {
			t.Bands[i].To = t.End
		}
	}
	for _, open := range b.steps {
		t.Marks[open].To = t.End
	}
	for _, place := range b.withoutCommit {
		b.setLag(place)
	}
	if b.complete() {
		t.Displayed = Span{0, t.End}
	}
	t.Omitted = strings.Join(slices.DeleteFunc([]string{t.Omitted, b.omitted()}, func(s string) bool { return s == "" }), "; ")
	t.Charts = append(b.counts.charts(), b.rates.charts(t.End)...)
	b.sortTracks()
	places := b.marksOfRecords(Cited(results))
	for _, result := range results {
		for i, e := range result.Evidence {
			t.Violations = append(t.Violations, violation(result.Check, i+1, e, places))
		}
	}
	return t
}

// marksOfRecords returns for each of the given records the index of the mark that shows it on the
// timeline. Evidence links to these marks. Records are identified by their numbers (Seq), which
// must be ascending. The map omits records without a mark.
func (b *builder) marksOfRecords(records []int64) map[int64]int {
	places := map[int64]int{}
	if len(records) == 0 {
		return places
	}
	wanted := func(seq int64) bool {
		_, found := slices.BinarySearch(records, seq)
		return found
	}
	for place, m := range b.t.Marks {
		for _, seq := range []int64{m.Seq, m.Answer} {
			if wanted(seq) {
				places[seq] = place
			}
		}
	}
	for seq, place := range b.lists {
		if wanted(seq) {
			places[seq] = place
		}
	}
	return places
}

// violation converts a piece of evidence of the check with the given ID to a Violation. The
// argument places maps the number (Seq) of a record to an index in Timeline.Marks. The mark with
// this index shows the record.
func violation(id string, number int, e check.Evidence, places map[int64]int) Violation {
	v := Violation{Check: id, Number: number, Summary: e.Summary, Expected: e.Expected, At: e.At, Records: e.Records}
	for _, seq := range e.Records {
		if place, ok := places[seq]; ok {
			v.Marks = append(v.Marks, place)
		}
	}
	slices.Sort(v.Marks)
	v.Marks = slices.Compact(v.Marks)
	return v
}

// sortTracks sorts the tracks (rows of the timeline) into the order in which the page shows them.
// It also updates the track indexes in marks and bands.
func (b *builder) sortTracks() {
	tracks := b.t.Tracks
	places := make([]int, len(tracks))
	for i := range places {
		places[i] = i
	}
	orders := b.resolvedOrders()
	slices.SortStableFunc(places, func(x, y int) int {
		return cmp.Or(cmp.Compare(tracks[x].Group, tracks[y].Group), orders[tracks[x].Name].compare(orders[tracks[y].Name]))
	})
	moved := make([]int, len(places))
	sorted := make([]Track, len(places))
	for to, from := range places {
		moved[from], sorted[to] = to, tracks[from]
	}
	b.t.Tracks = sorted
	for i := range b.t.Marks {
		b.t.Marks[i].Track = moved[b.t.Marks[i].Track]
	}
	for i := range b.t.Bands {
		b.t.Bands[i].Track = moved[b.t.Bands[i].Track]
	}
}
