package timeline

import (
	"encoding/json"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Timeline shows the events of one run over time. All times are durations since the start of the
// history.
type Timeline struct {
	Start  history.Start // from the first record: controllers under test, namespace and start time
	End    time.Duration // the time of the last record
	Phases []Phase       // the starts of the run's phases, in order of time
	// Tracks has the rows in the order in which the page shows them. Mark.Track and Band.Track are
	// indexes in Tracks.
	Tracks     []Track
	Bands      []Band // the time ranges of faults and processes, in order of their starts
	Marks      []Mark // the events on the tracks, in order of Mark.Seq
	Charts     []Chart
	Violations []Violation
	// Cited has the records, as JSON, that the evidence of the violations cites. The key is the
	// record's Seq, its number in the history.
	Cited map[int64]json.RawMessage
	// Displayed is the time range in which the timeline shows all records. In the rest of a long
	// history, it shows only a few records.
	Displayed Span
	// Omitted says in one sentence which records the timeline does not show. It is empty if the
	// timeline shows all records.
	Omitted string
}

// Span is a time range. Both From and To belong to the range.
type Span struct{ From, To time.Duration }

// Phase is the start of one of the run's phases, such as settle.
type Phase struct {
	Name history.PhaseName
	At   time.Duration
}

// Group is a group of tracks, which are the rows of the timeline. The page shows the groups in the
// order of the constants.
type Group int

// These are the groups of tracks (rows of the timeline), such as the objects. The page shows the
// groups in this order.
const (
	Run     Group = iota // tracks of the workload, each fault, each process, and missing records
	Subject              // tracks of reads, watches, leases, Events, cluster-scoped objects, and objects in other namespaces
	Objects              // tracks of the objects in the run's namespace
	groups               // not a group, but the number of groups
)

func (g Group) String() string { return [groups]string{"run", "subject", "objects"}[g] }

// Track is a row of the timeline. A row shows one object, the pods of one owner, one fault, one
// process, or another series of events.
type Track struct {
	Group Group
	// Name is the title of the track, which is unique in the timeline. Examples are
	// "replicasets.apps web" and "pods of replicasets.apps web".
	Name string
	// Resource is the resource of the objects on the track. It is empty outside the group Objects.
	Resource string
}

// Kind says what kind of event a mark or a band shows, such as a commit.
type Kind int

// These are the kinds of events that the marks of the timeline show, such as a request or a commit.
const (
	Step     Kind = iota // a step of the workload, from begin to end
	Fault                // a fault was injected, fired, was healed, or failed
	Process              // a process started, ended, paused or resumed
	Commit               // etcd committed a version of an object
	Delivery             // a watch event, from the commit in etcd to the delivery to the controllers under test
	Write                // a successful write of the controllers under test, from the request to the response
	Refused              // a failed request of the controllers under test, from the request to the response
	Read                 // a get, list or watch of the controllers under test, from the request to the response
	Gap                  // records are missing from here on, or a process got no CPU time
	kinds                // not a kind, but the number of kinds
)

func (k Kind) String() string {
	return [kinds]string{"step", "fault", "process", "commit", "delivery", "write", "refused", "read", "gap"}[k]
}

// Mark shows one event, such as a request, on a track (row) of the timeline.
type Mark struct {
	Seq int64 // the number (Seq) of the record that the mark shows
	// Answer is the number (Seq) of the record that ends the mark, such as the response to a
	// request. It is 0 if the history has no such record.
	Answer int64
	// From and To are the start and the end of the mark. The mark of a delivery starts at the
	// commit, or when the watch was established if that was later. Therefore To - From is the lag
	// of the delivery.
	From, To time.Duration
	Track    int // the index of the mark's track in Timeline.Tracks
	Kind     Kind
	Action   string          // such as "create" (a verb), "MODIFIED" (the type of a watch event) or "step 2"
	Object   string          // the object, such as "pods web-x7k2p"; empty if the event concerns no object
	Note     string          // details, such as the response, the object's state or the fault's detail
	Version  history.Version // the object's resourceVersion; 0 if the event has none
	Fault    string          // the fault that changed the request or the response; empty if none did
}

// Band is a colored time range on a track (row) of the timeline. It shows how long a fault was
// injected, or how long a process ran.
type Band struct {
	Track    int  // the index of the band's track in Timeline.Tracks
	Kind     Kind // Fault or Process
	From, To time.Duration
	Note     string // the name of the fault or process
}

// Chart is a diagram of values over time. All lines have the same unit.
type Chart struct {
	Title string
	Unit  string // the unit of the values; empty if the values are counts
	Lines []Line
}

// Line is one series of values in a chart. A value is valid until the time of the next value.
type Line struct {
	Name   string
	At     []time.Duration // the times of the values in the field Values, ascending
	Values []float64
}

// Violation is one violation, as a check describes it, with the marks on the timeline that show it.
type Violation struct {
	Check    string // the ID of the check
	Number   int    // the position in the list of the check's evidence, counted from 1
	Summary  string // what the check found
	Expected string // what the check expected
	At       time.Duration
	Marks    []int   // the indexes in Timeline.Marks of the marks that show the violation, ascending
	Records  []int64 // the numbers (Seq) of all cited records, ascending, even of records without a mark
}
