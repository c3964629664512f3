// Package compare sets runs of one scenario on two subjects side by side: [SideOf]
// reads what can be compared of a run, under names that are the same in every run,
// and [Differences] says in what two runs differ and what is to be thought of it.
// A difference stands by the tables [Deliberate], [Incomparable] and [Acceptable]
// (rules.go), or is undeclared.
//
// What a run cost its subject [CostOf] measures from its history alone, and
// [Ratios] says of pairs of runs, made in turn on equal control planes, which
// subject was dearer, by how much and how surely. Like package check it reads
// histories and never touches a cluster.
package compare
