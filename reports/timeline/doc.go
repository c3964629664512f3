// Package timeline builds the timeline of a run from its history. A timeline has a track
// for each object or component, marks for events, bands for faults and processes, and
// charts of counts. It also has the violations that checks found, linked to their marks.
//
// The timeline depends only on the records and the results. The package knows no output
// format; package reports renders the timeline.
package timeline
