// Package compare compares runs of one scenario on two subjects. [SideOf] reads a run and
// gives its objects names that are the same in every run. [Differences] returns the
// differences of two runs with their classifications, by the tables [Deliberate],
// [Incomparable] and [Acceptable] in rules.go. A difference without a rule is undeclared.
//
// [CostOf] measures the cost of a run from its history. [Ratios] compares the costs of pairs
// of runs, made in turn on equal control planes. Like package check, the package reads
// histories and never accesses a cluster.
package compare
