// Package timeline builds the timeline of a run from its history. A timeline has a track for
// each object or component, marks for events, bands for faults and processes, and charts over
// time. It also has the violations that checks found, with the indexes of their marks.
//
// The timeline depends only on the records of the history and the results of the checks. The
// package knows no output format; package reports draws the timeline on the HTML page.
package timeline
