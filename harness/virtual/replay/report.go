package replay

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// Report counts the requests of recordings and the differences of their replay. Its zero value is an
// empty report.
type Report struct {
	// Recording is the name of the recording that is being replayed.
	Recording string

	replayed    map[kindOfRequest]int
	skipped     map[skippedKind]int
	differences map[kindOfDifference]*example
	different   int // requests with an unexplained difference
}

// kindOfRequest identifies a group of replayed requests that the report counts together.
type kindOfRequest struct {
	verb, resource string
	code           int
}

// skippedKind identifies a group of requests that were not replayed, which the report counts
// together.
type skippedKind struct{ reason, resource string }

// kindOfDifference identifies a group of differences that the report counts together.
type kindOfDifference struct {
	kindOfRequest
	path, reason string
}

// example is the first difference of a kind, and the number of differences of the kind.
type example struct {
	Difference
	recording string
	line      int
	count     int
}

// Replayed returns the number of requests that were replayed and compared.
func (r *Report) Replayed() int { return sum(r.replayed) }

// Skipped returns the number of requests that were not replayed.
func (r *Report) Skipped() int { return sum(r.skipped) }

// Different returns the number of requests whose answer has an unexplained difference.
func (r *Report) Different() int { return r.different }

func sum[K comparable](counts map[K]int) int {
	total := 0
	for _, count := range counts {
		total += count
	}
	return total
}

// skip counts a request that is not replayed.
func (r *Report) skip(recorded *Request, reason string) {
	if r.skipped == nil {
		r.skipped = map[skippedKind]int{}
	}
	r.skipped[skippedKind{reason, recorded.Resource()}]++
}

// add counts a request that was replayed, and its differences.
func (r *Report) add(recorded *Request, differences []Difference) {
	if r.replayed == nil {
		r.replayed, r.differences = map[kindOfRequest]int{}, map[kindOfDifference]*example{}
	}
	kind := kindOfRequest{recorded.Verb, recorded.Resource(), recorded.Code()}
	r.replayed[kind]++
	for _, d := range differences {
		key := kindOfDifference{kind, d.Path, d.Reason}
		if r.differences[key] == nil {
			r.differences[key] = &example{Difference: d, recording: r.Recording, line: recorded.Line}
		}
		r.differences[key].count++
	}
	if slices.ContainsFunc(differences, func(d Difference) bool { return d.Reason == "" }) {
		r.different++
	}
}

// Write writes the report as text.
func (r *Report) Write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(table, "%d requests replayed, %d with an unexplained difference; %d not replayed\n\nREPLAYED\tVERB\tRESOURCE\tCODE\n", r.Replayed(), r.different, r.Skipped())
	for _, kind := range byCount(r.replayed) {
		fmt.Fprintf(table, "%d\t%s\t%s\t%d\n", r.replayed[kind], kind.verb, kind.resource, kind.code)
	}
	fmt.Fprint(table, "\nNOT REPLAYED\tRESOURCE\tREASON\n")
	for _, kind := range byCount(r.skipped) {
		fmt.Fprintf(table, "%d\t%s\t%s\n", r.skipped[kind], kind.resource, kind.reason)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return r.writeDifferences(w)
}

// byCount returns the keys of the map, those with the highest numbers first.
func byCount[K comparable](counts map[K]int) []K {
	return slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
}

// maxValue is the maximum number of bytes of a value that the report prints.
const maxValue = 300

// writeDifferences writes each kind of difference with its first example.
func (r *Report) writeDifferences(w io.Writer) error {
	counts := map[kindOfDifference]int{}
	for kind, found := range r.differences {
		counts[kind] = found.count
	}
	for _, kind := range byCount(counts) {
		found := r.differences[kind]
		reason := cmp.Or(kind.reason, "UNEXPLAINED")
		if _, err := fmt.Fprintf(w, "\n%d times: %s %s %d %s: %s\n  first in %s:%d\n  recorded %.*s\n  replayed %.*s\n", found.count, kind.verb, kind.resource, kind.code, kind.path, reason,
			found.recording, found.line, maxValue, found.Recorded, maxValue, found.Replayed); err != nil {
			return err
		}
	}
	return nil
}
