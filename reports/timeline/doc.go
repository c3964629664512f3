// Package timeline turns the history of a run into what can be drawn of it: a
// lane for each thing that something happens to, marks on the lanes, bands for
// what lasts, lines for what is counted, and the violations that checks found,
// tied to their marks.
//
// It is a pure function of the records and the verdicts. It draws nothing and
// knows no format; package reports puts it on a page.
package timeline
