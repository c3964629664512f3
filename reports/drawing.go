package reports

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/reports/timeline"
)

// drawnTimeline is a timeline in the JSON format that the script of the HTML page reads.
//
// A run has tens of thousands of marks (events on the timeline), but few distinct strings. To keep
// the page small, marks are stored as columns, with indexes in Words instead of strings. All times
// are whole microseconds since the start of the history.
type drawnTimeline struct {
	Subject    string                    `json:"subject"`
	End        int64                     `json:"end"`
	Omitted    string                    `json:"omitted,omitempty"`
	Displayed  []int64                   `json:"displayed"` // the start and the end of the time range that the page draws in full
	Phases     []drawnPhase              `json:"phases"`
	Tracks     []drawnTrack              `json:"tracks"`
	Bands      []drawnBand               `json:"bands"`
	Words      []string                  `json:"words"`
	Marks      drawnMarks                `json:"marks"`
	Charts     []drawnChart              `json:"charts"`
	Violations []drawnViolation          `json:"violations"`
	Cited      map[int64]json.RawMessage `json:"cited"`
}

// drawnPhase is a [timeline.Phase] in the JSON format that the script of the HTML page reads.
type drawnPhase struct {
	Name string `json:"name"`
	At   int64  `json:"at"`
}

// drawnTrack is a [timeline.Track] in the JSON format that the script of the HTML page reads.
type drawnTrack struct {
	Group    string `json:"group"`
	Name     string `json:"name"`
	Resource string `json:"resource,omitempty"`
	// Color is the CSS color for the Kind of the objects on the track, such as Pod. It is empty
	// for a track without objects.
	Color string `json:"color,omitempty"`
}

// drawnBand is a [timeline.Band] in the JSON format that the script of the HTML page reads.
type drawnBand struct {
	Track int    `json:"track"`
	Kind  string `json:"kind"`
	From  int64  `json:"from"`
	To    int64  `json:"to"`
	Note  string `json:"note"`
}

// drawnMarks has all marks (events) of a timeline, stored as columns. Each slice is a column with
// the values that one field of [timeline.Mark] has in all marks. The values of Kind, Action,
// Object, Note and Fault are indexes in drawnTimeline.Words.
type drawnMarks struct {
	Seq     []int64 `json:"seq"`
	Answer  []int64 `json:"answer"`
	From    []int64 `json:"from"`
	To      []int64 `json:"to"`
	Track   []int   `json:"track"`
	Kind    []int   `json:"kind"`
	Action  []int   `json:"action"`
	Object  []int   `json:"object"`
	Note    []int   `json:"note"`
	Fault   []int   `json:"fault"`
	Version []int64 `json:"version"`
}

// drawnChart is a [timeline.Chart] in the JSON format that the script of the HTML page reads.
type drawnChart struct {
	Title string      `json:"title"`
	Unit  string      `json:"unit"`
	Lines []drawnLine `json:"lines"`
}

// drawnLine is a [timeline.Line] in the JSON format that the script of the HTML page reads.
type drawnLine struct {
	Name   string    `json:"name"`
	At     []int64   `json:"at"`
	Values []float64 `json:"values"`
}

// drawnViolation is a [timeline.Violation] in the JSON format that the script of the HTML page
// reads.
type drawnViolation struct {
	Check   string  `json:"check"`
	Number  int     `json:"number"`
	Summary string  `json:"summary"`
	At      int64   `json:"at"`
	Marks   []int   `json:"marks"`
	Records []int64 `json:"records"`
}

// draw converts a timeline to the JSON format that the script of the HTML page reads.
func draw(t *timeline.Timeline) *drawnTimeline {
	d := &drawnTimeline{
		Subject: t.Start.Subject, End: t.End.Microseconds(), Omitted: t.Omitted, Cited: t.Cited,
		Displayed: microseconds([]time.Duration{t.Displayed.From, t.Displayed.To}),
		Phases:    []drawnPhase{}, Tracks: []drawnTrack{}, Bands: []drawnBand{}, Charts: []drawnChart{}, Violations: []drawnViolation{},
	}
	for _, p := range t.Phases {
		d.Phases = append(d.Phases, drawnPhase{string(p.Name), p.At.Microseconds()})
	}
	for _, l := range t.Tracks {
		d.Tracks = append(d.Tracks, drawnTrack{l.Group.String(), l.Name, l.Resource, colorOfTrack(l)})
	}
	for _, b := range t.Bands {
		d.Bands = append(d.Bands, drawnBand{b.Track, b.Kind.String(), b.From.Microseconds(), b.To.Microseconds(), b.Note})
	}
	d.addMarks(t.Marks)
	for _, c := range t.Charts {
		chart := drawnChart{Title: c.Title, Unit: c.Unit}
		for _, l := range c.Lines {
			chart.Lines = append(chart.Lines, drawnLine{l.Name, microseconds(l.At), l.Values})
		}
		d.Charts = append(d.Charts, chart)
	}
	for _, v := range t.Violations {
		d.Violations = append(d.Violations, drawnViolation{v.Check, v.Number, v.Summary, v.At.Microseconds(), v.Marks, v.Records})
	}
	return d
}

// colorOfTrack returns the CSS color for the Kind of the objects on a track, a row of the timeline.
// It returns "" if the track shows no objects. Kinds without a color of their own get a gray.
func colorOfTrack(track timeline.Track) string {
	if track.Resource == "" {
		return ""
	}
	kind, _ := kube.ByResource(track.Resource)
	return cmp.Or(kind.Color, "var(--dim)")
}

// addMarks appends marks, which are the events on the timeline, to the columns of d.Marks. It
// stores each distinct string once in d.Words.
func (d *drawnTimeline) addMarks(marks []timeline.Mark) {
	places := map[string]int{}
	word := func(s string) int {
		place, ok := places[s]
		if !ok {
			place = len(d.Words)
			places[s] = place
			d.Words = append(d.Words, s)
		}
		return place
	}
	m := &d.Marks
	for _, column := range []*[]int64{&m.Seq, &m.Answer, &m.From, &m.To, &m.Version} {
		*column = slices.Grow(*column, len(marks))
	}
	for _, column := range []*[]int{&m.Track, &m.Kind, &m.Action, &m.Object, &m.Note, &m.Fault} {
		*column = slices.Grow(*column, len(marks))
	}
	for _, mark := range marks {
		m.Seq = append(m.Seq, mark.Seq)
		m.Answer = append(m.Answer, mark.Answer)
		m.From = append(m.From, mark.From.Microseconds())
		m.To = append(m.To, mark.To.Microseconds())
		m.Track = append(m.Track, mark.Track)
		m.Kind = append(m.Kind, word(mark.Kind.String()))
		m.Action = append(m.Action, word(mark.Action))
		m.Object = append(m.Object, word(mark.Object))
		m.Note = append(m.Note, word(mark.Note))
		m.Fault = append(m.Fault, word(mark.Fault))
		m.Version = append(m.Version, int64(mark.Version))
	}
}

// microseconds converts durations to whole microseconds, the unit of all times in the JSON of a
// timeline.
func microseconds(times []time.Duration) []int64 {
	whole := make([]int64, len(times))
	for i, at := range times {
		whole[i] = at.Microseconds()
	}
	return whole
}
