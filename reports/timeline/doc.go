// Package timeline builds the timeline of a run from the run's history. A timeline has a track for
// each object or component. Marks show events, and bands show how long faults and processes
// lasted. Charts show values over time. A timeline also has the violations that checks found, with
// the indexes of the marks that show them.
//
// The timeline depends only on the records of the history and the results of the checks. This
// package knows no output format; package reports draws the timeline on the HTML page.
package timeline
