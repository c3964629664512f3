// Package compare sets runs of one scenario on two subjects side by side.
//
// It begins with what a run cost its subject: [CostOf] measures that from the
// run's history alone, and [Ratios] says of pairs of runs, made in turn on equal
// control planes, which subject was dearer, by how much and how surely. Like
// package check it reads histories and never touches a cluster.
package compare
