// Package timeline builds the timeline of a run from its history: a track for each object
// or component, marks for events, bands for faults and processes, charts of counts, and the
// violations that checks found, linked to their marks.
//
// It is a pure function of the records and the results. It knows no output format; package
// reports renders the timeline.
package timeline
