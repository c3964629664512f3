// Package compare compares runs of one scenario on two subjects. [SideOf] reads a run and
// gives its objects names that are the same in every run. [Differences] returns the
// differences of two runs with their classifications. The tables [Deliberate],
// [Incomparable] and [Acceptable] in rules.go determine the classification. A difference
// without a rule is undeclared.
//
// [CostOf] measures the cost of a run from its history. [Ratios] compares the costs of
// pairs of runs. The runs of a pair are made one after the other, on equal control planes.
// Like package check, the package reads histories and never accesses a cluster.
package compare
